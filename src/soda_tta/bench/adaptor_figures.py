"""The data of the figures that show what an adaptor learned: pictures, and features (t-SNE)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta import zoo
from soda_tta.adaptors import Adaptor
from soda_tta.bench.cell import Cell
from soda_tta.bench.columns import column_names
from soda_tta.bench.measurement import cell_images
from soda_tta.bench.runner import run_in_folder
from soda_tta.bench.store import Store
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.data.dataset import Dataset
from soda_tta.errors import SodaError
from soda_tta.types import Array

FEATURE_BATCH = 32  # images


def find_cells(store: Store, method: str, corruption: str | None = None) -> list[Cell]:
    """The cells of a method, one per corruption, in the paper's order.

    Parameters
    ----------
    store : the results.
    method : the name of a method. If the store has it with several settings, the name of a column
        of the store's table.
    corruption : only this one (default: all).
    """
    cells = [cell for cell, _ in store]
    columns = column_names(cells)
    by_corruption: dict[str, Cell] = {}
    matching: set[str] = set()
    for cell, column in zip(cells, columns, strict=True):
        name = column if method in columns else cell.method
        if name == method and corruption in (None, cell.corruption):
            by_corruption.setdefault(cell.corruption, cell)
            matching.add(column)
    if not by_corruption:
        where = f" on {corruption}" if corruption else ""
        raise SodaError(
            f"this store has no cell of {method}{where}; choose another method or corruption."
        )
    if len(matching) > 1:
        choices = ", ".join(f"'{column}'" for column in sorted(matching))
        raise SodaError(f"this store has {method} with several settings; choose one of {choices}.")
    order = dict.fromkeys((*CORRUPTIONS, *by_corruption))
    return [by_corruption[name] for name in order if name in by_corruption]


def load_adaptor(store: Store, cell: Cell) -> Adaptor:
    """The adaptor of a cell. The cell is run again if a store from elsewhere does not have it."""
    path = store.adaptor_path(cell)
    if not path.exists():
        with tempfile.TemporaryDirectory() as folder:
            store.keep_adaptor(cell, run_in_folder(cell, Path(folder)).adaptor)
    return Adaptor.load(path)


def check_changed(cells: list[Cell], adaptors: list[Adaptor], remedy: str) -> None:
    """Refuse a figure in which no adaptor changes the images."""
    if all(adaptor.kind == "identity" for adaptor in adaptors):
        corruptions = ", ".join(cell.corruption for cell in cells)
        raise SodaError(
            f"{cells[0].method} left the images of {corruptions} unchanged: "
            f"there is nothing to show; {remedy}."
        )


def pictures(store: Store, method: str = "soda", image: int = 0) -> dict[str, Any]:
    """One image before corruption, corrupted and adapted, for every corruption of the store.

    Each picture comes with its distance to the original: the root mean square in pixel values of
    0 to 255.
    """
    cells = find_cells(store, method)
    adaptors = [load_adaptor(store, cell) for cell in cells]
    check_changed(cells, adaptors, "choose another method")
    shown = [
        show_image(cell, adaptor, image) for cell, adaptor in zip(cells, adaptors, strict=True)
    ]
    return {"method": method, "image": image, "pictures": shown}


def show_image(cell: Cell, adaptor: Adaptor, image: int) -> dict[str, Any]:
    """The pixels of one image of a cell in its three versions."""
    images = cell_images(cell)
    source: Dataset = getattr(images, "source", images)
    if not 0 <= image < len(images):
        raise SodaError(f"there is no image {image}; the cells of this store have {len(images)}.")
    original = source[slice(image, image + 1)]
    corrupted = images[slice(image, image + 1)]
    versions = {"original": original, "corrupted": corrupted, "adapted": adaptor(corrupted)}
    return {
        "corruption": cell.corruption,
        "distance": {
            name: float(np.sqrt(np.mean((version - original) ** 2)) * 255)
            for name, version in versions.items()
        },
        **{
            name: np.rint(version[0].transpose(1, 2, 0) * 255).astype(int).tolist()
            for name, version in versions.items()
        },
    }


def tsne(store: Store, method: str = "soda", corruption: str | None = None) -> dict[str, Any]:
    """The model's last features of every image, before and after, in one plane."""
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise SodaError("a t-SNE figure needs scikit-learn: pip install scikit-learn.") from error
    cell = find_cells(store, method, corruption)[0]
    if cell.uses_model_file:
        raise SodaError(
            f"features are only visible in a model of the zoo, and {cell.model} is an ONNX file."
        )
    images = cell_images(cell)
    assert images.labels is not None
    adaptor = load_adaptor(store, cell)
    remedy = "choose another method or corruption"
    check_changed([cell], [adaptor], remedy)
    before = features(cell.model, images, None)
    after = features(cell.model, images, adaptor)
    perplexity = min(30.0, len(images) / 4)
    both = np.concatenate([before, after])
    plane = TSNE(random_state=0, perplexity=perplexity, init="pca").fit_transform(both)
    positions = [[[round(float(v), 2) for v in row] for row in part] for part in np.split(plane, 2)]
    labels = [int(label) for label in images.labels]
    return {
        "method": method,
        "corruption": cell.corruption,
        "labels": labels,
        "classes": list(images.classes or map(str, range(max(labels) + 1))),
        "before": positions[0],
        "after": positions[1],
    }


def features(model: str, images: Dataset, adaptor: Adaptor | None) -> Array:
    """The input of the last layer of a zoo model, one row per image."""
    import torch

    network: Any = zoo.module(model)
    prepare = zoo.ENTRIES[model].input.prepare
    rows = []
    for start in range(0, len(images), FEATURE_BATCH):
        batch = images[slice(start, start + FEATURE_BATCH)]
        pixels = prepare(batch if adaptor is None else adaptor(batch))
        with torch.inference_mode():
            rows.append(network.features(torch.from_numpy(pixels)).numpy())
    return np.concatenate(rows)
