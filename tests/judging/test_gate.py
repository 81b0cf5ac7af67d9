"""The gate: real gains pass, mere confidence and split classes do not, lost gains are noticed."""

import numpy as np
import pytest

from soda_tta.judging.gate import Gate, Watch
from soda_tta.judging.paired_gain import CALIBRATING, PairedGain
from soda_tta.types import Array

CLASSES = 5


def responses(random: np.random.Generator, clarity: float, label: int) -> Array:
    """Two views of an image, of which more is recognised the clearer it is."""
    logits = random.normal(0, 1, (1, CLASSES)) + random.normal(0, 0.7, (2, CLASSES))
    logits[:, label] += clarity
    powers = np.exp(2 * logits)
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fed(test, clarities: tuple[float, float], images: int, change=lambda rows: rows):
    """The test after so many images of two adaptors of which these clarities remain."""
    random = np.random.default_rng(1)
    for _ in range(images):
        label = int(random.integers(CLASSES))
        first, second = (responses(random, clarity, label) for clarity in clarities)
        test.add(first, change(second))
    return test


def test_a_clear_gain_passes() -> None:
    gate = fed(Gate(0.001), (1.0, 3.0), 150)
    assert gate.passed and gate.gain > 0.1


def test_no_gain_does_not_pass() -> None:
    gate = fed(Gate(0.01), (2.0, 2.0), 300)
    assert not gate.passed


def test_harm_does_not_pass_and_is_given_up() -> None:
    gate = fed(Gate(0.01), (3.0, 1.0), 100)
    assert not gate.passed and gate.hopeless


@pytest.mark.parametrize("exponent", [0.3, 3.0])
def test_more_or_less_confidence_alone_does_not_pass(exponent: float) -> None:
    def changed(rows: Array) -> Array:
        powers = rows**exponent
        return powers / powers.sum(axis=1, keepdims=True)

    gate = fed(Gate(0.05), (2.0, 2.0), 300, changed)
    assert not gate.passed


def test_one_class_for_everything_does_not_pass() -> None:
    always = np.array([[0.96, 0.01, 0.01, 0.01, 0.01]] * 2)
    gate = fed(Gate(0.05), (2.0, 2.0), 200, lambda rows: always)
    assert not gate.passed


def test_random_classes_in_place_of_the_one_that_all_images_have_do_not_pass() -> None:
    """On images of one class, answers that split up match better than by chance, and are wrong."""
    random = np.random.default_rng(2)
    gate = Gate(0.05)
    for _ in range(400):
        right = np.full((2, CLASSES), 0.02) + 0.9 * np.eye(CLASSES)[0]
        first = int(random.integers(2))
        second = first if random.random() < 0.8 else 1 - first
        split = np.full((2, CLASSES), 0.02) + 0.9 * np.eye(CLASSES)[[first, second]]
        gate.add(right, split)
    assert gate.capital.reaches(0.05)  # the measure alone would have been deceived
    assert not gate.passed


def test_the_first_images_only_calibrate() -> None:
    gains = PairedGain()
    random = np.random.default_rng(0)
    added = [gains.add(*[responses(random, 2, 0)] * 2) for _ in range(CALIBRATING + 1)]
    assert added[:-1] == [None] * CALIBRATING
    assert added[-1] is not None and -0.1 < added[-1].matching < 0.1


def test_the_watch_keeps_an_adaptor_that_wins_and_rolls_back_one_that_harms() -> None:
    winning = fed(Watch(0.01), (1.0, 3.0), 300)
    assert not winning.failed
    assert fed(winning, (3.0, 1.0), 120).failed
    assert "better as they are" in winning.reason


def test_the_watch_notices_that_an_adaptor_became_useless() -> None:
    watch = fed(Watch(0.01), (3.0, 3.0), 5, lambda rows: rows)
    random = np.random.default_rng(3)
    for _ in range(1500):
        same = responses(random, 3.0, int(random.integers(CLASSES)))
        watch.add(same, same)
        if watch.failed:
            break
    assert watch.failed and "as well as they are" in watch.reason


@pytest.mark.parametrize("kind", [Gate, Watch])
def test_a_test_continues_bit_for_bit(kind) -> None:
    first = fed(kind(0.01), (2.0, 2.3), 61)
    second = kind(0.5)
    second.restore(first.state())
    fed(first, (2.0, 2.3), 40)
    fed(second, (2.0, 2.3), 40)
    for name, array in first.state().items():
        assert np.array_equal(array, second.state()[name]), name
