"""A cell of an experiment: one method on one set of images with one seed, and how it is measured."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta import zoo
from soda_tta.adaptation import adapt
from soda_tta.atomic import write_text
from soda_tta.box import Box, load_box
from soda_tta.data import load_dataset
from soda_tta.data.catalogue import spelled
from soda_tta.data.corruptions import CORRUPTIONS, SEVERITIES
from soda_tta.data.dataset import Dataset
from soda_tta.errors import RecipeError, RunError, SodaError
from soda_tta.events import Epoch, Event
from soda_tta.plan import Plan, plan_run
from soda_tta.recipes import find_method
from soda_tta.run import Run

Array = np.ndarray[Any, np.dtype[Any]]
CLEAN = "clean"
MODEL_OF = {  # what a set of images is usually shown to
    "cifar10": "cifar10_resnet20",
    "cifar10-c": "cifar10_resnet20",
    "cifar100": "cifar100_resnet20",
    "cifar100-c": "cifar100_resnet20",
    "imagenet": "imagenet_resnet50",
    "imagenet-c": "imagenet_resnet50",
    "imagenet-1000": "imagenet_efficientnet_lite0",
    "pacs": "pacs_photo_lite0",
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is run. Two cells with the same content are the same cell, whichever grid names them."""

    method: str
    data: str = "cifar10"  # a name or path `load_dataset` knows, or "name/domain"
    model: str = "cifar10_resnet20"  # of the zoo, or the path of an ONNX file
    corruption: str = "gaussian_noise"  # or "clean"
    severity: int = 5
    images: int = 500  # the first so many of the test set; of one sorted by class, so many from all of it
    seed: int = 0
    budget: float | None = None
    curve: int = 0  # measure accuracy every so many epochs, on a handle of its own that nobody pays for
    numbers: dict[str, Any] = field(default_factory=dict)  # changes to the method

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def experiment(self) -> str:
        """What is run, however its numbers are put: a number that is the method's own says nothing."""
        facts = {**asdict(self), "numbers": find_method(self.method).but(**self.numbers).numbers()}
        del facts["curve"]  # watching changes nothing
        if self.corruption == CLEAN:
            del facts["severity"]
        return json.dumps(facts, sort_keys=True)

    @property
    def of_own_model(self) -> bool:
        """Whether its model is a file of the user's, and not one of the zoo."""
        return self.model not in zoo.ENTRIES

    @property
    def title(self) -> str:
        """What it is called where something is said of it."""
        changed = ", ".join(f"{name}={value}" for name, value in self.numbers.items())
        where = "" if self.corruption == CLEAN else f"{self.corruption} {self.severity} of "
        budget = "" if self.budget is None else f", budget {self.budget:g}"
        return (
            f"{self.method}{f' ({changed})' if changed else ''} on {where}{self.data}, {self.model}, "
            f"{self.images} images{budget}, seed {self.seed}"
        )

    def check(self) -> None:
        """Fail now rather than in the middle of a grid; asks nothing and loads nothing."""
        self._check_types()
        try:
            self._check_facts()
        except SodaError as error:
            raise type(error)(f"{self.title}: {error}") from error

    def _check_types(self) -> None:
        whole = {"images": 1, "seed": 0, "curve": 0, "severity": 1}
        for name, least in whole.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise RecipeError(f"{name} is a whole number of {least} or more, not {value!r}.")
        for name in ("method", "data", "model", "corruption"):
            if not isinstance(getattr(self, name), str):
                raise RecipeError(f"{name} is a name, not {getattr(self, name)!r}.")
        if self.budget is not None and (type(self.budget) not in (int, float) or self.budget <= 0):
            raise RecipeError(f"budget is a number of queries an image, not {self.budget!r}.")

    def _check_facts(self) -> None:
        if self.corruption != CLEAN and self.corruption not in CORRUPTIONS:
            raise RecipeError(f"there is no corruption {self.corruption!r}; choose clean, {', '.join(CORRUPTIONS)}.")
        if self.severity not in SEVERITIES:
            raise RecipeError(f"there is no severity {self.severity}; choose one of {SEVERITIES}.")
        self._check_model()
        self.plan()

    def plan(self) -> Plan:
        """What it will ask of the model, at most."""
        return plan_run(find_method(self.method).but(**self.numbers), self.images, self.budget)

    def _check_model(self) -> None:
        needs = find_method(self.method).needs
        if not self.of_own_model:
            return
        if not self.model.endswith(".onnx") or not Path(self.model).is_file():
            known = ", ".join(zoo.ENTRIES)
            raise RecipeError(f"there is no model {self.model!r}; choose one of {known}, or the path of an .onnx file.")
        if needs != "probabilities":
            raise RecipeError(f"{self.method} needs {needs}, which an ONNX file does not offer; leave it out.")

    def box(self, kind: str | None = None) -> Box:
        """The deployed model: white only if the method needs it. One thread, for cells run beside each other."""
        if self.of_own_model:
            return load_box(self.model, threads=1)
        white = find_method(self.method).needs != "probabilities"
        return zoo.deployed(self.model, kind or ("module" if white else "onnx"), threads=1)

    @staticmethod
    def from_facts(facts: dict[str, Any]) -> Cell:
        """A cell from a TOML table or a line of the store; a known set of images brings its model with it."""
        known = {part.name for part in fields(Cell)}
        unknown = sorted(set(facts) - known)
        if unknown or "method" not in facts:
            missing = "method is missing" if "method" not in facts else f"{', '.join(unknown)} is unknown"
            raise RecipeError(f"a cell has {', '.join(sorted(known))}; {missing}.")
        if "model" in facts:
            return Cell(**facts)
        data = str(facts.get("data", "cifar10"))
        model = MODEL_OF.get(spelled(data.partition("/")[0]) or data)
        if model is None:
            raise RecipeError(f"there is no model of our own for {data}: name one (model), which may be an .onnx file.")
        return Cell(model=model, **facts)


