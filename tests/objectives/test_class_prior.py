"""A stated class prior: what answers are worth against it, and weights that meet it."""

import numpy as np
import pytest

from soda_tta.adaptors.answering import weighted
from soda_tta.objectives import class_weights, information_against, mutual_information
from soda_tta.objectives import mutual_information_against as against
from soda_tta.objectives.class_prior import PULL

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.dirichlet(np.full(5, 0.4), 400)


def test_the_information_against_a_prior_computed_by_hand() -> None:
    """Two rows [0.8, 0.2] and [0.6, 0.4]: the mean is [0.7, 0.3], the prior [0.4, 0.6]."""
    rows = np.array([[0.8, 0.2], [0.6, 0.4]])
    prior = np.array([0.4, 0.6])
    divergence = 0.7 * np.log(0.7 / 0.4) + 0.3 * np.log(0.3 / 0.6)
    entropies = [-(p * np.log(p) + (1 - p) * np.log(1 - p)) for p in (0.8, 0.6)]
    of_prior = -(0.4 * np.log(0.4) + 0.6 * np.log(0.6))
    expected = of_prior - divergence - np.mean(entropies)
    assert against(rows, prior) == pytest.approx(expected, abs=1e-4)
    assert information_against(rows, prior).mean() == pytest.approx(expected, abs=1e-4)


def test_a_balanced_prior_changes_no_search_and_no_prior_nothing_at_all() -> None:
    assert against(ROWS, np.full(5, 0.2)) == pytest.approx(mutual_information(ROWS), abs=1e-3)
    assert against(ROWS, None) == mutual_information(ROWS)


def test_a_class_that_is_stated_not_to_occur_costs_much_and_not_infinitely() -> None:
    rows = np.eye(2)[[0, 1]]
    assert -10 < against(rows, np.array([1.0, 0.0])) < -4


def test_weighted_answers_have_the_prior_as_their_mean() -> None:
    many = RANDOM.dirichlet(np.full(5, 0.4), 20_000)
    prior = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    matched = weighted(many, class_weights(many, prior))
    np.testing.assert_allclose(matched.mean(axis=0), prior, atol=1e-3)


def test_the_condition_that_weights_meet_with_few_images() -> None:
    """The mean answer misses the prior by the pull of each weight towards 1."""
    prior = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    rows = ROWS[:40]
    weights = class_weights(rows, prior)
    misses = weighted(rows, weights).mean(axis=0) - prior
    np.testing.assert_allclose(misses, -PULL / 40 * np.log(weights), atol=1e-5)
    assert np.log(weights).sum() == pytest.approx(0, abs=1e-9)


def test_answers_that_match_already_stay() -> None:
    prior = ROWS.mean(axis=0)
    np.testing.assert_allclose(class_weights(ROWS, prior), 1, atol=1e-3)


def test_classes_alone_cannot_be_moved_and_no_weight_runs_away() -> None:
    one_class = np.eye(4)[np.zeros(500, int)]
    for count in (500, 50_000):
        weights = class_weights(np.resize(one_class, (count, 4)), np.full(4, 0.25))
        assert weights.min() > 1e-6 and weights.max() < 1e6
    assert (weighted(one_class, weights).argmax(axis=1) == 0).all()


def test_a_share_of_zero_is_a_weight_of_zero() -> None:
    weights = class_weights(ROWS, np.array([0.5, 0.5, 0, 0, 0]))
    np.testing.assert_array_equal(weights[2:], 0)
    assert set(weighted(ROWS, weights).argmax(axis=1)) == {0, 1}
