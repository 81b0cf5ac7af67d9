"""Which pseudo-labels are trusted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.errors import MethodError
from soda_tta.objectives.reliable import Reliable
from soda_tta.settings import meanings_of


def rows(*confidences: tuple[int, float]) -> np.ndarray:
    """Two classes; each pair is (class, confidence)."""
    return np.array([[c, 1 - c] if label == 0 else [1 - c, c] for label, c in confidences])


def test_selection_by_hand() -> None:
    # n = 6, C = 2, rho = 0.5: at most floor(0.5 * 6 / 2) = 1 per class, above tau = 0.8
    probabilities = rows((0, 0.9), (0, 0.95), (0, 0.7), (1, 0.85), (1, 0.81), (1, 0.6))
    selection = Reliable(tau=0.8, rho=0.5)(probabilities)
    assert selection.reliable.tolist() == [False, True, False, True, False, False]
    assert selection.labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_misaligned_labels_are_the_reliable_labels_sorted_by_class() -> None:
    # images 0, 2, 3 and 5 are reliable with classes 1, 0, 1, 0; sorted by class: 0, 0, 1, 1
    probabilities = rows((1, 0.9), (0, 0.6), (0, 0.95), (1, 0.85), (1, 0.7), (0, 0.99))
    aligned, misaligned = (
        Reliable(tau=0.8, rho=0.0, aligned=each)(probabilities) for each in (True, False)
    )
    assert aligned.labels.tolist() == [1, 0, 0, 1, 1, 0]
    everything = np.arange(6)
    assert aligned.of(everything)[0].tolist() == [1, 0, 0, 1, 1, 0]
    # images 1 and 4 keep their labels: they are not reliable
    assert misaligned.of(everything)[0].tolist() == [0, 0, 0, 1, 1, 1]
    # in another batch the same images get other labels
    assert misaligned.of(np.array([0, 2]))[0].tolist() == [0, 1]
    reliable = [True, False, True, True, False, True]
    assert misaligned.reliable.tolist() == aligned.reliable.tolist() == reliable


def test_about_a_tenth_of_misaligned_labels_are_right_by_chance() -> None:
    probabilities = np.random.default_rng(0).dirichlet(np.full(10, 0.05), 5000)
    aligned, misaligned = (
        Reliable(tau=0.9, rho=0.5, aligned=each)(probabilities) for each in (True, False)
    )
    right = (aligned.labels == misaligned.of(np.arange(5000))[0])[aligned.reliable].mean()
    assert 0.05 < right < 0.2  # the released code: about 13 %


def test_binary_fractions_do_not_lower_the_limit() -> None:
    probabilities = np.full((1000, 10), 0.001)
    probabilities[np.arange(1000), np.arange(1000) % 10] = 0.991
    # (1 - 0.9) * 1000 / 10 is 9.9999... in binary
    assert Reliable(tau=0.9, rho=0.9)(probabilities).reliable.sum() == 100


def test_confidence_must_exceed_tau_not_reach_it() -> None:
    assert not Reliable(tau=0.75, rho=0.0)(rows((0, 0.75), (1, 0.75))).reliable.any()


def test_an_empty_selection_is_not_an_error() -> None:
    assert not Reliable(tau=0.9, rho=0.9)(np.full((20, 4), 0.25)).reliable.any()


@given(st.integers(1, 60), st.integers(2, 6), st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
def test_no_class_exceeds_its_share_and_no_confidence_is_below_tau(
    n: int, classes: int, tau: float, rho: float, seed: int
) -> None:
    probabilities = np.random.default_rng(seed).dirichlet(np.full(classes, 0.2), n)
    selection = Reliable(tau=tau, rho=rho)(probabilities)
    assert (probabilities.max(axis=1)[selection.reliable] > tau).all()
    counts = np.bincount(selection.labels[selection.reliable], minlength=classes)
    assert counts.max() <= (1 - rho) * n / classes + 1e-6


@pytest.mark.parametrize("wrong", [{"tau": 1.1}, {"rho": -0.1}])
def test_thresholds_outside_of_0_to_1_are_refused(wrong) -> None:
    with pytest.raises(MethodError):
        Reliable(**wrong)


def test_every_setting_has_a_help_text() -> None:
    assert all(meanings_of(Reliable()).values())
