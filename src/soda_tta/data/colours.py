"""The colour that shows through where an image is transparent."""

from __future__ import annotations

from collections.abc import Sequence

from soda_tta.errors import ImageError

Colour = tuple[int, int, int]  # red, green and blue, 0 to 255
WHITE: Colour = (255, 255, 255)
NAMED: dict[str, Colour] = {"white": WHITE, "black": (0, 0, 0)}


def colour_of(value: str | Sequence[int]) -> Colour:
    """A colour by name, as text or as three numbers.

    Parameters
    ----------
    value : str or sequence of int
        "white", "black", or red, green and blue from 0 to 255.

    Examples
    --------
    >>> colour_of("black"), colour_of("124,116,104"), colour_of([1, 2, 3])
    ((0, 0, 0), (124, 116, 104), (1, 2, 3))
    """
    if isinstance(value, str) and value in NAMED:
        return NAMED[value]
    try:
        numbers = [int(part) for part in (value.split(",") if isinstance(value, str) else value)]
        red, green, blue = numbers
        if not all(0 <= number <= 255 for number in numbers):
            raise ValueError
    except (TypeError, ValueError):
        raise ImageError(
            f"over={value!r} is not a colour; use white, black, or red, green and blue from 0 to "
            "255 such as 124,116,104."
        ) from None
    return red, green, blue


def colour_text(colour: Sequence[int]) -> str:
    """The name of a colour, or its three numbers.

    >>> colour_text((255, 255, 255)), colour_text((1, 2, 3))
    ('white', '1,2,3')
    """
    names = {numbers: name for name, numbers in NAMED.items()}
    red, green, blue = colour
    return names.get((red, green, blue), f"{red},{green},{blue}")
