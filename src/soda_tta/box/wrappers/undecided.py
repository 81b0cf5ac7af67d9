"""A model whose input convention is still to be found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from soda_tta.box.box import Box, Wrapper
from soda_tta.errors import BoxError
from soda_tta.types import Array


class Undecided(Wrapper):
    """A box that takes no images before its convention is found from some.

    Parameters
    ----------
    box : Box
        The model, with what is known about it.
    fixed : iterable of str
        Names of the facts that are known. The others are to be found.
    own : mapping, optional
        The user's own normalisations to try, by name.
    """

    def __init__(
        self, box: Box, fixed: Iterable[str] = (), own: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(box)
        self.fixed = frozenset(fixed)
        self.own = dict(own or {})

    def __call__(self, images: Array) -> Array:
        raise BoxError(
            "the input convention of the model is not known yet; find it with "
            "find_convention(images, box).box, or state it: mean, std, pixel_range and channels."
        )
