import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.errors import MethodError
from soda_tta.objectives.reliable import Reliable


def rows(*confidences_of: tuple[int, float]) -> np.ndarray:
    """Two classes; each pair is (class, confidence)."""
    return np.array([[c, 1 - c] if label == 0 else [1 - c, c] for label, c in confidences_of])


def test_selection_by_hand() -> None:
    # n = 6, C = 2, rho = 0.5: at most floor(0.5 * 6 / 2) = 1 a class, above tau = 0.8
    answers = rows((0, 0.9), (0, 0.95), (0, 0.7), (1, 0.85), (1, 0.81), (1, 0.6))
    selection = Reliable(tau=0.8, rho=0.5)(answers)
    assert selection.reliable.tolist() == [False, True, False, True, False, False]
    assert selection.labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_misaligned_labels_are_those_of_the_reliable_images_class_by_class() -> None:
    # reliable are images 0, 2, 3 and 5 with classes 1, 0, 1, 0; listed class by class that is 0, 0, 1, 1
    answers = rows((1, 0.9), (0, 0.6), (0, 0.95), (1, 0.85), (1, 0.7), (0, 0.99))
    aligned, misaligned = (
        Reliable(tau=0.8, rho=0.0, aligned=each)(answers) for each in (True, False)
    )
    assert aligned.labels.tolist() == [1, 0, 0, 1, 1, 0]
    everything = np.arange(6)
    assert aligned.of(everything)[0].tolist() == [1, 0, 0, 1, 1, 0]
    assert misaligned.of(everything)[0].tolist() == [
        0,
        0,
        0,
        1,
        1,
        1,
    ]  # images 1 and 4 keep theirs: not reliable
    assert misaligned.of(np.array([0, 2]))[0].tolist() == [
        0,
        1,
    ]  # in another batch the same images get others
    assert (
        misaligned.reliable.tolist()
        == aligned.reliable.tolist()
        == [True, False, True, True, False, True]
    )


def test_about_a_tenth_of_misaligned_labels_are_right_by_chance() -> None:
    answers = np.random.default_rng(0).dirichlet(np.full(10, 0.05), 5000)
    aligned, misaligned = (
        Reliable(tau=0.9, rho=0.5, aligned=each)(answers) for each in (True, False)
    )
    right = (aligned.labels == misaligned.of(np.arange(5000))[0])[aligned.reliable].mean()
    assert 0.05 < right < 0.2  # the released code: about 13 %


def test_the_limit_is_not_lost_to_binary_fractions() -> None:
    answers = np.full((1000, 10), 0.001)
    answers[np.arange(1000), np.arange(1000) % 10] = 0.991
    assert (
        Reliable(tau=0.9, rho=0.9)(answers).reliable.sum() == 100
    )  # (1 - 0.9) * 1000 / 10 is 9.9999... in binary


def test_confidence_must_exceed_tau_not_reach_it() -> None:
    assert not Reliable(tau=0.75, rho=0.0)(rows((0, 0.75), (1, 0.75))).reliable.any()


def test_nothing_reliable_is_an_answer_not_an_error() -> None:
    assert not Reliable(tau=0.9, rho=0.9)(np.full((20, 4), 0.25)).reliable.any()


@given(st.integers(1, 60), st.integers(2, 6), st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
def test_no_class_exceeds_its_share_and_none_is_below_tau(
    n: int, classes: int, tau: float, rho: float, seed: int
) -> None:
    answers = np.random.default_rng(seed).dirichlet(np.full(classes, 0.2), n)
    selection = Reliable(tau=tau, rho=rho)(answers)
    assert (answers.max(axis=1)[selection.reliable] > tau).all()
    assert (
        np.bincount(selection.labels[selection.reliable], minlength=classes).max()
        <= (1 - rho) * n / classes + 1e-6
    )


@pytest.mark.parametrize("wrong", [{"tau": 1.1}, {"rho": -0.1}])
def test_impossible_thresholds_are_refused(wrong) -> None:
    with pytest.raises(MethodError):
        Reliable(**wrong)
