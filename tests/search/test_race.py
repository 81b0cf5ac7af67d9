"""Heats: what they cost, who goes on, and that a state continues them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.search import Pursuit
from soda_tta.search.race import Race, heats_of, queries_of, spread


@given(st.integers(1, 400), st.integers(1, 5))
def test_heats_use_every_image_once(images: int, heats: int) -> None:
    sizes = heats_of(images, heats)
    assert sum(sizes) == images
    assert len(sizes) == 1 or min(sizes) >= 11


def run(race: Race, quality: np.ndarray) -> int:
    """Let every rival answer; returns the queries."""
    queries = 0
    while not race.done:
        images = race.next_images
        race.tell(np.zeros((len(race.running), len(images), 2), np.float32))
        queries += len(images) * len(race.running)
        race.drop(quality)
    return queries


@pytest.mark.parametrize(("rivals", "images", "heats"), [(34, 192, 3), (12, 100, 2), (5, 24, 3)])
def test_the_best_rival_finishes_at_the_stated_cost(rivals: int, images: int, heats: int) -> None:
    race = Race(np.arange(images), rivals + 1, 2, heats)
    quality = np.random.default_rng(0).permutation(rivals).astype(float)
    assert images + run(race, quality) == queries_of(rivals + 1, images, heats)
    assert int(quality.argmax()) in race.running
    assert len(race.rows[int(quality.argmax())]) == images


def test_a_state_continues_a_race() -> None:
    quality = np.arange(9.0)
    first, second = (Race(np.arange(120), 10, 2, 3) for _ in range(2))
    rows = np.random.default_rng(0).random((9, len(first.next_images), 2)).astype(np.float32)
    first.tell(rows)
    first.drop(quality)
    second.restore(first.state())
    assert second.heat == 1
    np.testing.assert_array_equal(second.running, first.running)
    np.testing.assert_array_equal(second.next_images, first.next_images)
    for one, other in zip(first.rows, second.rows, strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.integers(2, 300))
def test_the_first_images_of_a_round_are_spread_over_all(count: int) -> None:
    order = spread(np.arange(count))
    assert sorted(order.tolist()) == list(range(count))
    few = np.sort(order[: max(2, count // 7)])
    assert np.diff(np.concatenate([[0], few, [count]])).max() <= 4 * count / len(few) + 2


def test_a_step_that_was_given_up_is_not_taken() -> None:
    search = Pursuit(caution=0.0).start(np.zeros(3), np.eye(3))
    search.tell_gains(np.array([5.0, 1.0, -1.0]), np.array([np.inf, 0.1, 0.1]))
    np.testing.assert_array_equal(search.theta, [0, 1, 0])
