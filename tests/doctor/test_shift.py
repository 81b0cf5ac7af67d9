"""The level and the power of the shift test, by simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.doctor.shift import check_shift, two_sample_test

ROUNDS = 400


def rejections(first, second, level: float, seed: int) -> float:
    """How often two new sets of 40 responses are called different."""
    generator = np.random.default_rng(seed)
    rejected = [
        two_sample_test(
            first(generator, 40), second(generator, 40), permutations=99, seed=index
        ).p_value
        <= level
        for index in range(ROUNDS)
    ]
    return float(np.mean(rejected))


def smooth(generator, count):
    return generator.dirichlet(np.full(5, 0.5), count)


def rounded(generator, count):
    return np.round(smooth(generator, count), 1)


def hard(generator, count):
    return np.eye(5)[generator.integers(0, 5, count)]


@pytest.mark.parametrize("responses", [smooth, rounded, hard])
def test_the_level_holds_for_every_kind_of_response(responses) -> None:
    level = 0.05
    spread = np.sqrt(level * (1 - level) / ROUNDS)
    assert rejections(responses, responses, level, seed=1) <= level + 3 * spread


def test_without_ties_the_test_is_not_too_conservative() -> None:
    assert rejections(smooth, smooth, 0.1, seed=2) >= 0.05


def test_a_loss_of_confidence_is_detected_with_forty_images() -> None:
    def unconfident(generator, count):
        return generator.dirichlet(np.full(5, 1.5), count)

    assert rejections(smooth, unconfident, 0.05, seed=3) > 0.9


def test_other_classes_are_detected_although_confidence_is_the_same() -> None:
    def lopsided(generator, count):
        rows = smooth(generator, count)
        rows[: count // 2] = -np.sort(-rows[: count // 2], axis=1)
        return rows

    assert rejections(smooth, lopsided, 0.05, seed=4) > 0.7


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(2, 60), st.integers(0, 99))
def test_the_p_value_and_the_distance_are_in_range(
    first: int, second: int, classes: int, seed: int
) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.ones(classes), first + second)
    test = two_sample_test(rows[:first], rows[first:], permutations=19, seed=seed)
    assert 1 / 20 <= test.p_value <= 1 and 0 <= test.distance <= 1 + 1e-9


def test_the_distance_is_the_one_computed_by_hand() -> None:
    first = np.array([[0.9, 0.1]] * 4)
    second = np.array([[0.9, 0.1]] * 1 + [[0.6, 0.4]] * 3)
    assert two_sample_test(first, second).distance == pytest.approx(0.75)


def test_a_shift_is_good_for_adapting_and_no_shift_is_bad() -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(300) % 5
    clean = 0.9 * np.eye(5)[labels] + 0.1 * generator.dirichlet(np.ones(5), 300)
    worse = 0.3 * np.eye(5)[labels] + 0.7 * generator.dirichlet(np.ones(5), 300)
    no_shift = check_shift(clean[::2], clean[1::2], agreement=0.9, clean_agreement=0.9)
    assert no_shift.state == "bad"
    finding = check_shift(worse, clean, agreement=0.5, clean_agreement=0.9)
    assert finding.state == "good" and "50%" in finding.sentence
    assert finding.measurements["p_value"] == 0.001


def test_a_difference_that_costs_no_accuracy_is_a_caution() -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(300) % 5
    clean = 0.85 * np.eye(5)[labels] + 0.15 * generator.dirichlet(np.ones(5), 300)
    confident = 0.97 * np.eye(5)[labels] + 0.03 * generator.dirichlet(np.ones(5), 300)
    finding = check_shift(confident, clean, agreement=0.9, clean_agreement=0.9)
    assert finding.state == "caution"
