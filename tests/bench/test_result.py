"""The measurements of a cell."""

import numpy as np
import pytest

from soda_tta.bench import CellResult
from soda_tta.bench.result import pack_correct
from soda_tta.errors import RunError


def test_facts_and_back_give_the_same_result() -> None:
    result = CellResult(before=1.0, after=2.0, queries_per_image=3.0, notices=["a notice"])
    assert CellResult.from_facts(result.facts()) == result


@pytest.mark.parametrize("name", ["before", "after", "queries_per_image"])
def test_a_result_needs_its_three_numbers(name: str) -> None:
    facts = CellResult(before=1.0, after=2.0, queries_per_image=3.0).facts()
    for value in (None, "x"):
        with pytest.raises(RunError, match="needs the numbers"):
            CellResult.from_facts({**facts, name: value})


def test_correct_images_are_recorded_as_bits() -> None:
    labels = np.arange(10) % 2
    probabilities = np.eye(2)[[0, 1, 0, 0, 0, 1, 1, 1, 0, 0]]
    packed = pack_correct(probabilities, labels)
    result = CellResult(
        before=0, after=0, queries_per_image=1, correct={"before": "0000", "after": packed}
    )
    assert result.correct_images(10).tolist() == (probabilities.argmax(axis=1) == labels).tolist()
    assert not result.correct_images(10, "before").any()
    assert CellResult(before=0, after=0, queries_per_image=1).correct_images(10) is None


def test_the_curve_of_a_chosen_rate_leaves_out_the_others() -> None:
    curve = [{"epoch": 1, "lr": lr} for lr in (0.1, 0.01)]
    facts = {"before": 0, "after": 0, "queries_per_image": 1, "curve": curve}
    assert CellResult(**facts).chosen_curve() == curve
    chosen = CellResult(**facts, card={"chosen_lr": 0.01})
    assert chosen.chosen_curve() == curve[1:]
