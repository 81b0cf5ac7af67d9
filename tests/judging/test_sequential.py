"""The sequential test: by hand, and its error rate over whole lives of streams without a gain."""

import math

import numpy as np
import pytest

from soda_tta.judging.sequential import BETS, Capital, level_of


def test_the_capital_is_the_mean_of_all_bets() -> None:
    capital = Capital()
    capital.add(0.5)
    capital.add(-0.25)
    assert capital.value == pytest.approx(np.mean((1 + 0.5 * BETS) * (1 - 0.25 * BETS)))
    assert capital.p_value == pytest.approx(1 / np.mean(1 + 0.5 * BETS))


def test_a_gain_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="clip"):
        Capital().add(1.01)


def test_all_candidates_together_spend_the_level() -> None:
    shares = [level_of(number, 0.05) for number in range(1, 100_000)]
    assert sum(shares) == pytest.approx(0.05, rel=1e-4)
    assert sum(shares) < 0.05


def test_without_a_gain_few_capitals_ever_reach_the_level() -> None:
    """400 lives of 300 images, all in one array: the same bets as in `Capital`."""
    gains = np.random.default_rng(0).choice([-1.0, 1.0], (400, 300, 1))
    capitals = np.exp(np.log1p(BETS * gains).cumsum(axis=1)).mean(axis=2)
    assert 0 < (capitals.max(axis=1) >= 10).mean() <= 0.1


def test_a_real_gain_is_found_soon() -> None:
    random = np.random.default_rng(0)
    capital = Capital()
    while not capital.reaches(0.001) and capital.count < 1000:
        capital.add(float(np.clip(random.normal(0.2, 0.4), -1, 1)))
    assert capital.count < 150


def test_a_restarting_capital_notices_a_change_after_a_long_good_time() -> None:
    plain = Capital()
    restarting = Capital(restarting=True)
    for gain in [-0.3] * 500 + [0.3] * 60:
        plain.add(gain)
        restarting.add(gain)
    assert restarting.reaches(0.01)
    assert not plain.reaches(0.01)


def test_a_capital_does_not_overflow_and_continues_bit_for_bit() -> None:
    first = Capital(restarting=True)
    for _ in range(2000):
        first.add(1.0)
    assert math.isfinite(first.value)
    second = Capital(restarting=True)
    second.restore(first.state())
    for each in (first, second):
        each.add(-0.7)
    assert second.logarithm == first.logarithm
    assert (second.best, second.count) == (first.best, first.count)
