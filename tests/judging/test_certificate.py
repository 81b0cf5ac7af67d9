"""The certificate: an interval for the gain from a few labelled images."""

import numpy as np
import pytest

from soda_tta.judging.certificate import Certificate, certify, paired_interval


def predictions(correct: np.ndarray) -> np.ndarray:
    """Probabilities over two classes that are correct for label 0 where `correct` is true."""
    return np.eye(2)[np.where(correct, 0, 1)]


def test_the_interval_by_hand() -> None:
    """Bonett and Price: add one image to either kind of change, two to the total."""
    before = np.array([True] * 5 + [False] * 5)
    after = np.array([True] * 4 + [False] + [True] * 3 + [False] * 2)
    gained, lost = 4 / 12, 2 / 12  # 3 images gained, 1 lost
    middle = gained - lost
    reach = 1.959964 * np.sqrt((gained + lost - middle**2) / 12)
    assert paired_interval(before, after) == pytest.approx((middle - reach, middle + reach))


def test_the_interval_contains_the_true_gain_at_its_level() -> None:
    generator = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        before = generator.random(25) < 0.5
        after = np.where(generator.random(25) < 0.6, before, generator.random(25) < 0.8)
        low, high = paired_interval(before, after)
        inside.append(low <= 0.4 * 0.3 <= high)  # 40 % are redrawn, at 80 % in place of 50 %
    assert np.mean(inside) >= 0.93


@pytest.mark.parametrize(
    ("before", "after", "conclusion"),
    [
        (0.2, 0.9, "a significant gain"),
        (0.9, 0.2, "a significant loss"),
        (0.5, 0.52, "which may be chance"),
    ],
)
def test_the_sentence_names_the_conclusion(before: float, after: float, conclusion: str) -> None:
    ranks = np.arange(100) / 100
    certificate = certify(predictions(ranks < before), predictions(ranks < after), np.zeros(100))
    assert certificate.sentence.endswith(f"{conclusion}.")
    assert certificate.gain == pytest.approx(after - before)


def test_facts_contain_every_field_and_the_gain() -> None:
    certificate = Certificate(images=9, before=0.5, after=0.75, low=0.1, high=0.4, level=0.95)
    facts = certificate.facts()
    assert facts.pop("gain") == 0.25
    assert Certificate(**facts) == certificate
