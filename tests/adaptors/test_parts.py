"""The parts of the bank: unique names, descriptions for both signs, typical moves."""

import re

import numpy as np
import pytest

from soda_tta.adaptors.parts import PARTS, describe_parts, moves, scale, units
from soda_tta.errors import MethodError

NAMES = [part.name for part in PARTS]


def parameters(**values: float) -> np.ndarray:
    """All zero except the named parts."""
    theta = np.zeros(len(PARTS), np.float32)
    for name, value in values.items():
        theta[NAMES.index(name)] = value
    return theta


def test_the_description_lists_what_the_bank_does() -> None:
    assert describe_parts(parameters()) == "leaves the image unchanged"
    values = {"median": 0.8, "radius 1.2": -1.3, "contrast": np.log(1.4), "brightness": -0.1}
    description = describe_parts(parameters(**values))
    assert description == (
        "median filter 80%, sharpen (radius 1.2) 130%, contrast x1.40, darker by 0.10"
    )
    # a red of less than anyone would see is not mentioned
    assert describe_parts(parameters(**values, red=1e-4)) == description


def test_radii_in_the_description_grow_with_the_grain() -> None:
    theta = parameters(**{"motion 2.5": -1.2, "radius 0.5": 0.7, "cosine shrinkage 0.3": -0.2})
    assert describe_parts(theta) == (
        "cosine shrinkage (threshold 0.3) -20%, undo motion blur (radius 2.5) 120%, "
        "smooth (radius 0.5) 70%"
    )
    assert describe_parts(theta, grain=2.0) == (
        "cosine shrinkage (threshold 0.6) -20%, undo motion blur (radius 5) 120%, "
        "smooth (radius 0.5) 70%"
    )


def test_every_part_has_a_unique_name_and_a_description_for_both_signs() -> None:
    assert len(set(NAMES)) == len(NAMES) and 10 <= len(NAMES) <= 60
    for part in PARTS:
        more = part.describe(0.5)
        less = part.describe(-0.5)
        assert more != less and not re.search(r"[{}]", more + less), part
        # the amount, in percent or as it is, or the factor whose logarithm it is
        assert "50%" in more or "0.50" in more or "1.65" in more, part


def test_moves_change_one_part_each_by_a_typical_amount() -> None:
    assert (np.count_nonzero(moves(), axis=1) == 1).all()
    assert moves().shape[1] == len(PARTS)
    assert (np.abs(moves()) <= units() + 1e-12).all()
    np.testing.assert_allclose(units(), [1 / scale(part) for part in PARTS])


def test_families_can_be_left_out_but_not_unknown_ones_and_not_all() -> None:
    colours = [index for index, part in enumerate(PARTS) if part.family == "colour"]
    assert not moves(without=("colour",))[:, colours].any()
    with pytest.raises(MethodError, match="no family sound; it has"):
        moves(without=("sound",))
    with pytest.raises(MethodError, match="leave out fewer"):
        moves(without=tuple({part.family for part in PARTS}))
