"""Run a cell and measure its accuracy. Labels are used here and nowhere in the engine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from statistics import mean

import numpy as np

from soda_tta.bench.cell import CLEAN, Cell
from soda_tta.bench.result import CellResult, pack_correct
from soda_tta.data import Corrupted, load_dataset
from soda_tta.data.catalogue import spelled
from soda_tta.data.dataset import Dataset
from soda_tta.engine.adapt import adapt
from soda_tta.engine.events import Epoch, Event, Step
from soda_tta.engine.run import Run
from soda_tta.errors import MethodError, RunError, StorageError
from soda_tta.methods import code_of
from soda_tta.storage.atomic import write_text
from soda_tta.storage.run_folder import RunFolder
from soda_tta.types import Array

MEASURED_TOGETHER = 512  # images in memory at once while a curve is measured


def run_cell(cell: Cell, working: Path | None = None) -> CellResult:
    """Run a cell and measure it.

    Parameters
    ----------
    cell : what to run.
    working : a folder for the state of the run (default: none is kept). If the folder holds an
        unfinished run of this cell, that run is resumed.
    """
    images = cell_images(cell)
    assert images.labels is not None
    check_fit(cell, images, images.labels)
    restarts: list[str] = []
    try:
        run, curve = start_cell(cell, images, working)
    except StorageError:
        raise  # the run can be resumed once the folder is writable again
    except RunError as error:
        if working is None or not RunFolder(working).holds_run:
            raise
        # The folder is named by the hash of the cell. Another run in it is thus the same cell, run
        # by another version of the code.
        restarts.append(str(error))
        run, curve = restart_cell(cell, images, working)
    if working and cell.budget and run.ledger.lost:
        restarts.append("requests lost in a crash were charged to its budget")
        run, curve = restart_cell(cell, images, working)
    return measure(cell, run, unadapted(cell, run, images), images.labels, curve, restarts)


def unadapted(cell: Cell, run: Run, images: Dataset) -> Array:
    """The answers to the images as they are; for a method without a first pass, asked for here.

    These queries go to the bench's own box and are not counted: the method did not need them.
    """
    if run.before.size and not np.isnan(run.before).any():
        return run.before
    box = cell.box("onnx")
    starts = range(0, len(images), MEASURED_TOGETHER)
    rows = [box(images[slice(start, start + MEASURED_TOGETHER)]) for start in starts]
    return np.concatenate(rows)


def measure(
    cell: Cell,
    run: Run,
    unadapted: Array,
    labels: Array,
    curve: CurveRecorder,
    restarts: list[str],
) -> CellResult:
    """Compare the answers of a run with the labels."""
    return CellResult(
        before=accuracy(unadapted, labels),
        after=accuracy(run.probabilities, labels),
        queries_per_image=run.ledger.answered / len(labels),  # without requests lost in a crash
        queries=dict(run.ledger.queries),
        correct={
            "before": pack_correct(unadapted, labels),
            "after": pack_correct(run.probabilities, labels),
        },
        stopped=run.stopped,
        adaptor=run.adaptor.describe(),
        verdict=None if run.verdict is None else run.verdict.facts(),
        seconds=round(run.seconds, 2),
        notices=[
            *(f"an unfinished cell was restarted: {reason}" for reason in restarts),
            *([run.reason] if run.stopped == "budget" or learned_nothing(run) else []),
            *run.notices,
        ],
        losses=epoch_losses(run.history),
        curve=curve.points,
        card=run.card.facts(),
        code=code_of(cell.method),
    )


def learned_nothing(run: Run) -> bool:
    """Whether a method that was to learn did not even begin, as with too few scenes."""
    return "probe" in run.card.plan["queries"] and "probe" not in run.ledger.queries


def check_fit(cell: Cell, images: Dataset, labels: Array) -> None:
    """Refuse fewer images than the cell names, and a model for fewer classes than the labels."""
    if len(labels) < cell.images:
        raise MethodError(
            f"{cell.data} has {len(labels):,} images and the cell needs {cell.images:,}; "
            "lower images."
        )
    classes = cell.box()(images[slice(0, 1)]).shape[1]
    if labels.max() >= classes:
        raise MethodError(
            f"{cell.model} has {classes:,} classes and the labels of {cell.data} go up to "
            f"{labels.max():,}; choose another model."
        )


def restart_cell(cell: Cell, images: Dataset, working: Path) -> tuple[Run, CurveRecorder]:
    """Discard an unfinished run whose result would differ from that of an undisturbed run."""
    shutil.rmtree(working)
    curve_file(working).unlink(missing_ok=True)
    return start_cell(cell, images, working)


def start_cell(cell: Cell, images: Dataset, working: Path | None) -> tuple[Run, CurveRecorder]:
    """Adapt the images; resume if the folder holds a run."""
    curve = CurveRecorder(cell, images, curve_file(working) if working else None)
    run = adapt(
        images,
        cell.box(),
        method=cell.method,
        budget=cell.budget,
        seed=cell.seed,
        out=working,
        resume=RunFolder(working).holds_run,
        listener=curve,
        **cell.settings,
    )
    return run, curve


def curve_file(working: Path) -> Path:
    """The file with the measured points of an unfinished cell, next to the run's folder."""
    return working.with_suffix(".curve")


