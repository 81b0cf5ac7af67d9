"""Words that depend on a number."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the singular for one.

    >>> counted(1, "image"), counted(2000, "clean image")
    ('1 image', '2,000 clean images')
    """
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural}"
