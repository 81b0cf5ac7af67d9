"""Before the first query: is everything there that the cells need?"""

from __future__ import annotations

from collections.abc import Sequence

from soda_tta import zoo
from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import open_data
from soda_tta.errors import RecipeError


def check_there(cells: Sequence[Cell]) -> None:
    """Fails with one sentence where each cell would fail with the same."""
    most: dict[str, int] = {}
    for cell in cells:
        most[cell.data] = max(cell.images, most.get(cell.data, 0))
    for data, images in most.items():
        labels = open_data(data).labels
        if labels is None:
            raise RecipeError(f"{data} has no labels; the bench needs them to measure.")
        if len(labels) < images:
            raise RecipeError(f"{data} has {len(labels):,} images and a cell asks for {images:,}; set images.")
    models = {cell.model for cell in cells if not cell.of_own_model}
    models |= {cell.numbers["target"] for cell in cells if cell.numbers.get("target") in zoo.ENTRIES}
    for model in sorted(models):
        zoo.find(model).weights()
