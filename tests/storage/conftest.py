"""The card of a run, as small as the folder of a run accepts it."""

import pytest

from soda_tta.storage.run_folder import FORMAT


def a_card(**changes):
    card = {
        "format": FORMAT,
        "method": "soda",
        "settings": {"epochs": 3, "lr": 0.1},
        "seed": 0,
        "budget": 20.0,
        "images": {"count": 4, "size": [8, 8], "fingerprint": "abc"},
        "box": {"fingerprint": "model", "logits": False},
        "plan": {"epochs": 3, "rungs": [1, 2], "queries": {"probe": 60}, "limit": 80},
        "versions": {"numpy": "2"},
    }
    return {**card, **changes}


@pytest.fixture
def card():
    """Make a card; keyword arguments replace its entries."""
    return a_card
