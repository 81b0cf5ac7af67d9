"""A cell of an experiment: one method on one set of images with one seed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from soda_tta import zoo
from soda_tta.box import Box, load_box
from soda_tta.data.catalogue import spelled
from soda_tta.data.corruptions import CORRUPTIONS, SEVERITIES
from soda_tta.engine.plan import Plan, plan_run
from soda_tta.errors import MethodError, SodaError
from soda_tta.methods import Method, all_methods, find_method
from soda_tta.settings import ALIASES

CLEAN = "clean"
CLEAN_SEVERITY = 5  # clean images have no severity; all their cells hold this one
ORDERS = ("given", "classes")
DEFAULT_MODELS = {  # the model that a known data set is run on unless the cell names another
    "cifar10": "cifar10_resnet20",
    "cifar10-c": "cifar10_resnet20",
    "cifar100": "cifar100_resnet20",
    "cifar100-c": "cifar100_resnet20",
    "imagenet": "imagenet_resnet50",
    "imagenet-c": "imagenet_resnet50",
    "imagenet-1000": "imagenet_efficientnet_lite0",
    "imagenet-val-2000": "imagenet_efficientnet_lite0",
    "pacs": "pacs_photo_lite0",
}
SHORT_NAMES = {name: letter for letter, name in ALIASES.items()}  # the paper's letters, for titles


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of an experiment. Cells with equal content are the same cell, in whichever grid.

    Settings are stored under their full names: `q` becomes `directions`.

    Parameters
    ----------
    method : a name from `soda-tta methods`, or your own as "module:name".
    data : a name or path that `load_dataset` accepts, or "name/domain" (default "cifar10").
    model : a name of the zoo (default "cifar10_resnet20"), or the path of an ONNX file.
    corruption : one of the 19 corruptions (default "gaussian_noise"), or "clean".
    severity : 1 to 5 (default 5); ignored for clean images.
    images : number of test images (default 500): the first ones of the test set, or evenly spaced
        ones if the test set is sorted by class.
    order : "given" (default), or "classes": the same images sorted by class, as a camera might
        deliver them.
    seed : a whole number (default 0).
    budget : queries per image, or None for no limit (default).
    curve : measure the accuracy every so many epochs; 0 (default) never. These queries go to a
        separate, unmetered box.
    settings : changes to the method's settings (default none).

    Examples
    --------
    >>> cell = Cell(method="soda", corruption="fog", settings={"q": 10})
    >>> cell.settings
    {'directions': 10}
    >>> cell.title
    'soda (q=10) on fog 5 of cifar10, cifar10_resnet20, 500 images, seed 0'
    """

    method: str
    data: str = "cifar10"
    model: str = "cifar10_resnet20"
    corruption: str = "gaussian_noise"
    severity: int = 5
    images: int = 500
    order: str = "given"
    seed: int = 0
    budget: float | None = None
    curve: int = 0
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", full_names(self.method, self.settings))

    @property
    def key(self) -> str:
        """A hash of the content: names the cell in a store."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def experiment(self) -> str:
        """The content as JSON with every setting of the method.

        Two cells with the same value give the same answers: it does not matter which settings they
        spell out, whether a curve is measured, or which severity clean images are said to have.
        """
        facts = {**asdict(self), "settings": self.configured_method.settings}
        del facts["curve"]
        if self.corruption == CLEAN:
            del facts["severity"]
        return json.dumps(facts, sort_keys=True)

    @cached_property
    def changes(self) -> dict[str, Any]:
        """The settings that differ from the defaults; all if the method cannot be imported.

        >>> Cell(method="soda", settings={"q": 5, "alpha": 0.01}).changes
        {'alpha': 0.01}
        """
        try:
            resolved = self.configured_method.settings
        except SodaError:
            return self.settings
        return {
            name: self.settings[name] for name in self.settings if self._matters(name, resolved)
        }

    def _matters(self, name: str, resolved: dict[str, Any]) -> bool:
        """Whether the method would have other settings without this one."""
        others = {other: value for other, value in self.settings.items() if other != name}
        try:
            return find_method(self.method).but(**others).settings != resolved
        except SodaError:  # the others need it: population needs search=evolution
            return True

    @property
    def configured_method(self) -> Method:
        """The method with the cell's settings."""
        return find_method(self.method).but(**self.settings)

    @property
    def uses_model_file(self) -> bool:
        """Whether the model is a file of the user's, not one of the zoo."""
        return self.model not in zoo.ENTRIES

    @property
    def title(self) -> str:
        """One line that names the cell in messages."""
        changed = ", ".join(f"{short_name(name)}={value}" for name, value in self.settings.items())
        method = f"{self.method} ({changed})" if changed else self.method
        corruption = "" if self.corruption == CLEAN else f"{self.corruption} {self.severity} of "
        order = "" if self.order == ORDERS[0] else f" in the order of their {self.order}"
        budget = "" if self.budget is None else f", budget {self.budget:g}"
        return (
            f"{method} on {corruption}{self.data}, {self.model}, "
            f"{self.images} images{order}{budget}, seed {self.seed}"
        )

    def check(self) -> None:
        """Raise `MethodError` for a cell that cannot run. Loads no model and sends no query."""
        self.check_types()
        try:
            self._check_values()
        except SodaError as error:
            raise type(error)(f"{self.title}: {error}") from error

    def check_types(self) -> None:
        """Raise `MethodError` for a value of the wrong type."""
        minimum = {"images": 1, "seed": 0, "curve": 0, "severity": 1}
        for name, least in minimum.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise MethodError(
                    f"{name} must be a whole number of at least {least}, not {value!r}."
                )
        for name in ("method", "data", "model", "corruption", "order"):
            if not isinstance(getattr(self, name), str):
                raise MethodError(f"{name} must be a name, not {getattr(self, name)!r}.")
        if not isinstance(self.settings, dict):
            raise MethodError(
                f"settings must be a table of names and values, not {self.settings!r}."
            )
        if self.budget is not None and (type(self.budget) not in (int, float) or self.budget <= 0):
            raise MethodError(f"budget must be a number of queries per image, not {self.budget!r}.")

    def _check_values(self) -> None:
        """Names that exist, a model that fits, a budget that suffices."""
        if self.corruption != CLEAN and self.corruption not in CORRUPTIONS:
            choices = ", ".join((CLEAN, *CORRUPTIONS))
            raise MethodError(f"there is no corruption {self.corruption!r}; choose {choices}.")
        if self.severity not in SEVERITIES:
            raise MethodError(f"there is no severity {self.severity}; choose one of {SEVERITIES}.")
        if self.order not in ORDERS:
            choices = ", ".join(ORDERS)
            raise MethodError(f"there is no order {self.order!r}; choose one of {choices}.")
        self._check_model()
        self.plan()
        self.configured_method.check()

    def plan(self) -> Plan:
        """The queries the cell will send at most."""
        return plan_run(self.configured_method, self.images, self.budget)

    def _check_model(self) -> None:
        """A zoo model for the classes of the data, or an ONNX file for a black-box method."""
        if not self.uses_model_file:
            default = default_model(self.data)
            if default and model_family(default) != model_family(self.model):
                raise MethodError(
                    f"{self.model} does not know the classes of {self.data}; "
                    f"leave model out to use {default}."
                )
            return
        if not self.model.endswith(".onnx") or not Path(self.model).is_file():
            raise MethodError(
                f"there is no model {self.model!r}; choose one of {', '.join(zoo.ENTRIES)}, "
                "or the path of an .onnx file."
            )
        needs = find_method(self.method).needs
        if needs != "probabilities":
            raise MethodError(
                f"{self.method} needs {needs}, which an ONNX file does not offer; leave it out."
            )

    def box(self, kind: str | None = None) -> Box:
        """Load the deployed model: white only if the method needs it.

        It uses one thread, because cells run in parallel processes.
        """
        if self.uses_model_file:
            return load_box(self.model, threads=1)
        white = find_method(self.method).needs != "probabilities"
        return zoo.deployed(self.model, kind or ("module" if white else "onnx"), threads=1)

    @staticmethod
    def from_facts(facts: dict[str, Any]) -> Cell:
        """Make a cell from a TOML table or from a line of a store.

        A known data set selects its default model, and clean images get one severity.

        >>> Cell.from_facts({"method": "soda", "data": "cifar100"}).model
        'cifar100_resnet20'
        """
        names = {part.name for part in fields(Cell)}
        unknown = sorted(set(facts) - names)
        if "method" not in facts:
            raise MethodError(f"a cell has {', '.join(sorted(names))}; method is missing.")
        if unknown:
            raise MethodError(
                f"a cell has {', '.join(sorted(names))}; {', '.join(unknown)} is unknown."
            )
        if "model" not in facts:
            facts = {**facts, "model": required_model(str(facts.get("data", "cifar10")))}
        cell = Cell(**facts)
        cell.check_types()
        if cell.corruption == CLEAN and cell.severity in SEVERITIES:
            object.__setattr__(cell, "severity", CLEAN_SEVERITY)
        return cell


