"""A router that grows: a shift becomes a condition, the same images do not."""

import numpy as np
import pytest

from soda_tta.conditions.find import assembled, fitted_router
from soda_tta.conditions.growing import grown, with_equal_weights
from soda_tta.conditions.router import Router
from soda_tta.conditions.statistics import NAMES
from soda_tta.types import Array

NUMBERS = len(NAMES)


def rows(count: int, seed: int, shift: float = 0.0) -> Array:
    """Statistics of images; a shift moves three of the numbers."""
    found = np.random.default_rng(seed).normal(size=(count, NUMBERS))
    found[:, :3] += shift
    return found


@pytest.fixture(scope="module")
def router() -> Router:
    known = rows(400, 0)
    with pytest.MonkeyPatch.context() as patch:  # the numbers of this test are no statistics
        patch.setattr("soda_tta.conditions.find.EMPHASIS", np.eye(NUMBERS))
        return with_equal_weights(assembled(known, fitted_router(known, 1, 0)).router)


def test_images_as_before_need_no_further_gaussian(router) -> None:
    for seed in range(5):
        assert grown(router, rows(192, 10 + seed), rows(400, 20 + seed)) is None


def test_a_shift_becomes_a_condition_soon_and_old_images_keep_theirs(router) -> None:
    recent = np.concatenate([rows(112, 1), rows(80, 2, shift=4.0)])
    growth = grown(router, recent, rows(400, 3))
    assert growth is not None and growth.condition == 1
    old = growth.router.of_statistics(rows(300, 4))
    new = growth.router.of_statistics(rows(300, 5, shift=4.0))
    assert (old.conditions == 0).mean() > 0.98 and old.familiar.mean() > 0.97
    assert (new.conditions == 1).mean() > 0.98 and new.familiar.mean() > 0.97
    assert growth.router.mixture.weights.sum() == pytest.approx(1)


def test_images_that_cannot_be_told_apart_are_one_condition(router) -> None:
    growth = grown(router, rows(192, 6, shift=1.2), rows(400, 7))
    assert growth is not None and growth.condition == 0
    assert len(growth.router) == 1


def test_a_grown_router_does_not_grow_again_for_the_same_images(router) -> None:
    growth = grown(router, rows(192, 8, shift=4.0), rows(400, 9))
    assert growth is not None
    assert grown(growth.router, rows(192, 11, shift=4.0), rows(400, 9)) is None


def test_images_of_an_old_condition_stay_with_theirs(router) -> None:
    growth = grown(router, rows(192, 8, shift=4.0), rows(400, 9))
    assert growth is not None
    recent = rows(192, 12, shift=5.2)  # between nothing: a little beyond the second condition
    again = grown(growth.router, recent, np.concatenate([rows(400, 9), rows(200, 13, shift=4.0)]))
    assert again is not None and again.condition == 1
    before = growth.router.of_statistics(recent).conditions
    np.testing.assert_array_equal(again.router.of_statistics(recent).conditions, before)
