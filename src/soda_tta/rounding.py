"""Where an estimate would drown: probes smaller than the steps in which a model sees its images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box
from soda_tta.search import MultiPoint, PerImage

if TYPE_CHECKING:
    from soda_tta.recipes.recipe import Recipe

Array = np.ndarray[Any, np.dtype[Any]]
LOOKED_AT = 16  # images


def drowned_probes(recipe: Recipe, adaptor: Adaptor, images: Array, box: Box, seed: int) -> str | None:
    """What is wrong and what helps, if a probe moves the pixels by less than the model sees; costs no query."""
    if not box.quantum or not isinstance(recipe.search, MultiPoint | PerImage):
        return None
    probe = recipe.start(adaptor, seed).ask()[:2].astype(np.float32)
    here, there = adaptor.candidates(images[:LOOKED_AT], probe)
    change = float(np.sqrt(np.mean((here - there) ** 2)))
    return drowned(change, recipe.search.mu, box)


def drowned(change: float, mu: float, box: Box) -> str | None:
    """The same of probes with this `mu`, which move the pixels by so much (root mean square)."""
    if not box.quantum or change >= box.quantum:
        return None
    return (
        f"a probe moves pixels by {change * 255:.2g} of an 8-bit step and this model sees only whole steps of "
        f"{box.quantum * 255:.2g}: its differences are rounding noise; raise mu (--set mu="
        f"{mu * 2 * box.quantum / max(change, 1e-12):.1g})."
    )
