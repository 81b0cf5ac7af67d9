"""Values of the facts in `box/facts.py`: how each is checked, and read from the command line.

A check takes the name of the fact, the stated value and the dataclass that holds all facts. It
returns the value in its normal form or raises a `BoxError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from soda_tta.box.quantisation import BYTES
from soda_tta.errors import BoxError

Check = Callable[[str, Any, Any], Any]


def true_or_false(name: str, value: Any, facts: Any) -> bool:
    """Accept anything that is true or false."""
    return bool(value)


def one_of(*choices: str | int, noun: str) -> Check:
    """Accept one of these values only."""
    listed = f"{', '.join(str(choice) for choice in choices[:-1])} or {choices[-1]}"

    def check(name: str, value: Any, facts: Any) -> Any:
        if value not in choices:
            raise BoxError(f"{value!r} is not a valid {noun}; choose {listed}.")
        return value

    return check


def check_size(name: str, value: int | Sequence[int] | None, facts: Any) -> Any:
    """Height and width in pixels from one number or two; None means any size."""
    if value is None:
        return None
    sides = (value, value) if isinstance(value, int) else tuple(value)
    if len(sides) != 2 or min(sides) < 1:
        raise BoxError(
            f"{value} is not a valid {name}; pass one positive number, or height and width."
        )
    return int(sides[0]), int(sides[1])


def share_or_none(name: str, value: float | None, facts: Any) -> float | None:
    """A share above 0 and at most 1, or None."""
    if value is None:
        return None
    if not 0 < value <= 1:  # also refuses NaN
        raise BoxError(f"{value} is not a valid {name}; pass a share above 0 and at most 1.")
    return float(value)


def pixel_range_of(name: str, value: float | None, facts: Any) -> float:
    """The largest pixel value; without a statement it follows from the element type."""
    if value is None:
        return 255.0 if facts.dtype in BYTES else 1.0
    if not value > 0:  # also refuses NaN
        raise BoxError(f"{value} is not a valid {name}: it must be positive; use 1 or 255.")
    return value


def check_channel_values(name: str, value: Any, facts: Any) -> tuple[float, ...]:
    """Three numbers, one per channel, from three or from one for all."""
    values = tuple(float(number) for number in np.atleast_1d(value))
    if len(values) not in (1, 3):
        raise BoxError(f"{name} has {len(values)} values; pass one, or one per channel (3).")
    return values * 3 if len(values) == 1 else values


def check_positive_channel_values(name: str, value: Any, facts: Any) -> tuple[float, ...]:
    """As `check_channel_values`, all of them positive."""
    values = check_channel_values(name, value, facts)
    if min(values) <= 0:
        raise BoxError(f"{name} is {values}; every value must be positive.")
    return values


def check_quantisation(name: str, value: Any, facts: Any) -> tuple[float, int] | None:
    """Scale and zero point of bytes; None if they are the pixels."""
    if value is None:
        return None
    scale, zero_point = value
    if not 0 < scale < np.inf:
        raise BoxError(f"{scale} is not a valid scale of a {name}; it must be positive.")
    return float(scale), int(zero_point)


def comma_separated(text: str) -> tuple[float, ...]:
    """Read '0.49,0.48,0.45' as numbers.

    >>> comma_separated("0.49,0.48,0.45")
    (0.49, 0.48, 0.45)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{text!r} is not a number, or three separated by commas") from None
