"""The result of a search for the input convention, for people, programs and the card of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from soda_tta.box import Box
from soda_tta.box.facts import as_options, unusual
from soda_tta.conventions.race import RECOGNISED, Finish, Runner

ALIKE = 0.8  # share of images with the same class, from which on a guess does little harm


@dataclass(frozen=True)
class Answer:
    """The answer to one question about the convention.

    Attributes
    ----------
    question : {"pixels", "crop", "orientation", "mirror"}
    name : str
        The candidate that was chosen.
    sure : bool
        Whether it is better than every other in nearly all resampled sets of images.
    runner_up : str or None
        The best candidate with another effect.
    share_ahead : float
        Share of resampled sets of images in which the chosen one is ahead of the runner-up.
    recognised : float
        Information in the responses to the chosen one, as a share of the most there can be.
    same_class : float
        Share of the images that get the same class in the way of the runner-up.
    same_effect : list of str
        Candidates that hardly differ from the chosen one.
    scores : list of dict
        The mutual information (nats) that each candidate reached, and on how many images.
    alternative : dict
        The facts of the runner-up.
    """

    question: str
    name: str
    sure: bool
    runner_up: str | None
    share_ahead: float
    recognised: float
    same_class: float
    same_effect: list[str]
    scores: list[dict[str, Any]]
    alternative: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, question: str, finish: Finish) -> Answer:
        """The answer that a race gives."""
        ordered = sorted(finish.runners, key=lambda each: (-each.count, -each.score()))
        runner_up = finish.runner_up
        return cls(
            question,
            finish.best.name,
            finish.sure,
            None if runner_up is None else runner_up.name,
            round(finish.share_ahead, 4),
            round(finish.recognised, 4),
            round(finish.same_class, 4),
            list(dict.fromkeys(finish.best.twins)),
            [score_of(runner) for runner in ordered if runner.count or runner.refused],
            {} if runner_up is None else dict(runner_up.candidate.facts),
        )

    @property
    def sentence(self) -> str:
        """The answer in words."""
        same = f" (hardly different: {', '.join(self.same_effect)})" if self.same_effect else ""
        if self.runner_up is None:
            return f"{self.name}{same}"
        best, second = (self._score(name) for name in (self.name, self.runner_up))
        figures = f"{best:.2f} against {second:.2f} nats"
        if self.sure:
            return f"{self.name}{same}, surely better than {self.runner_up} ({figures})"
        if self.question == "pixels" and self.recognised < RECOGNISED:
            return (
                f"{self.name} is the best guess ({figures}), but in no convention does the model "
                "recognise much in these images"
            )
        if self.question != "pixels":
            return f"{self.name}; {self.runner_up} is not clearly different ({figures})"
        return (
            f"{self.name} and {self.runner_up} cannot be told apart on these images ({figures}; "
            f"the first is ahead in {self.share_ahead:.0%} of resampled sets, and "
            f"{self.same_class:.0%} of the images get the same class)"
        )

    def _score(self, name: str) -> float:
        return float(next(each["information"] for each in self.scores if each["name"] == name))


def score_of(runner: Runner) -> dict[str, Any]:
    """What a candidate reached, as plain JSON."""
    if runner.refused:
        return {"name": runner.name, "images": runner.count, "refused": True, "information": 0.0}
    return {
        "name": runner.name,
        "images": runner.count,
        "information": round(runner.score(), 4),
    }


@dataclass(frozen=True)
class Convention:
    """An input convention that was found, and the evidence for it.

    Attributes
    ----------
    facts : dict
        What to state about the model, by name; see `load_box`.
    answers : list of Answer
        One for each question that was open.
    images, queries : int
        What it was found with.
    box : Box
        The model with this convention.
    background : bool
        Whether class 0 is likely the background.
    """

    facts: dict[str, Any]
    answers: list[Answer]
    images: int
    queries: int
    box: Box
    background: bool = False

    @property
    def sure(self) -> bool:
        """Whether the pixels are surely sent as the model expects them.

        The other questions have a usual answer, which stays unless another one is surely better.
        """
        return all(answer.sure for answer in self.answers if answer.question == "pixels")

    @property
    def usable(self) -> bool:
        """Whether to go on with it: sure, or the runner-up would give nearly the same classes."""
        pixels = [answer for answer in self.answers if answer.question == "pixels"]
        return self.sure or all(
            answer.recognised >= RECOGNISED and answer.same_class >= ALIKE for answer in pixels
        )

    @property
    def options(self) -> list[str]:
        """What to write on the command line."""
        return as_options(self.facts)

    @property
    def alternative(self) -> list[str]:
        """What to write if the runner-up is the right one, where the two cannot be told apart."""
        for answer in self.answers:
            if answer.question == "pixels" and not answer.sure:
                return as_options(unusual_facts({**self.facts, **answer.alternative}))
        return []

    def __getitem__(self, question: str) -> Answer:
        """The answer to one question."""
        return next(answer for answer in self.answers if answer.question == question)

    def __contains__(self, question: object) -> bool:
        return any(answer.question == question for answer in self.answers)

    def card(self) -> dict[str, Any]:
        """Convention and evidence as plain JSON, for the card of a run."""
        return {
            "facts": with_lists(self.facts),
            "sure": self.sure,
            "usable": self.usable,
            "options": self.options,
            "images": self.images,
            "queries": self.queries,
            "background": self.background,
            "answers": [
                {**asdict(answer), "alternative": with_lists(answer.alternative)}
                for answer in self.answers
            ],
        }

    @classmethod
    def from_card(cls, card: Mapping[str, Any], box: Box) -> Convention:
        """The convention on the card of a run, with the same model."""
        facts = with_tuples(card["facts"])
        answers = [
            Answer(**{**answer, "alternative": with_tuples(answer["alternative"])})
            for answer in card["answers"]
        ]
        return cls(
            facts,
            answers,
            card["images"],
            card["queries"],
            box.restated(**facts),
            card["background"],
        )


def with_lists(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts as JSON has them."""
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()
    }


def with_tuples(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `with_lists`."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()
    }


def unusual_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Those facts that have to be stated because they are not the usual ones."""
    from soda_tta.box import Input
    from soda_tta.box.facts import INPUT_FACTS, OUTPUT_FACTS

    stated = {name: value for name, value in facts.items() if name in INPUT_FACTS}
    output = {name: value for name, value in facts.items() if name in OUTPUT_FACTS}
    return unusual({**output, "input": Input(**stated).card()})
