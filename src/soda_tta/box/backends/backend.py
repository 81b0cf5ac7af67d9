"""What `load_box` needs to know about a kind of deployed model."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from typing import Any

from soda_tta.box.box import Box
from soda_tta.box.facts import INPUT_FACTS, OUTPUT_FACTS
from soda_tta.box.input import Input
from soda_tta.errors import BoxError

NOT_OPTIONS = (
    "facts",
    "input",
    "source",
    "connect_to",
)  # parameters of constructors that `load_box` fills


class Backend(Box):
    """A box that talks to one kind of deployed model.

    To add a kind: write a file with a subclass, and add it to the table in `box/load.py`. The
    constructor takes the model first and its options by keyword. It takes the facts about the
    input either as `input` (an `Input`) or one by one as `**facts`. Facts about the output
    (`logits`, `partial`) become attributes.
    """

    @classmethod
    @abstractmethod
    def takes(cls, model: Any) -> bool:
        """Whether `model` (a text, or an object of Python) is of this kind."""

    @classmethod
    def load(cls, model: Any, options: dict[str, Any]) -> Box:
        """The box of a model, from options that have a value."""
        cls.check_options(model, options)
        output = {name: options[name] for name in OUTPUT_FACTS if name in options}
        arguments = {name: value for name, value in options.items() if name not in output}
        if "input" in inspect.signature(cls).parameters:
            facts = {name: arguments.pop(name) for name in INPUT_FACTS if name in arguments}
            if facts:
                arguments["input"] = Input(**facts)
        box = cls(model, **arguments)  # type: ignore[call-arg]
        box.state_output(output)
        return box

    def state_output(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Set the facts about the output as attributes; returns the facts about the input."""
        for name, fact in OUTPUT_FACTS.items():
            if facts.get(name) is not None:
                setattr(self, name, fact.check(name, facts[name], self))
        return {name: value for name, value in facts.items() if name not in OUTPUT_FACTS}

    @classmethod
    def options(cls) -> set[str]:
        """The names of all options that can be passed to `load_box` for this kind."""
        _, *others = inspect.signature(cls).parameters
        return {*others, *INPUT_FACTS, *OUTPUT_FACTS} - set(NOT_OPTIONS)

    @classmethod
    def check_options(cls, model: Any, options: dict[str, Any]) -> None:
        """Refuse options that this kind of model does not have."""
        unknown = sorted(set(options) - cls.options() - set(NOT_OPTIONS))
        if unknown:
            name = model if isinstance(model, str) else type(model).__name__
            listed = ", ".join(sorted(cls.options()))
            raise BoxError(
                f"{name} does not have the option {', '.join(unknown)}; choose from: {listed}."
            )
