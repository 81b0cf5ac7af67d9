"""Recipes: values of several parts of the bank together, from which a search may begin.

A search from nothing changes one part at a time, on few images. A recipe is what a long search
found against a generic degradation of other images (`benchmarks/recipes.py`). Which recipe suits
the images at hand, if any, one round of queries tells.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from soda_tta.adaptors.parts import PARTS
from soda_tta.adaptors.recipe_table import RECIPES
from soda_tta.types import Array


@cache
def usable_recipes(allowed: tuple[bool, ...]) -> Array:
    """The recipes, without the parts that a search must leave alone.

    Parameters
    ----------
    allowed : one truth value for each of `PARTS`
        Which parts may be used.

    Returns
    -------
    array of shape (m, len(PARTS)); no two rows are alike and none is zero

    Examples
    --------
    >>> everything, nothing = (True,) * len(PARTS), (False,) * len(PARTS)
    >>> 0 < len(usable_recipes(everything)) <= len(RECIPES), len(usable_recipes(nothing))
    (True, 0)
    """
    values = [[recipe.get(part.name, 0.0) for part in PARTS] for recipe in RECIPES.values()]
    usable = np.array(values) * np.array(allowed)
    rows = np.unique(usable[usable.any(axis=1)], axis=0)
    rows.setflags(write=False)  # every caller gets the same array
    return rows
