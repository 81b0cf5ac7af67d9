"""A cell of an experiment: one method on one set of images with one seed, and how it is measured."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta import zoo
from soda_tta.adaptation import adapt
from soda_tta.atomic import write_text
from soda_tta.data import load_dataset
from soda_tta.data.corruptions import CORRUPTIONS, SEVERITIES
from soda_tta.data.dataset import Dataset
from soda_tta.errors import RecipeError
from soda_tta.events import Epoch, Event
from soda_tta.plan import plan_run
from soda_tta.recipes import find_method

Array = np.ndarray[Any, np.dtype[Any]]
CLEAN = "clean"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is run. Two cells with the same content are the same cell, whichever grid names them."""

    method: str
    data: str = "cifar10"  # a name or path `load_dataset` knows
    model: str = "cifar10_resnet20"  # of the zoo
    corruption: str = "gaussian_noise"  # or "clean"
    severity: int = 5
    images: int = 500  # the first so many of the test set
    seed: int = 0
    budget: float | None = None
    curve: int = 0  # measure accuracy every so many epochs, on a handle of its own that nobody pays for
    numbers: dict[str, Any] = field(default_factory=dict)  # changes to the method

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def check(self) -> None:
        """Fail now rather than in the middle of a grid; asks nothing and loads nothing."""
        if self.corruption != CLEAN and self.corruption not in CORRUPTIONS:
            raise RecipeError(f"there is no corruption {self.corruption!r}; choose clean, {', '.join(CORRUPTIONS)}.")
        if self.severity not in SEVERITIES:
            raise RecipeError(f"there is no severity {self.severity}; choose one of {SEVERITIES}.")
        if self.model not in zoo.ENTRIES:
            raise RecipeError(f"there is no model {self.model!r}; choose one of {', '.join(zoo.ENTRIES)}.")
        if self.images < 1:
            raise RecipeError(f"a cell of {self.images} images measures nothing.")
        plan_run(find_method(self.method).but(**self.numbers), self.images, self.budget)

    @staticmethod
    def from_facts(facts: dict[str, Any]) -> Cell:
        """A cell from a TOML table or a line of the store."""
        known = {part.name for part in fields(Cell)}
        unknown = sorted(set(facts) - known)
        if unknown or "method" not in facts:
            missing = "method is missing" if "method" not in facts else f"{', '.join(unknown)} is unknown"
            raise RecipeError(f"a cell has {', '.join(sorted(known))}; {missing}.")
        return Cell(**facts)


def run_cell(cell: Cell, working: Path | None = None) -> dict[str, Any]:
    """Run a cell and measure it. With `working`, a killed cell continues where it was."""
    images = cell_images(cell)
    assert images.labels is not None
    kind = "onnx" if find_method(cell.method).needs == "probabilities" else "module"
    curve = Curve(cell, images, working.with_suffix(".curve") if working else None)
    began = time.perf_counter()
    run = adapt(
        images,
        zoo.deployed(cell.model, kind, threads=1),
        cell.method,
        cell.budget,
        cell.seed,
        out=working,
        resume=working is not None and (working / "run.json").exists(),
        listener=curve,
        **cell.numbers,
    )
    return {
        "before": accuracy(run.before, images.labels),
        "after": accuracy(run.probabilities, images.labels),
        "queries": dict(run.ledger.queries),
        "queries_an_image": run.queries_an_image,
        "stopped": run.stopped,
        "seconds": round(time.perf_counter() - began, 2),
        "curve": curve.points,
        "card": run.card,
    }


def cell_images(cell: Cell) -> Dataset:
    clean = load_dataset(cell.data).subset(slice(0, cell.images))
    if cell.corruption == CLEAN:
        return clean
    from soda_tta.data import Corrupted

    return Corrupted(clean, cell.corruption, cell.severity, seed=0)


def accuracy(probabilities: Array, labels: Array) -> float:
    """In per cent."""
    return round(100 * float((probabilities.argmax(axis=1) == labels).mean()), 3)


class Curve:
    """Measures the adaptor as it learns: evaluation is the bench's own and is not among the queries.

    Points are kept in a file of their own, because a resumed run does not live its first epochs again.
    """

    def __init__(self, cell: Cell, images: Dataset, path: Path | None) -> None:
        self.every, self.images, self.path = cell.curve, images, path
        self.free = zoo.deployed(cell.model, threads=1) if cell.curve else None
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.points: list[dict[str, float]] = [json.loads(line) for line in lines]

    def __call__(self, event: Event) -> None:
        if self.free is None or not isinstance(event, Epoch) or event.epoch % self.every:
            return
        if any(point["epoch"] == event.epoch and point["lr"] == event.lr for point in self.points):
            return  # told again after a kill
        assert self.images.labels is not None
        starts = range(0, len(self.images), 512)
        pieces = [self.free(event.adaptor(self.images[slice(start, start + 512)])) for start in starts]
        score = accuracy(np.concatenate(pieces), self.images.labels)
        facts = {"epoch": event.epoch, "queries": event.queries, "loss": event.loss, "lr": event.lr}
        self.points.append({**facts, "accuracy": score})
        if self.path:
            write_text(self.path, "".join(json.dumps(point) + "\n" for point in self.points))
