"""A method is a recipe: which parts, which settings. The loop knows no method by name."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from numbers import Real
from typing import Any

from soda_tta.adaptors import Adaptor, Bank, PaperNetwork
from soda_tta.errors import MethodError
from soda_tta.objectives.equations import Objective, PseudoLabels, Soda
from soda_tta.objectives.reliable import Reliable
from soda_tta.search import SGD, Adam, Backprop, Evolution, LoopSearch, MultiPoint, PerImage

ALIASES = {"q": "directions"}  # the paper's letters
STEPS: dict[str, type[SGD] | type[Adam]] = {"sgd": SGD, "adam": Adam}
# Parts that may take another's place: their own settings then begin at their defaults.
OTHERS: dict[str, dict[str, Any]] = {
    "search": {"multi-point": MultiPoint, "per-image": PerImage, "evolution": Evolution},
    "adaptor": {"network": PaperNetwork, "bank": Bank},
}
LEARNING_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # what lr="auto" chooses from


@dataclass(frozen=True, kw_only=True)
class LoopMethod:
    """The parts of a method and its settings; `but` changes a number and gives another recipe."""

    name: str
    summary: str
    needs: str = "probabilities"  # of the box: or "gradients", or "weights"
    adaptor: PaperNetwork | Bank | None = None  # None: the images are left as they are
    reliable: Reliable = Reliable()
    objective: Objective = Soda()
    search: MultiPoint | PerImage | Evolution | Backprop = MultiPoint()
    step: SGD | Adam = SGD()
    learning_rates: tuple[float, ...] = ()  # more than one: chosen without labels while learning
    epochs: int = 0
    batch: int = 256
    average: bool = (
        False  # answer with the mean of the model's answers to the image and to the adapted image
    )

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.batch < 1:
            raise MethodError(f"{self.name} needs epochs >= 0 and a batch of at least 1.")
        if self.learning_rates and isinstance(self.search, Evolution):
            raise MethodError(NO_STEP)

    def but(self, **settings: Any) -> LoopMethod:
        """The same recipe with other settings, named as in the paper: q, mu, sigma, lr, alpha, tau, rho, epochs ...

        >>> from soda_tta.methods import all_methods
        >>> all_methods()["soda"].but(q=10, lr="auto").search.directions
        10
        """
        if self.adaptor is None and settings:
            raise self._unknown(next(iter(settings)))
        recipe, settings = self, renamed(settings)
        for part in OTHERS:
            if part in settings:
                recipe = recipe._with_other(part, settings.pop(part))
        if isinstance(recipe.search, Evolution) and {"step", "lr"} & settings.keys():
            raise MethodError(NO_STEP)
        if "step" in settings:
            recipe = recipe._with_step(settings.pop("step"))
        if "lr" in settings:
            recipe = recipe._with_lr(settings.pop("lr"))
        for name, value in settings.items():
            recipe = recipe._with(name, value)
        return recipe

    def _with_other(self, part: str, name: Any) -> LoopMethod:
        if name not in list(OTHERS[part]):  # whatever it is
            raise MethodError(f"{part} {name!r} is unknown; choose {' or '.join(OTHERS[part])}.")
        other = OTHERS[part][name]
        if isinstance(getattr(self, part), other):
            return self
        if self.needs != "probabilities":
            raise MethodError(f"{self.name} takes no other {part}.")
        return replace(self, **{part: other()})

    def _with_step(self, name: Any) -> LoopMethod:
        if name not in list(STEPS):
            raise MethodError(f"step {name!r} is unknown; choose {' or '.join(STEPS)}.")
        return replace(self, step=STEPS[name](lr=self.step.lr, weight_decay=self.step.weight_decay))

    def _with_lr(self, value: Any) -> LoopMethod:
        if value == "auto":
            return replace(self, learning_rates=LEARNING_RATES)
        lr = convert("lr", value, 0.0)
        return replace(self, learning_rates=(), step=replace(self.step, lr=lr))

    def _with(self, name: str, value: Any) -> LoopMethod:
        if name in self._own:
            return replace(self, **{name: convert(name, value, getattr(self, name))})
        for part in self._parts:
            current = getattr(self, part)
            if is_dataclass(current) and name in {field.name for field in fields(current)}:
                value = convert(name, value, getattr(current, name))
                changed: Any = replace(current, **{name: value})  # type: ignore[type-var]
                return replace(self, **{part: changed})
        raise self._unknown(name)

    def _unknown(self, name: str) -> MethodError:
        known = ", ".join(self.settings) or "none"
        letters = " (q is directions)" if "directions" in self.settings else ""
        return MethodError(f"{self.name} has no number {name!r}; it has {known}{letters}.")

    @property
    def settings(self) -> dict[str, Any]:
        """Every number of the recipe under the name `but` takes."""
        flat: dict[str, Any] = {name: getattr(self, name) for name in self._own}
        for part in self._parts:
            if is_dataclass(current := getattr(self, part)):
                flat.update(asdict(current))  # type: ignore[arg-type]
        if "step" in self._parts:
            flat["step"] = type(self.step).__name__.lower()
        for part, others in OTHERS.items() if self._parts and self.needs == "probabilities" else ():
            flat[part] = next(
                name for name, kind in others.items() if isinstance(getattr(self, part), kind)
            )
        if self.learning_rates:
            flat["lr"] = "auto"
        return flat

    def start(self, adaptor: Adaptor, seed: int, lr: float | None = None) -> LoopSearch:
        """The search from the adaptor's parameters on, with its own learning rate or this one."""
        if isinstance(self.search, Evolution):
            return self.search.followed(adaptor.parameters, adaptor.units, seed)
        step = self.step if lr is None else replace(self.step, lr=lr)
        return self.search.start(adaptor.parameters, step, seed)

    def check_size(self) -> None:
        """Refuse a search that cannot take as many parameters as the adaptor has."""
        if self.adaptor is not None and self.epochs and isinstance(self.search, Evolution):
            self.start(self.adaptor.build(seed=0), seed=0)

    @property
    def _own(self) -> tuple[str, ...]:
        """The settings that belong to no part; without an adaptor nothing is learned, and none matters."""
        return () if self.adaptor is None else ("epochs", "batch", "average")

    @property
    def _parts(self) -> tuple[str, ...]:
        """The parts at work; who trusts every label does not choose among them, and evolution finds its own steps."""
        if self.adaptor is None:
            return ()
        idle = {
            "reliable": isinstance(self.objective, PseudoLabels),
            "step": isinstance(self.search, Evolution),
        }
        return tuple(part for part in PARTS if not idle.get(part))

    def renamed(self, name: str, summary: str) -> LoopMethod:
        return replace(self, name=name, summary=summary)

    @property
    def queries_an_epoch(self) -> int:
        """Queries an image and epoch."""
        return self.search.candidates


