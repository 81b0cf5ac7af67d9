"""Recipes: values of several parts together, from which a search may begin."""

import numpy as np

from soda_tta.adaptors import Bank, BankAdaptor
from soda_tta.adaptors.parts import PARTS
from soda_tta.adaptors.recipe_table import RECIPES
from soda_tta.adaptors.recipes import usable_recipes

NAMES = [part.name for part in PARTS]
ALL = (True,) * len(PARTS)


def test_every_value_belongs_to_a_part_and_a_recipe_changes_images() -> None:
    images = np.random.default_rng(0).random((2, 3, 32, 32), dtype=np.float32)
    for values in RECIPES.values():
        assert set(values) <= set(NAMES)
        adapted = Bank().adaptor(values)(images)
        assert adapted.min() >= 0 and adapted.max() <= 1 and np.abs(adapted - images).max() > 0.01


def test_parts_that_must_be_left_alone_are_left_out() -> None:
    allowed = np.array([part.family != "colour" for part in PARTS])
    rows = usable_recipes(tuple(allowed))
    assert 0 < len(rows) <= len(RECIPES)
    assert not rows[:, ~allowed].any() and rows.any(axis=1).all()
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_the_rows_are_the_recipes() -> None:
    described = {
        BankAdaptor(structure=Bank(), parameters=row).describe() for row in usable_recipes(ALL)
    }
    assert described == {Bank().adaptor(values).describe() for values in RECIPES.values()}
