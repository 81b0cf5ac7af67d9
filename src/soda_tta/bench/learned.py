"""Figures that show what was learned: features before and after, and pictures."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta import zoo
from soda_tta.adaptors import Adaptor
from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import cell_images, run_cell
from soda_tta.bench.store import Store
from soda_tta.bench.tables import column_names
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.data.dataset import Dataset
from soda_tta.errors import SodaError
from soda_tta.types import Array


def find_cells(store: Store, method: str, corruption: str | None = None) -> list[Cell]:
    """The cells of a method that learns an adaptor, one a corruption, in the paper's order.

    Where a store has the method with several settings, `method` is the name of one column of its table.
    """
    found: dict[str, Cell] = {}
    columns: set[str] = set()
    names = column_names(entries := list(store))
    for (cell, _), column in zip(entries, names, strict=True):
        if method == (column if method in names else cell.method) and corruption in (
            None,
            cell.corruption,
        ):
            found.setdefault(cell.corruption, cell)
            columns.add(column)
    if not found:
        where = f" on {corruption}" if corruption else ""
        raise SodaError(
            f"this store has no cell of {method}{where}; name another (--method, --corruption)."
        )
    if len(columns) > 1:
        known = ", ".join(f"'{column}'" for column in sorted(columns))
        raise SodaError(f"this store has {method} in several ways; name one (--method): {known}.")
    return [found[name] for name in dict.fromkeys((*CORRUPTIONS, *found)) if name in found]


def adaptor_of(store: Store, cell: Cell) -> Adaptor:
    """What a cell has learned; if it was not kept (a store from elsewhere), the cell is run again."""
    path = store.adaptor_path(cell)
    if not path.exists():
        # inside the store: what was learned is then moved, which does not go from one file system to another
        with tempfile.TemporaryDirectory(dir=store.folder, prefix=".again-") as folder:
            run_cell(cell, Path(folder) / "cell")
            store.keep_adaptor(cell, Path(folder) / "cell" / "adaptor.safetensors")
    return Adaptor.load(path)


def check_changed(cells: list[Cell], adaptors: list[Adaptor], remedy: str) -> None:
    """Some methods keep no adaptor, and a verdict may be to leave images as they are."""
    if all(adaptor.kind == "identity" for adaptor in adaptors):
        what = f"{cells[0].method} left the images of {', '.join(cell.corruption for cell in cells)} as they are"
        raise SodaError(f"{what}: there is nothing to show; {remedy}.")


def pictures(store: Store, method: str = "soda", image: int = 0) -> dict[str, Any]:
    """One image as it was, corrupted and adapted, for every corruption of the store.

    The distance to the original (root mean square, in pixels of 0..255) says in a number what the eye sees.
    """
    shown, cells = [], find_cells(store, method)
    adaptors = [adaptor_of(store, cell) for cell in cells]
    check_changed(cells, adaptors, "name another method (--method)")
    for cell, adaptor in zip(cells, adaptors, strict=True):
        corrupted = cell_images(cell)
        source: Dataset = getattr(corrupted, "source", corrupted)
        if not 0 <= image < len(corrupted):
            raise SodaError(
                f"there is no image {image}; the cells of this store have {len(corrupted)}."
            )
        clean, worse = source[slice(image, image + 1)], corrupted[slice(image, image + 1)]
        better = adaptor(worse)
        parts = {"original": clean, "corrupted": worse, "adapted": better}
        pixels = {
            name: np.rint(each[0].transpose(1, 2, 0) * 255).astype(int).tolist()
            for name, each in parts.items()
        }
        distance = {
            name: float(np.sqrt(np.mean((each - clean) ** 2)) * 255) for name, each in parts.items()
        }
        shown.append({"corruption": cell.corruption, "distance": distance, **pixels})
    return {"method": method, "image": image, "pictures": shown}


def tsne(store: Store, method: str = "soda", corruption: str | None = None) -> dict[str, Any]:
    """The model's last features of every image before and after, laid out in the plane together."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise SodaError("a t-SNE figure needs scikit-learn: pip install scikit-learn.") from error
    cell = find_cells(store, method, corruption)[0]
    if cell.model not in zoo.ENTRIES:
        raise SodaError(
            f"features can only be seen inside a white box, and {cell.model} is an ONNX file."
        )
    images, adaptor = cell_images(cell), adaptor_of(store, cell)
    check_changed([cell], [adaptor], "name another method (--method) or corruption (--corruption)")
    assert images.labels is not None
    before, after = (
        Features(cell.model)(images, adaptor if adapted else None) for adapted in (False, True)
    )
    perplexity = min(30.0, len(images) / 4)
    plane = TSNE(random_state=0, perplexity=perplexity, init="pca").fit_transform(
        np.concatenate([before, after])
    )
    places = [[[round(float(v), 2) for v in row] for row in part] for part in np.split(plane, 2)]
    labels = [int(label) for label in images.labels]
    classes = list(images.classes or map(str, range(max(labels) + 1)))
    facts = {"method": method, "corruption": cell.corruption, "labels": labels, "classes": classes}
    return {**facts, "before": places[0], "after": places[1]}


class Features:
    """What the last layer of a zoo model sees."""

    def __init__(self, model: str) -> None:
        self.network: Any = zoo.module(model)
        self.input = zoo.ENTRIES[model].input

    def __call__(self, images: Dataset, adaptor: Adaptor | None) -> Array:
        import torch

        rows = []
        for start in range(0, len(images), 32):
            batch = images[slice(start, start + 32)]
            shown = self.input.prepare(batch if adaptor is None else adaptor(batch))
            with torch.inference_mode():
                rows.append(self.network.features(torch.from_numpy(shown)).numpy())
        return np.concatenate(rows)