PARTS = ("adaptor", "reliable", "objective", "search", "step")
NO_STEP = "evolution follows no gradient and has neither lr nor step; leave them out, its first deviation is sigma."


def renamed(settings: dict[str, Any]) -> dict[str, Any]:
    """The paper's letters as the names they stand for.

    >>> renamed({"q": 10, "mu": 0.01})
    {'directions': 10, 'mu': 0.01}
    """
    for letter, name in ALIASES.items():
        if letter in settings and name in settings:
            raise MethodError(f"{letter} and {name} are one number; give one of them.")
    return {ALIASES.get(name, name): value for name, value in settings.items()}


def convert(name: str, value: Any, like: Any) -> Any:
    """A value from the command line or Python, as the type the recipe holds."""
    if isinstance(value, str):
        try:
            if isinstance(like, bool):
                value = {"true": True, "false": False}[value.lower()]
            elif isinstance(like, int | float):
                value = float(value)
        except (ValueError, KeyError):
            wanted = {bool: "true or false", int: "a whole number"}.get(type(like), "a number")
            raise MethodError(f"{name}={value} is not {wanted}.") from None
    if isinstance(like, bool) and not isinstance(value, bool):
        raise MethodError(f"{name}={value} must be true or false.")
    if isinstance(like, str) and not isinstance(value, str):
        raise MethodError(f"{name}={value} must be text.")
    if type(like) in (int, float) and (isinstance(value, bool) or not isinstance(value, Real)):
        raise MethodError(f"{name}={value} is not a number.")
    if isinstance(value, float) and not math.isfinite(value):
        raise MethodError(f"{name}={value} is not finite.")
    if isinstance(like, int) and not isinstance(like, bool):
        if value != int(value):
            raise MethodError(f"{name}={value} must be a whole number.")
        return int(value)
    return float(value) if isinstance(like, float) else value
