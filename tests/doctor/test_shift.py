"""The test for a shift holds its level and has power; both by simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soda_tta.doctor.shift import shift, two_sample_test

ROUNDS = 400


def rejections(first, second, level: float, seed: int) -> float:
    """How often two fresh sets of 40 are called different."""
    generator = np.random.default_rng(seed)
    found = [
        two_sample_test(
            first(generator, 40), second(generator, 40), permutations=99, seed=index
        ).p_value
        <= level
        for index in range(ROUNDS)
    ]
    return float(np.mean(found))


def smooth(generator, count):
    return generator.dirichlet(np.full(5, 0.5), count)


def rounded(generator, count):
    return np.round(smooth(generator, count), 1)


def hard(generator, count):
    return np.eye(5)[generator.integers(0, 5, count)]


@pytest.mark.parametrize("answers", [smooth, rounded, hard])
def test_the_level_holds_whatever_the_answers_look_like(answers) -> None:
    level = 0.05
    spread = np.sqrt(level * (1 - level) / ROUNDS)
    assert rejections(answers, answers, level, seed=1) <= level + 3 * spread


def test_without_ties_the_level_is_also_used_up() -> None:
    assert rejections(smooth, smooth, 0.1, seed=2) >= 0.05


def test_a_loss_of_confidence_is_seen_by_forty_images() -> None:
    def unsure(generator, count):
        return generator.dirichlet(np.full(5, 1.5), count)

    assert rejections(smooth, unsure, 0.05, seed=3) > 0.9


def test_other_classes_are_seen_although_confidence_is_the_same() -> None:
    def lopsided(generator, count):
        answers = smooth(generator, count)
        answers[: count // 2] = -np.sort(-answers[: count // 2], axis=1)
        return answers

    assert rejections(smooth, lopsided, 0.05, seed=4) > 0.7


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(2, 60), st.integers(0, 99))
def test_a_p_value_is_always_a_p_value(first: int, second: int, classes: int, seed: int) -> None:
    answers = np.random.default_rng(seed).dirichlet(np.ones(classes), first + second)
    found = two_sample_test(answers[:first], answers[first:], permutations=19, seed=seed)
    assert 1 / 20 <= found.p_value <= 1 and 0 <= found.distance <= 1 + 1e-9


def test_the_distance_is_the_one_computed_by_hand() -> None:
    first, second = np.array([[0.9, 0.1]] * 4), np.array([[0.9, 0.1]] * 1 + [[0.6, 0.4]] * 3)
    assert two_sample_test(first, second).distance == pytest.approx(0.75)


def test_a_shift_is_good_news_for_adapting_and_none_is_bad() -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(300) % 5
    clean = 0.9 * np.eye(5)[labels] + 0.1 * generator.dirichlet(np.ones(5), 300)
    worse = 0.3 * np.eye(5)[labels] + 0.7 * generator.dirichlet(np.ones(5), 300)
    assert shift(clean[::2], clean[1::2], now=0.9, usual=0.9).state == "bad"
    found = shift(worse, clean, now=0.5, usual=0.9)
    assert found.state == "good" and found.numbers["p_value"] == 0.001 and "50%" in found.sentence


def test_a_difference_that_costs_no_accuracy_is_a_caution() -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(300) % 5
    clean = 0.85 * np.eye(5)[labels] + 0.15 * generator.dirichlet(np.ones(5), 300)
    surer = 0.97 * np.eye(5)[labels] + 0.03 * generator.dirichlet(np.ones(5), 300)
    assert shift(surer, clean, now=0.9, usual=0.9).state == "caution"
