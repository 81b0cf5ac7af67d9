"""Run a cell and measure what came of it: labels are seen here, and nowhere else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from soda_tta.bench.cell import CLEAN, Cell
from soda_tta.data import load_dataset
from soda_tta.data.catalogue import spelled
from soda_tta.data.dataset import Dataset
from soda_tta.engine.adapt import adapt
from soda_tta.engine.events import Epoch, Event, Step
from soda_tta.engine.run import Run
from soda_tta.errors import MethodError, RunError, StorageError
from soda_tta.methods import code_of
from soda_tta.storage.atomic import write_text
from soda_tta.types import Array


def run_cell(cell: Cell, working: Path | None = None) -> dict[str, Any]:
    """Run a cell and measure it. With `working`, a killed cell continues where it was."""
    images = cell_images(cell)
    assert images.labels is not None
    check_fit(cell, images, images.labels)
    again: list[str] = []
    try:
        run, curve = start_cell(cell, images, working)
    except StorageError:
        raise  # what is paid waits there until it can be gone on with
    except RunError as error:
        if working is None or not (working / "run.json").exists():
            raise
        # its name is the hash of the cell, so another run in it is this cell under other code
        again.append(str(error))
        run, curve = begin_again(cell, images, working)
    if working and cell.budget and run.ledger.lost:
        again.append("requests lost in a kill took from its budget")
        run, curve = begin_again(cell, images, working)
    return {
        "before": accuracy(run.before, images.labels),
        "after": accuracy(run.probabilities, images.labels),
        "right": {
            "before": bits(run.before, images.labels),
            "after": bits(run.probabilities, images.labels),
        },
        "queries": dict(run.ledger.queries),
        "queries_per_image": run.ledger.answered
        / len(images),  # lost in a kill: no part of the method
        "stopped": run.stopped,
        "does": run.adaptor.describe(),
        "verdict": None if run.verdict is None else run.verdict.facts(),
        "seconds": round(run.seconds, 2),
        "notices": [
            *(f"a half-done cell was begun again: {reason}" for reason in again),
            *([run.reason] if run.stopped == "budget" else []),
            *run.notices,
        ],
        "losses": losses(run.history),
        "curve": curve.points,
        "card": run.card.facts(),
        **({} if (code := code_of(cell.method)) is None else {"code": code}),
    }


def check_fit(cell: Cell, images: Dataset, labels: Array) -> None:
    """Numbers that look like results and are none: of a model for other classes, of fewer images than are named."""
    if len(labels) < cell.images:
        raise MethodError(
            f"{cell.data} has {len(labels):,} images and the cell asks for {cell.images:,}; set images."
        )
    classes = cell.box()(images[slice(0, 1)]).shape[1]
    if labels.max() >= classes:
        raise MethodError(
            f"{cell.model} tells {classes:,} classes apart and the labels of {cell.data} go up to {labels.max():,}; "
            "set model."
        )


def begin_again(cell: Cell, images: Dataset, working: Path) -> tuple[Run, Curve]:
    """Forget what an earlier process has done of a cell, where its result would not be that of one undisturbed run."""
    shutil.rmtree(working)
    working.with_suffix(".curve").unlink(missing_ok=True)
    return start_cell(cell, images, working)


def start_cell(cell: Cell, images: Dataset, working: Path | None) -> tuple[Run, Curve]:
    curve = Curve(cell, images, working.with_suffix(".curve") if working else None)
    resume = working is not None and (working / "run.json").exists()
    method, budget, seed = cell.method, cell.budget, cell.seed
    run = adapt(
        images,
        cell.box(),
        method=method,
        budget=budget,
        seed=seed,
        out=working,
        resume=resume,
        listener=curve,
        **cell.settings,
    )
    return run, curve


def cell_images(cell: Cell) -> Dataset:
    everything = open_data(cell.data)
    if everything.labels is None:
        raise MethodError(f"{cell.data} has no labels; the bench needs them to measure.")
    images = everything.subset(chosen_images(everything.labels, cell.images))
    if cell.corruption != CLEAN:
        from soda_tta.data import Corrupted

        images = Corrupted(images, cell.corruption, cell.severity, seed=0)
    if cell.order == "classes":  # after corrupting, which draws by an image's place
        assert images.labels is not None
        images = images.subset(np.argsort(images.labels, kind="stable"))
    return images


def open_data(data: str) -> Dataset:
    name, _, domain = data.partition("/")
    return load_dataset(name, domain=domain) if domain and spelled(name) else load_dataset(data)


def chosen_images(labels: Array, count: int) -> Array | slice:
    """The first so many; of images that lie class by class, so many from everywhere."""
    if count < len(labels) and (np.diff(labels) >= 0).all():
        places: Array = np.linspace(0, len(labels) - 1, count).round().astype(int)
        return places
    return slice(0, count)


def accuracy(probabilities: Array, labels: Array) -> float:
    """In per cent."""
    return round(100 * float((probabilities.argmax(axis=1) == labels).mean()), 3)


def bits(probabilities: Array, labels: Array) -> str:
    """Which images are answered rightly, in hexadecimal: two runs on the same images can be compared one by one."""
    return np.packbits(probabilities.argmax(axis=1) == labels).tobytes().hex()


def losses(history: list[Step]) -> list[float]:
    """The mean loss of each epoch: by it runs can be told apart without labels."""
    found: dict[int, list[float]] = {}
    for step in history:
        found.setdefault(step.epoch, []).append(step.loss)
    return [round(mean(of), 5) for of in found.values()]


def right(result: dict[str, Any], images: int, when: str = "after") -> Array | None:
    """Which images a cell answered rightly; nothing of a cell that was run before this was kept."""
    if "right" not in result:
        return None
    packed = np.frombuffer(bytes.fromhex(result["right"][when]), dtype=np.uint8)
    return np.unpackbits(packed, count=images).astype(bool)


class Curve:
    """Measures the adaptor as it learns: evaluation is the bench's own and is not among the queries.

    Points are kept in a file of their own, because a resumed run does not live its first epochs again.
    """

    def __init__(self, cell: Cell, images: Dataset, path: Path | None) -> None:
        self.every, self.images, self.path = cell.curve, images, path
        self.free = cell.box("onnx") if cell.curve else None
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.points: list[dict[str, float]] = [json.loads(line) for line in lines]

    def __call__(self, event: Event) -> None:
        if self.free is None or not isinstance(event, Epoch) or event.epoch % self.every:
            return
        if any(point["epoch"] == event.epoch and point["lr"] == event.lr for point in self.points):
            return  # told again after a kill
        assert self.images.labels is not None
        starts = range(0, len(self.images), 512)
        pieces = [
            self.free(event.adaptor(self.images[slice(start, start + 512)])) for start in starts
        ]
        score = accuracy(np.concatenate(pieces), self.images.labels)
        facts = {"epoch": event.epoch, "queries": event.queries, "loss": event.loss, "lr": event.lr}
        self.points.append({**facts, "accuracy": score})
        if self.path:
            write_text(self.path, "".join(json.dumps(point) + "\n" for point in self.points))
