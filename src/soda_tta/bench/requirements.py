"""Checks before the first query: are the images, labels and weights of all cells there?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from soda_tta import zoo
from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import open_data
from soda_tta.errors import MethodError, SodaError


def missing_requirements(cells: Sequence[Cell]) -> dict[str, str]:
    """The keys of the cells whose images or weights are missing, each with the reason.

    Raises `MethodError` if a cell asks for the impossible, or if no cell at all can run.
    """
    missing: dict[str, str] = {}

    def require(users: Sequence[Cell], load: Callable[[], object]) -> None:
        try:
            load()
        except MethodError:
            raise
        except SodaError as error:
            missing.update({cell.key: str(error) for cell in users})

    for data in dict.fromkeys(cell.data for cell in cells):
        users = [cell for cell in cells if cell.data == data]
        require(users, partial(check_images, data, max(cell.images for cell in users)))
    for model in dict.fromkeys(model for cell in cells for model in zoo_models(cell)):
        users = [cell for cell in cells if model in zoo_models(cell)]
        require(users, zoo.find(model).weights)
    if missing and len(missing) == len(cells):
        raise MethodError("\n".join(dict.fromkeys(missing.values())))
    return missing


def check_images(data: str, images: int) -> None:
    """Refuse data without labels or with too few images."""
    labels = open_data(data).labels
    if labels is None:
        raise MethodError(f"{data} has no labels; the bench needs them to measure accuracy.")
    if len(labels) < images:
        raise MethodError(
            f"{data} has {len(labels):,} images and a cell needs {images:,}; lower images."
        )


def zoo_models(cell: Cell) -> set[str]:
    """The models of the zoo that a cell loads: its own, the start of a local network, a helper."""
    names = {cell.model, cell.settings.get("target"), cell.settings.get("helper")}
    return {name for name in names if isinstance(name, str) and name in zoo.ENTRIES}