def full_names(method: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of one of our methods with the paper's letters replaced by full names.

    Settings of the user's own methods are left as they are: their module need not be importable.
    """
    if not isinstance(settings, dict) or not isinstance(method, str):
        return settings  # check_types refuses it
    own = all_methods()[method].settings if method in all_methods() else {}
    names = {
        letter: name for letter, name in ALIASES.items() if name in own and name not in settings
    }
    return {names.get(name, name): value for name, value in settings.items()}


def short_name(setting: str) -> str:
    """The paper's letter for a setting, if it has one: `directions` is `q`."""
    return SHORT_NAMES.get(setting, setting)


def default_model(data: str) -> str | None:
    """The model for a known data set or a domain of one; None for other data."""
    return DEFAULT_MODELS.get(spelled(data.partition("/")[0]) or data)


def required_model(data: str) -> str:
    """The default model for the data; raises `MethodError` if there is none."""
    model = default_model(data)
    if model is not None:
        return model
    if not spelled(data.partition("/")[0]) and not Path(data).exists():
        raise MethodError(
            f"there is no data {data!r}; choose one of {', '.join(DEFAULT_MODELS)}, "
            "or the path of images with labels."
        )
    raise MethodError(
        f"there is no default model for {data}; set model, which may be an .onnx file."
    )


def model_family(model: str) -> str:
    """What a zoo model was trained for: models of one family have the same classes."""
    return model.partition("_")[0]
