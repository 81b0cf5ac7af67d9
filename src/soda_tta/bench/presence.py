"""Before the first query: is everything there that the cells need?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from soda_tta import zoo
from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import open_data
from soda_tta.errors import MethodError, SodaError


def what_is_absent(cells: Sequence[Cell]) -> dict[str, str]:
    """The keys of cells whose images or weights are not there, and why; cells that ask for the impossible fail here."""
    absent: dict[str, str] = {}

    def look(users: Sequence[Cell], find: Callable[[], object]) -> None:
        try:
            find()
        except MethodError:
            raise
        except SodaError as error:
            absent.update({cell.key: str(error) for cell in users})

    for data in dict.fromkeys(cell.data for cell in cells):
        users = [cell for cell in cells if cell.data == data]
        look(
            users,
            lambda data=data, users=users: check_images(data, max(cell.images for cell in users)),
        )  # type: ignore[misc]
    for model in dict.fromkeys(model for cell in cells for model in networks(cell)):
        look([cell for cell in cells if model in networks(cell)], zoo.find(model).weights)
    if absent and len(absent) == len(cells):
        raise MethodError("\n".join(dict.fromkeys(absent.values())))
    return absent


def check_images(data: str, images: int) -> None:
    labels = open_data(data).labels
    if labels is None:
        raise MethodError(f"{data} has no labels; the bench needs them to measure.")
    if len(labels) < images:
        raise MethodError(
            f"{data} has {len(labels):,} images and a cell asks for {images:,}; set images."
        )


def networks(cell: Cell) -> set[str]:
    """The networks of the zoo that it needs."""
    named = set() if cell.of_own_model else {cell.model}
    return named | (
        {cell.settings["target"]} if cell.settings.get("target") in zoo.ENTRIES else set()
    )
