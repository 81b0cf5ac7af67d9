"""A cell of an experiment: one method on one set of images with one seed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from soda_tta import zoo
from soda_tta.box import Box, load_box
from soda_tta.data.catalogue import spelled
from soda_tta.data.corruptions import CORRUPTIONS, SEVERITIES
from soda_tta.engine.plan import Plan, plan_run
from soda_tta.errors import MethodError, SodaError
from soda_tta.methods import Method, find_method

CLEAN = "clean"
ORDERS = ("given", "classes")
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
    images: int = (
        500  # the first so many of the test set; of one sorted by class, so many from all of it
    )
    order: str = "given"  # or "classes": the same images class by class, as a camera may see them
    seed: int = 0
    budget: float | None = None
    curve: int = (
        0  # measure accuracy every so many epochs, on a handle of its own that nobody pays for
    )
    settings: dict[str, Any] = field(default_factory=dict)  # changes to the method

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(self._facts(), sort_keys=True).encode()).hexdigest()[:16]

    def _facts(self) -> dict[str, Any]:
        """Without the usual order: stores are older than that word."""
        facts = asdict(self)
        if self.order == ORDERS[0]:
            del facts["order"]
        return facts

    @property
    def experiment(self) -> str:
        """What is run, however its settings are put: a number that is the method's own says nothing."""
        facts = {**self._facts(), "settings": self.recipe.settings}
        del facts["curve"]  # watching changes nothing
        if self.corruption == CLEAN:
            del facts["severity"]
        return json.dumps(facts, sort_keys=True)

    @property
    def recipe(self) -> Method:
        """Its method, with its changes."""
        return find_method(self.method).but(**self.settings)

    @property
    def of_own_model(self) -> bool:
        """Whether its model is a file of the user's, and not one of the zoo."""
        return self.model not in zoo.ENTRIES

    @property
    def title(self) -> str:
        """What it is called where something is said of it."""
        changed = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        where = "" if self.corruption == CLEAN else f"{self.corruption} {self.severity} of "
        budget = "" if self.budget is None else f", budget {self.budget:g}"
        order = "" if self.order == ORDERS[0] else f" in the order of their {self.order}"
        return (
            f"{self.method}{f' ({changed})' if changed else ''} on {where}{self.data}, {self.model}, "
            f"{self.images} images{order}{budget}, seed {self.seed}"
        )

    def check(self) -> None:
        """Fail now rather than in the middle of a grid; asks nothing and loads nothing."""
        self.check_types()
        try:
            self._check_facts()
        except SodaError as error:
            raise type(error)(f"{self.title}: {error}") from error

    def check_types(self) -> None:
        whole = {"images": 1, "seed": 0, "curve": 0, "severity": 1}
        for name, least in whole.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise MethodError(f"{name} is a whole number of {least} or more, not {value!r}.")
        for name in ("method", "data", "model", "corruption", "order"):
            if not isinstance(getattr(self, name), str):
                raise MethodError(f"{name} is a name, not {getattr(self, name)!r}.")
        if not isinstance(self.settings, dict):
            raise MethodError(f"settings are a table of names and values, not {self.settings!r}.")
        if self.budget is not None and (type(self.budget) not in (int, float) or self.budget <= 0):
            raise MethodError(f"budget is a number of queries an image, not {self.budget!r}.")

    def _check_facts(self) -> None:
        if self.corruption != CLEAN and self.corruption not in CORRUPTIONS:
            raise MethodError(
                f"there is no corruption {self.corruption!r}; choose clean, {', '.join(CORRUPTIONS)}."
            )
        if self.severity not in SEVERITIES:
            raise MethodError(f"there is no severity {self.severity}; choose one of {SEVERITIES}.")
        if self.order not in ORDERS:
            raise MethodError(
                f"there is no order {self.order!r}; choose one of {', '.join(ORDERS)}."
            )
        self._check_model()
        self.plan()
        self.recipe.check()

    def plan(self) -> Plan:
        """What it will ask of the model, at most."""
        return plan_run(self.recipe, self.images, self.budget)

    def _check_model(self) -> None:
        needs = find_method(self.method).needs
        if not self.of_own_model:
            usual = usual_model(self.data)
            if usual and family(usual) != family(self.model):
                raise MethodError(
                    f"{self.model} does not know the classes of {self.data}; leave model out for {usual}."
                )
            return
        if not self.model.endswith(".onnx") or not Path(self.model).is_file():
            known = ", ".join(zoo.ENTRIES)
            raise MethodError(
                f"there is no model {self.model!r}; choose one of {known}, or the path of an .onnx file."
            )
        if needs != "probabilities":
            raise MethodError(
                f"{self.method} needs {needs}, which an ONNX file does not offer; leave it out."
            )

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
            missing = (
                "method is missing" if "method" not in facts else f"{', '.join(unknown)} is unknown"
            )
            raise MethodError(f"a cell has {', '.join(sorted(known))}; {missing}.")
        if "model" in facts:
            cell = Cell(**facts)
            cell.check_types()
            return cell
        data = str(facts.get("data", "cifar10"))
        model = usual_model(data)
        if model is None and not spelled(data.partition("/")[0]) and not Path(data).exists():
            sets = ", ".join(MODEL_OF)
            raise MethodError(
                f"there is no data {data!r}; choose one of {sets}, or the path of images with labels."
            )
        if model is None:
            raise MethodError(
                f"there is no model of our own for {data}: name one (model), which may be an .onnx file."
            )
        return Cell.from_facts({**facts, "model": model})


def usual_model(data: str) -> str | None:
    """What images of a known set, or of a domain of one, are shown to."""
    return MODEL_OF.get(spelled(data.partition("/")[0]) or data)


def family(model: str) -> str:
    """What a model of the zoo was trained for: models of one family tell the same classes apart."""
    return model.partition("_")[0]
