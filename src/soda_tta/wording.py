"""Words that depend on a number."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, in the singular for one.

    >>> counted(1, "image"), counted(2000, "clean image"), counted(2, "query", "queries")
    ('1 image', '2,000 clean images', '2 queries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
