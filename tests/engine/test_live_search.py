"""A live search: no query for repairs without anything to do, and the same after a restart."""

import numpy as np
import pytest
from tests.engine.live_traffic import Templates, scenes

from soda_tta import find_method
from soda_tta.adaptors import Bank, BankAdaptor
from soda_tta.adaptors.parts import PARTS, REPAIRS
from soda_tta.engine import live_search
from soda_tta.engine.live_pixels import as_bytes, as_floats
from soda_tta.engine.live_search import LiveSearch
from soda_tta.types import Array

FAMILIES = np.array([part.family for part in PARTS])
MODEL = Templates()


def wrong_pixels(images: Array) -> Array:
    """The same images; one in ten pixels is black or white."""
    random = np.random.default_rng(0)
    hit = random.random(images[:, :1].shape) < 0.1
    return np.where(hit, random.integers(2, size=hit.shape), images).astype(np.float32)


def bank_of(images: Array) -> BankAdaptor:
    return Bank.for_size(images.shape[2:]).build()


def search_on(images: Array) -> LiveSearch:
    method = find_method("soda-e")
    kept = as_bytes(images)
    before = MODEL(as_floats(kept))
    return LiveSearch(method, bank_of(images), kept, before, method.starts()[:2], seed=0)


def repairs_of(search: LiveSearch) -> set[str]:
    """The repairs that the search has moves of."""
    return set(FAMILIES[search.moves.any(axis=0)]) & set(REPAIRS)


def test_repairs_without_anything_to_do_cost_no_query() -> None:
    images, _ = scenes(128, 1, faded=True)
    damaged = search_on(wrong_pixels(images))
    intact = search_on(images)
    assert "wrong pixels" in repairs_of(damaged)
    assert not repairs_of(intact)
    assert len(intact.moves) < len(damaged.moves)


@pytest.mark.parametrize("bytes_at_once", [1, 2**27])
def test_large_images_are_looked_at_a_few_at_a_time(monkeypatch, bytes_at_once: int) -> None:
    monkeypatch.setattr(live_search, "PREPARED_BYTES", bytes_at_once)
    images, _ = scenes(128, 1, faded=True)
    assert not repairs_of(search_on(images))
    assert "wrong pixels" in repairs_of(search_on(wrong_pixels(images)))


def test_a_search_continues_with_the_same_moves() -> None:
    images, _ = scenes(128, 1, faded=True)
    search = search_on(images)
    assert search.idle.any()
    search.step(MODEL, 128)
    again = LiveSearch.restored(find_method("soda-e"), bank_of(images), search.state())
    assert np.array_equal(again.moves, search.moves) and np.array_equal(again.idle, search.idle)
    while cost := search.cost(128):
        assert again.cost(128) == cost
        search.step(MODEL, 128)
        again.step(MODEL, 128)
    assert np.array_equal(again.theta, search.theta) and again.ended
