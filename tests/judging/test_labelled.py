"""Labels decide: by hand, and what stands if they cannot."""

from math import comb

import numpy as np
import pytest

from soda_tta.judging.labelled import judge_labelled
from soda_tta.judging.verdict import Verdict

KEEP = Verdict(
    adopt=False, sentence="Keep: ...", before=0, after=0, p_value=1, level=0.01, images=9
)


def answers(right: list[bool]) -> np.ndarray:
    """Rows that name class 0, the true one, or class 1."""
    return np.eye(2)[[0 if each else 1 for each in right]]


def test_the_p_value_is_that_of_the_exact_sign_test() -> None:
    before = answers([False] * 9 + [True] * 11)
    after = answers([True] * 9 + [False] * 1 + [True] * 10)
    verdict = judge_labelled(before, after, np.zeros(20, int), level=0.05)
    assert verdict.p_value == pytest.approx((comb(10, 9) + comb(10, 10)) / 2**10)
    assert verdict.adopt and verdict.basis == "labels" and verdict.measure == "accuracy"
    assert (verdict.before, verdict.after) == (11 / 20, 19 / 20)
    assert "9 images became right and 1 wrong" in verdict.sentence


def test_twenty_labels_catch_a_confident_harm() -> None:
    adopted = Verdict(**{**KEEP.facts(), "adopt": True, "sentence": "Adopt: ..."})
    before = answers([True] * 15 + [False] * 5)
    after = answers([True] * 5 + [False] * 15)
    verdict = judge_labelled(before, after, np.zeros(20, int), level=0.01, otherwise=adopted)
    assert not verdict.adopt
    assert verdict.sentence.startswith("Keep: on 20 independent labelled images")


@pytest.mark.parametrize("adopt", [True, False])
def test_labels_that_show_nothing_leave_the_verdict_as_it_was(adopt: bool) -> None:
    word = "Adopt" if adopt else "Keep"
    otherwise = Verdict(**{**KEEP.facts(), "adopt": adopt, "sentence": f"{word}: ..."})
    rows = answers([True] * 20)
    verdict = judge_labelled(rows, rows, np.zeros(20, int), level=0.01, otherwise=otherwise)
    assert verdict.adopt == adopt
    assert verdict.sentence.startswith(f"{word}: the labels do not decide")


def test_frames_of_one_scene_count_once() -> None:
    before = answers([False] * 20)
    after = answers([True] * 20)
    scenes = np.repeat(np.arange(4), 5)
    verdict = judge_labelled(before, after, np.zeros(20, int), level=0.01, scenes=scenes)
    assert verdict.p_value == pytest.approx(1 / 16)
    assert not verdict.adopt and verdict.independent == 4
