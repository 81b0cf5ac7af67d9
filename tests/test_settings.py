"""Settings: help texts, aliases, and the conversion of values from the command line."""

from dataclasses import FrozenInstanceError, dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.errors import MethodError
from soda_tta.settings import ALIASES, convert, meanings_of, setting, without_aliases


@dataclass(frozen=True, kw_only=True)
class Walk:
    lr: float = setting(0.1, "learning rate")
    steps: int = setting(5, "steps per walk")
    plain: int = 3
    others: list = field(default_factory=list)


def test_a_setting_is_a_dataclass_field_with_a_default() -> None:
    assert Walk() == Walk(lr=0.1, steps=5)
    assert Walk(steps=7).steps == 7
    with pytest.raises(FrozenInstanceError):
        Walk().lr = 1.0


def test_meanings_are_the_help_texts_and_empty_for_other_fields() -> None:
    expected = {"lr": "learning rate", "steps": "steps per walk", "plain": "", "others": ""}
    assert meanings_of(Walk()) == meanings_of(Walk) == expected


def test_letters_of_the_paper_become_names() -> None:
    settings = {"q": 10, "mu": 0.01}
    assert without_aliases(settings) == {"directions": 10, "mu": 0.01}
    assert settings == {"q": 10, "mu": 0.01}  # the argument is not changed
    assert without_aliases({}) == {}


@pytest.mark.parametrize(("letter", "name"), ALIASES.items())
def test_a_letter_and_its_name_together_are_refused(letter: str, name: str) -> None:
    with pytest.raises(MethodError, match=f"{letter} and {name} are the same setting; give one"):
        without_aliases({letter: 1, name: 1})


@pytest.mark.parametrize(
    ("value", "like", "expected"),
    [
        ("3", 150, 3),
        ("3.0", 150, 3),
        ("1e3", 150, 1000),
        ("-2", 150, -2),
        (3.0, 150, 3),
        (np.int64(3), 150, 3),
        ("1e-2", 0.1, 0.01),
        ("3", 0.1, 3.0),
        (3, 0.1, 3.0),
        (np.float32(0.5), 0.1, 0.5),
        ("true", False, True),
        ("False", True, False),
        ("TRUE", False, True),
        (True, False, True),
        ("adam", "sgd", "adam"),
        ("3", "sgd", "3"),
        ("", "sgd", ""),
        ((1, 2), (3, 4), (1, 2)),
        ("3", None, "3"),
    ],
)
def test_a_value_takes_the_type_of_the_one_it_replaces(value, like, expected) -> None:
    result = convert("name", value, like)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("value", "like", "message"),
    [
        ("three", 150, "epochs=three is not valid; give a whole number."),
        ("", 150, "epochs= is not valid; give a whole number."),
        ("1.5", 150, "epochs=1.5 is not valid; give a whole number."),
        (1.5, 150, "epochs=1.5 is not valid; give a whole number."),
        ("inf", 150, "epochs=inf is not valid; give a finite number."),
        ("nan", 0.1, "epochs=nan is not valid; give a finite number."),
        (float("nan"), 0.1, "epochs=nan is not valid; give a finite number."),
        (float("-inf"), 150, "epochs=-inf is not valid; give a finite number."),
        ("fast", 0.1, "epochs=fast is not valid; give a number."),
        (True, 150, "epochs=True is not valid; give a number."),
        (False, 0.1, "epochs=False is not valid; give a number."),
        (None, 0.1, "epochs=None is not valid; give a number."),
        ([1], 150, r"epochs=[1] is not valid; give a number."),
        (1j, 0.1, "epochs=1j is not valid; give a number."),
        ("yes", False, "epochs=yes is not valid; give true or false."),
        (1, False, "epochs=1 is not valid; give true or false."),
        (None, True, "epochs=None is not valid; give true or false."),
        (3, "sgd", "epochs=3 is not valid; give a string."),
        (None, "sgd", "epochs=None is not valid; give a string."),
    ],
)
def test_a_value_of_another_type_is_refused_with_the_remedy(value, like, message) -> None:
    with pytest.raises(MethodError) as error:
        convert("epochs", value, like)
    assert str(error.value) == message


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_survives_the_command_line(value: float) -> None:
    assert convert("lr", repr(value), like=0.1) == value


@given(st.integers(-(2**53), 2**53))
def test_whole_numbers_up_to_2_to_the_53_survive_the_command_line(value: int) -> None:
    result = convert("epochs", str(value), like=150)
    assert result == value
    assert type(result) is int
