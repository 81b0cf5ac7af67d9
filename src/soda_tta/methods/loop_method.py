"""The paper's methods: parts and settings for the training loop, as a frozen paragraph."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from soda_tta.adaptors import ADAPTORS, Adaptor, Bank, PaperNetwork
from soda_tta.data import Images
from soda_tta.engine.loop import Training
from soda_tta.engine.plan import Plan
from soda_tta.engine.rates import TrainingStopped, train
from soda_tta.engine.rounding import IMAGES_CHECKED, drowned_probes
from soda_tta.engine.step import Task
from soda_tta.engine.training_plan import TrainingPlan
from soda_tta.engine.work import Work
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method, Outcome
from soda_tta.objectives import Objective, PseudoLabels, Reliable, Soda
from soda_tta.search import SEARCHES, SGD, Adam, Backprop, Evolution, MultiPoint, PerImage, Search
from soda_tta.settings import convert, meanings_of, setting, without_aliases

PARTS = ("adaptor", "reliable", "objective", "search", "step")
STEPS: dict[str, type[SGD] | type[Adam]] = {"sgd": SGD, "adam": Adam}
# Parts that may be exchanged by name: the settings of the new part begin at their defaults.
EXCHANGEABLE: dict[str, dict[str, Any]] = {"search": SEARCHES, "adaptor": ADAPTORS}
LEARNING_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # what lr="auto" chooses from
PAPER_STEPS = 6000  # 150 epochs of 10,000 images in batches of 256
NO_STEP = (
    "evolution follows no gradient, so it has neither lr nor step; leave them out. "
    "Its first deviation is sigma."
)


@dataclass(frozen=True, kw_only=True)
class LoopMethod(Method):
    """Parts and settings for the training loop; `but` changes a setting and gives another method.

    Parameters
    ----------
    adaptor : what changes the images; None leaves them as they are.
    reliable : which pseudo-labels are trusted.
    objective : what is minimised.
    search : how the parameters move.
    step : how a gradient becomes a step.
    learning_rates : more than one: they compete, without labels.
    epochs, batch, average : see `soda-tta methods soda`.
    other_meanings : help texts of settings that mean something else in this method.
    """

    learns_adaptor: ClassVar[bool] = True
    OWN: ClassVar[tuple[str, ...]] = ("epochs", "batch", "average")  # settings of no part

    adaptor: PaperNetwork | Bank | None = None
    reliable: Reliable = Reliable()
    objective: Objective = Soda()
    search: MultiPoint | PerImage | Evolution | Backprop = MultiPoint()
    step: SGD | Adam = SGD()
    learning_rates: tuple[float, ...] = ()
    epochs: int = setting(0, "passes over all images")
    batch: int = setting(256, "images per step")
    average: bool = setting(False, "answer with the mean of the original and the adapted answer")
    other_meanings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.batch < 1:
            raise MethodError(f"{self.name} needs epochs >= 0 and batch >= 1.")
        if self.learning_rates and "step" not in self._active_parts:
            raise MethodError(NO_STEP)

    # -- settings --------------------------------------------------------------------------------

    def but(self, **settings: Any) -> LoopMethod:
        """The same method with other settings, named as in the paper: q, mu, sigma, lr, alpha ...

        >>> from soda_tta import find_method
        >>> find_method("soda").but(q=10, lr="auto").search.directions
        10
        """
        if self.adaptor is None and settings:
            raise self.unknown_setting(next(iter(settings)))
        method = self
        settings = without_aliases(settings)
        for part in EXCHANGEABLE:
            if part in settings:
                method = method._with_part(part, settings.pop(part))
        if "step" not in method._active_parts and {"step", "lr"} & settings.keys():
            raise MethodError(NO_STEP)
        if "step" in settings:
            method = method._with_step(settings.pop("step"))
        if "lr" in settings:
            method = method._with_lr(settings.pop("lr"))
        for name, value in settings.items():
            method = method._with(name, value)
        return method

    def _with_part(self, part: str, name: Any) -> LoopMethod:
        choices = EXCHANGEABLE[part]
        if name not in list(choices):  # the value may be anything, even unhashable
            raise MethodError(f"{part} {name!r} is unknown; choose {' or '.join(choices)}.")
        if isinstance(getattr(self, part), choices[name]):
            return self
        if self.needs != "probabilities":
            raise MethodError(f"{self.name} cannot use another {part}.")
        changed: Any = {part: choices[name]()}
        return replace(self, **changed)

    def _with_step(self, name: Any) -> LoopMethod:
        if name not in list(STEPS):
            raise MethodError(f"step {name!r} is unknown; choose {' or '.join(STEPS)}.")
        step = STEPS[name](lr=self.step.lr, weight_decay=self.step.weight_decay)
        return replace(self, step=step)

    def _with_lr(self, value: Any) -> LoopMethod:
        if value == "auto":
            return replace(self, learning_rates=LEARNING_RATES)
        lr = convert("lr", value, 0.0)
        return replace(self, learning_rates=(), step=replace(self.step, lr=lr))

    def _with(self, name: str, value: Any) -> LoopMethod:
        if self.adaptor is not None and name in self.OWN:
            changed: Any = {name: convert(name, value, getattr(self, name))}
            return replace(self, **changed)
        for part in self._active_parts:
            current = getattr(self, part)
            if name in {each.name for each in fields(current)}:
                value = convert(name, value, getattr(current, name))
                changed = {part: replace(current, **{name: value})}
                return replace(self, **changed)
        raise self.unknown_setting(name)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting under the name that `but` takes."""
        if self.adaptor is None:
            return {}  # nothing is learned, so nothing can be set
        settings = {name: getattr(self, name) for name in self.OWN}
        for part in self._active_parts:
            settings |= asdict(getattr(self, part))
        if "step" in self._active_parts:
            settings["step"] = type(self.step).__name__.lower()
        if self.needs == "probabilities":
            for part, choices in EXCHANGEABLE.items():
                current = getattr(self, part)
                names = [name for name, kind in choices.items() if isinstance(current, kind)]
                settings[part] = names[0]
        if self.learning_rates:
            settings["lr"] = "auto"
        return settings

    @property
    def meanings(self) -> dict[str, str]:
        """One line of help for every setting."""
        texts = meanings_of(self)
        for part in self._active_parts:
            texts |= meanings_of(getattr(self, part))
        texts |= {
            "step": "sgd or adam",
            "lr": "learning rate; auto chooses one without labels, and its queries are counted",
            "search": f"one of {', '.join(SEARCHES)} (the paper's is the first)",
            "adaptor": f"one of {', '.join(ADAPTORS)} (the paper's is the first)",
        }
        texts |= self.other_meanings
        return {name: texts.get(name, "") for name in self.settings}

    @property
    def _active_parts(self) -> tuple[str, ...]:
        """The parts that make a difference.

        A method that trusts every label does not select; evolution has no step.
        """
        if self.adaptor is None:
            return ()
        idle = set()
        if isinstance(self.objective, PseudoLabels):
            idle.add("reliable")
        if not self.search.follows_gradient:
            idle.add("step")
        return tuple(part for part in PARTS if part not in idle)

    def renamed(self, name: str, summary: str) -> LoopMethod:
        """The same method under another name."""
        return replace(self, name=name, summary=summary)

    # -- planning and checking -------------------------------------------------------------------

    def plan(self, images: int, limit: int | None) -> Plan:
        """Epochs and queries for so many images and at most `limit` queries."""
        epochs = self.epochs if self.adaptor is not None else 0
        rates = max(1, len(self.learning_rates))
        training = TrainingPlan(images, limit, epochs, self.batch, self.search.candidates)
        return training.of_competition(rates) if rates > 1 else training.of_one_rate()

    def outline(self, plan: Plan) -> str:
        """What the method will do within a plan, in words."""
        if self.adaptor is None:
            return self.summary
        part = f" of {self.epochs}" if plan.shortened else ""
        return f"{plan.epochs}{part} epochs"

    def check(self, images: Images | None = None) -> None:
        """Refuse images that are too small, and a search of too many parameters."""
        if self.adaptor is None or not self.epochs:
            return
        adaptor = self.adaptor.build(seed=0)
        if images is not None:
            adaptor(images[slice(0, 1)])
        self.start(adaptor, seed=0)

    def notices(self, work: Work) -> list[str]:
        """What is known to go wrong with these settings, each with its remedy."""
        if not work.plan.learns:
            return []
        assert self.adaptor is not None
        texts = []
        steps = work.plan.epochs * math.ceil(work.plan.images / self.batch)
        if self.has_papers_rate and steps < PAPER_STEPS / 2:
            texts.append(
                f"the paper's learning rate was chosen for {PAPER_STEPS:,} steps and this run "
                f'makes {steps:,}: the adaptor may hardly move; try lr="auto".'
            )
        sample = work.images[slice(0, IMAGES_CHECKED)]
        adaptor = self.adaptor.build(work.seed)
        problem = drowned_probes(self.search, adaptor, sample, work.meter.box, work.seed)
        return texts if problem is None else [*texts, problem]

    @property
    def has_papers_rate(self) -> bool:
        """Whether the step and sigma, whose square it grows with, are the paper's."""
        if self.learning_rates or "step" not in self._active_parts:
            return False
        return self.step == SGD() and self.settings.get("sigma") == MultiPoint().sigma

    # -- running ---------------------------------------------------------------------------------

    def start(self, adaptor: Adaptor, seed: int, lr: float | None = None) -> Search:
        """A search from the adaptor's parameters, with the method's learning rate or another."""
        step = self.step if lr is None else replace(self.step, lr=lr)
        return self.search.start(adaptor.parameters, step=step, units=adaptor.units, seed=seed)

    def adapt(self, work: Work) -> Outcome:
        """Train the adaptor; the engine answers with it."""
        if not work.plan.learns:
            return Outcome(work.before)
        assert self.adaptor is not None
        selection = self.reliable(work.before)
        adaptor = self.adaptor.build(work.seed)
        task = Task(
            images=work.images,
            meter=work.meter.recording(work.folder.transcript("step")),
            selection=selection,
            objective=self.objective,
            batch=self.batch,
            seed=work.seed,
            reserve=len(work.images),
        )
        trainings = [
            Training(
                task,
                adaptor,
                self.start(adaptor, work.seed, lr),
                self.search.candidates,
                work.folder.training(f"lr-{lr:g}"),
            )
            for lr in self.learning_rates or (self.step.lr,)
        ]
        interrupted = False
        try:
            training = train(trainings, work)
        except TrainingStopped as stopped:
            interrupted = True
            training = stopped.training
        theta = training.search.theta
        if interrupted and training.epoch:
            theta = training.best_theta
        adaptor.parameters = theta.astype(np.float32)
        work.history.extend(training.history)
        facts: dict[str, Any] = {"reliable": int(selection.reliable.sum())}
        if len(self.learning_rates) > 1:
            facts["chosen_lr"] = training.search.length
        outcome = Outcome(adaptor=adaptor, average=self.average, facts=facts)
        if interrupted:
            return replace(outcome, stopped="interrupted")
        if training.epoch < work.plan.epochs:
            return replace(outcome, stopped="budget")  # lost requests have used some of it
        return outcome

    def ending(self, work: Work, outcome: Outcome) -> str:
        """Why the run ended, as a sentence."""
        if outcome.stopped != "budget":
            return super().ending(work, outcome)
        done = len(work.history) / work.history[-1].of if work.history else 0
        return (
            f"The budget of {work.plan.limit:,} queries was enough for {done:.3g} of "
            f"{self.epochs} epochs."
        )