def cell_images(cell: Cell) -> Dataset:
    """The images of a cell, corrupted and ordered as it says."""
    source = open_data(cell.data)
    if source.labels is None:
        raise MethodError(f"{cell.data} has no labels; the bench needs them to measure accuracy.")
    images = source.subset(select_images(source.labels, cell.images))
    if cell.corruption != CLEAN:
        images = Corrupted(images, cell.corruption, cell.severity, seed=0)
    if cell.order == "classes":
        # Sort after corrupting: the noise of an image depends on its place.
        assert images.labels is not None
        images = images.subset(np.argsort(images.labels, kind="stable"))
    return images


def open_data(data: str) -> Dataset:
    """A data set by its name or path, or a domain of a known one as "name/domain"."""
    name, _, domain = data.partition("/")
    if domain and spelled(name):
        return load_dataset(name, domain=domain)
    return load_dataset(data)


def select_images(labels: Array, count: int) -> Array | slice:
    """The first `count` images, or evenly spaced ones if the labels are sorted by class.

    >>> select_images(np.array([2, 0, 1, 0]), 2)
    slice(0, 2, None)
    >>> select_images(np.repeat([0, 1, 2], 10), 3).tolist()
    [0, 14, 29]
    """
    if count < len(labels) and (np.diff(labels) >= 0).all():
        indices: Array = np.linspace(0, len(labels) - 1, count).round().astype(int)
        return indices
    return slice(0, count)


def accuracy(probabilities: Array, labels: Array) -> float:
    """The share of correct answers, in per cent.

    >>> accuracy(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 0]))
    50.0
    """
    return round(100 * float((probabilities.argmax(axis=1) == labels).mean()), 3)


def epoch_losses(history: list[Step]) -> list[float]:
    """The mean loss of each epoch: it compares runs at several rates, say, without labels."""
    by_epoch: dict[int, list[float]] = {}
    for step in history:
        by_epoch.setdefault(step.epoch, []).append(step.loss)
    return [round(mean(losses), 5) for losses in by_epoch.values()]


class CurveRecorder:
    """Measures the accuracy of the adaptor while it learns.

    The queries go to the bench's own box and are not counted. The points are kept in a file,
    because a resumed run does not repeat its first epochs.
    """

    def __init__(self, cell: Cell, images: Dataset, path: Path | None) -> None:
        self.interval = cell.curve
        self.images = images
        self.path = path
        self.unmetered_box = cell.box("onnx") if cell.curve else None
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.points: list[dict[str, float]] = [json.loads(line) for line in lines]

    def __call__(self, event: Event) -> None:
        """Add a point at the end of every `interval`-th epoch."""
        if self.unmetered_box is None:
            return
        if not isinstance(event, Epoch) or event.epoch % self.interval:
            return
        if any(point["epoch"] == event.epoch and point["lr"] == event.lr for point in self.points):
            return  # a resumed run reports this epoch a second time
        assert self.images.labels is not None
        probabilities = [
            self.unmetered_box(event.adaptor(self.images[slice(start, start + MEASURED_TOGETHER)]))
            for start in range(0, len(self.images), MEASURED_TOGETHER)
        ]
        point = {
            "epoch": event.epoch,
            "queries": event.queries,
            "loss": event.loss,
            "lr": event.lr,
            "accuracy": accuracy(np.concatenate(probabilities), self.images.labels),
        }
        self.points.append(point)
        if self.path:
            write_text(self.path, "".join(json.dumps(point) + "\n" for point in self.points))
