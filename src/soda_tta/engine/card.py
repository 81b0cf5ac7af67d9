"""The protocol card: everything that decides what a run computes."""

from __future__ import annotations

import hashlib
import inspect
import platform
from dataclasses import MISSING, dataclass, fields, replace
from importlib import metadata
from typing import Any, Protocol

from soda_tta._version import __version__
from soda_tta.box import Box
from soda_tta.data import Images
from soda_tta.engine.groups import Groups
from soda_tta.engine.plan import Plan
from soda_tta.errors import RunError
from soda_tta.masking import masked
from soda_tta.methods.method import Method
from soda_tta.plain_json import plain_json
from soda_tta.storage.run_folder import FORMAT

# whose versions decide the bits of a result
PACKAGES = ("numpy", "torch", "onnxruntime", "ai-edge-litert")
# Absent from the JSON while they are None.
OPTIONAL = (
    *("groups", "code", "command", "clean", "convention", "condition_by"),
    *("chosen_lr", "reliable", "averaged", "answering", "answers", "helper"),
)


class HasCard(Protocol):
    """Anything that a protocol card has an entry for."""

    def card(self) -> dict[str, Any]:
        """What the entry says."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """The protocol card of a run.

    Parameters
    ----------
    method, settings, seed, budget : what was run; the budget in queries per image.
    images : count, size and fingerprint of the images, and how they were resized.
    box : fingerprint of the model and what it was declared to take.
    versions : of Python and the packages that decide the bits of a result.
    plan : epochs and queries, as planned.
    groups : how images that belong together were stated; None if they were found.
    code : digest of the class of a user's own method; None for built-in methods.
    command : what the user typed, for the report to repeat.
    clean : count and fingerprint of the clean images, and the accuracy known for them.
    condition_by : what was known about the conditions of the images.
    convention : the input convention that was found before the run, and the evidence for it.
    chosen_lr : the learning rate that won, where several competed.
    reliable : how many pseudo-labels were trusted.
    answers : "none" if the adapted images were not to be answered.
    averaged : True if each answer is the mean of the unadapted and the adapted one.
    answering : the views that each answer is the mean over, the stated prior, and the smallest and
        largest class weight; None if the model's responses are the answers.
    helper : the local network that a method used besides the model, with a hash of its weights.
    """

    method: str
    settings: dict[str, Any]
    seed: int
    budget: float | None
    images: dict[str, Any]
    box: dict[str, Any]
    versions: dict[str, str]
    plan: dict[str, Any]
    soda_tta: str = __version__
    format: int = FORMAT
    groups: dict[str, Any] | None = None
    code: str | None = None
    command: list[str] | None = None
    clean: dict[str, Any] | None = None
    convention: dict[str, Any] | None = None
    condition_by: dict[str, Any] | None = None
    chosen_lr: float | None = None
    reliable: int | None = None
    averaged: bool | None = None
    answering: dict[str, Any] | None = None
    helper: dict[str, Any] | None = None
    answers: str | None = None

    def facts(self) -> dict[str, Any]:
        """The card as plain JSON."""
        everything = {each.name: getattr(self, each.name) for each in fields(self)}
        present = {
            name: value
            for name, value in everything.items()
            if value is not None or name not in OPTIONAL
        }
        return dict(plain_json(present))

    @staticmethod
    def from_facts(facts: dict[str, Any]) -> Card:
        """The card in the facts of a run.json, which hold the outcome too."""
        names = {each.name for each in fields(Card)}
        needed = [each.name for each in fields(Card) if each.default is MISSING]
        absent = [name for name in needed if name not in facts]
        if absent:
            raise RunError(
                f"the card of the run is damaged: {', '.join(absent)} is missing in run.json; "
                "restore it from a copy."
            )
        return Card(**{name: value for name, value in facts.items() if name in names})

    def with_parts(self, **parts: HasCard | None) -> Card:
        """The card with those of what else the run was given."""
        entries: dict[str, Any] = {
            name: None if part is None else part.card() for name, part in parts.items()
        }
        return replace(self, **entries)

    def completed(self, classes: int, facts: dict[str, Any]) -> Card:
        """The card with what is known only after the run."""
        return replace(self, box={**self.box, "classes": classes}, **facts)


def make_card(
    method: Method,
    plan: Plan,
    images: Images,
    box: Box,
    budget: float | None,
    seed: int,
    command: list[str] | None = None,
    groups: Groups | None = None,
    answers: str = "all",
) -> Card:
    """The card of a run that is about to begin."""
    return Card(
        method=method.name,
        settings=method.settings,
        seed=seed,
        budget=budget,
        code=code_digest(method),
        command=None if command is None else [masked(word) for word in command],
        groups=None if groups is None else groups.card(),
        answers=None if answers == "all" else answers,
        images=images.card(),
        box=box.card(),
        helper=method.knowledge(),
        versions=versions(),
        plan={
            "epochs": plan.epochs,
            "rungs": list(plan.rungs),
            "queries": plan.queries,
            "limit": plan.hard_limit,
        },
    )


def code_digest(method: Method) -> str | None:
    """A digest of the classes of a user's own method and its parts: edited ones are another method.

    Only the classes count, not the file they are in: a script may be changed to resume its own run.
    """
    parts = [getattr(method, each.name) for each in fields(method)]
    sources = []
    for kind in (type(method), *(type(part) for part in parts)):
        if kind.__module__.startswith(("soda_tta.", "builtins")):
            continue
        try:
            sources.append(inspect.getsource(kind))
        except (OSError, TypeError):
            continue  # typed into an interpreter
    text = "\n".join(sources)
    return hashlib.sha256(text.encode()).hexdigest()[:12] if sources else None


def versions() -> dict[str, str]:
    """The versions of what computes."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
