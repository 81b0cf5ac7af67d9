"""Probes that do not arrive: every method that estimates says so, and the mu it names is one that helps."""

import numpy as np
import pytest

from soda_tta import adapt
from soda_tta.adaptors import PaperNetwork
from soda_tta.box import CallableBox, Input, Quantised
from soda_tta.engine.rounding import arriving, drowned_probes
from soda_tta.methods import all_methods
from soda_tta.search import Backprop, MultiPoint

ESTIMATING = ("soda", "soda-o", "da-pl", "da-direct", "da-pgd", "da-zoo-input", "soda-office-home")


def even(images):
    return np.full((len(images), 4), 0.25, np.float32)


@pytest.fixture
def photographs() -> np.ndarray:
    """Smooth, as images are; of noise JPEG would keep nothing."""
    rows, columns = np.mgrid[0:32, 0:32] / 32
    waves = [
        np.sin(2 * np.pi * (a * rows + b * columns)) for a, b in ((1, 0), (0, 1), (1, 2), (2, 1))
    ]
    return np.stack([0.5 + 0.3 * np.stack([w, -w, 0.5 * w]) for w in waves]).astype(np.float32)


def test_what_arrives_by_hand() -> None:
    box = Quantised(CallableBox(even))
    here = np.zeros((1, 3, 1, 2), np.float32)
    there = here + np.array([0.6, 0.4], np.float32) / 255  # arrives as 1 and 0 steps
    assert arriving(np.stack([here, there]), box) == pytest.approx(0.6 / np.hypot(0.6, 0.4))
    assert arriving(np.stack([here, here + np.float32(0.4 / 255)]), box) == 0.0
    assert arriving(np.stack([here, there]), CallableBox(even)) == pytest.approx(1.0)


def test_a_model_that_takes_bytes_is_seen_to_round_by_itself(photographs) -> None:
    box = CallableBox(even, input=Input(dtype="uint8"))
    np.testing.assert_array_equal(
        box.as_received(photographs), Quantised(CallableBox(even)).as_received(photographs)
    )


@pytest.mark.parametrize("quality", [None, 95, 80, 50])
def test_the_mu_that_is_named_is_one_with_which_most_arrives(photographs, quality) -> None:
    box, adaptor = Quantised(CallableBox(even), jpeg=quality), PaperNetwork().build(seed=0)
    told = drowned_probes(MultiPoint(), adaptor, photographs, box, 0)
    mu = float(told.split("mu=")[1].rstrip(")."))
    assert drowned_probes(MultiPoint(mu=mu), adaptor, photographs, box, 0) is None
    assert mu == 0.02 or quality


def test_where_no_mu_helps_another_search_is_named() -> None:
    class Deaf(Quantised):
        def transported(self, images):
            return np.zeros_like(images)

    images = np.full((2, 3, 8, 8), 0.5, np.float32)
    told = drowned_probes(
        MultiPoint(), PaperNetwork(width=4).build(seed=0), images, Deaf(CallableBox(even)), 0
    )
    assert "no mu helps; use soda-e" in told
    assert (
        drowned_probes(
            Backprop(), PaperNetwork(width=4).build(seed=0), images, Deaf(CallableBox(even)), 0
        )
        is None
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATING)
def test_every_method_that_estimates_says_so_once(name, photographs) -> None:
    fewer = {"queue": 0} if name == "soda-o" else {}
    settings = {
        "epochs": 1,
        **fewer,
        **({"width": 4} if "width" in all_methods()[name].settings else {}),
    }
    for box, count in ((Quantised(CallableBox(even)), 1), (CallableBox(even), 0)):
        run = adapt(photographs, box, method=name, **settings)
        assert len([text for text in run.notices if "rounding noise" in text]) == count