def run_cell(cell: Cell, working: Path | None = None) -> dict[str, Any]:
    """Run a cell and measure it. With `working`, a killed cell continues where it was."""
    images = cell_images(cell)
    assert images.labels is not None
    check_fit(cell, images, images.labels)
    began, again = time.perf_counter(), []
    try:
        run, curve = start_cell(cell, images, working)
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
        "right": {"before": bits(run.before, images.labels), "after": bits(run.probabilities, images.labels)},
        "queries": dict(run.ledger.queries),
        "queries_an_image": sum(run.ledger.queries.values()) / len(images),  # lost in a kill: no part of the method
        "stopped": run.stopped,
        "does": run.adaptor.describe(),
        "verdict": None if run.verdict is None else run.verdict.facts(),
        "seconds": round(time.perf_counter() - began, 2),
        "notices": [*(f"a half-done cell was begun again: {reason}" for reason in again), *run.notices],
        "curve": curve.points,
        "card": run.card,
    }


def check_fit(cell: Cell, images: Dataset, labels: Array) -> None:
    """Numbers that look like results and are none: of a model for other classes, of fewer images than are named."""
    if len(labels) < cell.images:
        raise RecipeError(f"{cell.data} has {len(labels):,} images and the cell asks for {cell.images:,}; set images.")
    classes = cell.box()(images[slice(0, 1)]).shape[1]
    if labels.max() >= classes:
        raise RecipeError(
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
    run = adapt(images, cell.box(), method, budget, seed, out=working, resume=resume, listener=curve, **cell.numbers)
    return run, curve


def cell_images(cell: Cell) -> Dataset:
    everything = open_data(cell.data)
    if everything.labels is None:
        raise RecipeError(f"{cell.data} has no labels; the bench needs them to measure.")
    clean = everything.subset(chosen_images(everything.labels, cell.images))
    if cell.corruption == CLEAN:
        return clean
    from soda_tta.data import Corrupted

    return Corrupted(clean, cell.corruption, cell.severity, seed=0)


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
        pieces = [self.free(event.adaptor(self.images[slice(start, start + 512)])) for start in starts]
        score = accuracy(np.concatenate(pieces), self.images.labels)
        facts = {"epoch": event.epoch, "queries": event.queries, "loss": event.loss, "lr": event.lr}
        self.points.append({**facts, "accuracy": score})
        if self.path:
            write_text(self.path, "".join(json.dumps(point) + "\n" for point in self.points))
