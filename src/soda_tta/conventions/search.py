"""The questions about a convention, one after the other, and the queries that answer them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from soda_tta.box import Box, Meter
from soda_tta.conventions.convention import Answer, Convention, unusual_facts
from soda_tta.conventions.race import Ask, Finish, Runner, challenge, race
from soda_tta.conventions.sample import Sample
from soda_tta.conventions.table import (
    CROPS,
    MIRRORS,
    OWN,
    STATED,
    TURNS,
    Candidate,
    Facts,
    pixel_candidates,
)
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.types import Array

MOST_QUERIES = 1000
PIXEL_QUERIES = 560  # the most for normalisation, channel order and layout
CHALLENGE_IMAGES = 96  # for a crop or an orientation
MIRROR_IMAGES = 64
MOST_COMPARED = max(CHALLENGE_IMAGES, MIRROR_IMAGES)
FIRST_IMAGES = 4  # that show whether the model accepts them at all
IMAGENET_CLASSES = 1000

Progress = Callable[[int, int], None]


class Search:
    """The questions one after the other, each with the answers to those before."""

    def __init__(self, box: Box, fixed: frozenset[str], sample: Sample) -> None:
        self.box = box
        self.fixed = fixed
        self.sample = sample
        self.facts: dict[str, Any] = {}
        self.answers: list[Answer] = []
        self.check = False
        self.meter = Meter(box)
        self.progress: Progress = lambda done, limit: None

    def run(self, own: Mapping[str, Facts] | None) -> Convention:
        """All questions that are open."""
        before = self.spent
        layouts = self.accepted()
        if not self.is_open(layouts, own):
            return self.result(before, None)
        champion = self.find_pixels(layouts, own)
        self.find_crop(champion)
        self.find_orientation(champion)
        self.find_pixels_again()
        return self.result(before, champion.rows)

    def is_open(self, layouts: Sequence[str], own: Mapping[str, Facts] | None) -> bool:
        """Whether any question is."""
        return (
            len(self.candidates(layouts, own)) > 1 or "turn" not in self.fixed or self.crop_is_open
        )

    @property
    def crop_is_open(self) -> bool:
        """Whether images have to be fitted to the model, and how is not known."""
        view = self.box.input.view
        same_size = view is None or self.sample.images.size == view.size
        return "crop" not in self.fixed and not same_size

    def result(self, before: int, rows: Array | None) -> Convention:
        """What was found; `before` is what was spent earlier."""
        spent = self.spent - before
        found = self.box.restated(**self.facts)
        facts = unusual_facts(_plain(found))
        return Convention(
            facts={name: value for name, value in facts.items() if name not in self.fixed},
            answers=self.answers,
            images=len(self.sample),
            queries=spent,
            box=found,
            background=looks_like_background(rows),
        )

    # -- questions -------------------------------------------------------------------------------

    def accepted(self) -> list[str]:
        """The layouts that the model accepts; settles whether it returns logits."""
        layouts = [self.box.input.layout]
        if "layout" not in self.fixed:
            layouts += [each for each in ("NCHW", "NHWC") if each not in layouts]
        outputs: list[Facts] = [{}]
        if not {"logits", "partial"} & self.fixed:
            outputs += [{"partial": True}, {"logits": True}]
        accepted = []
        refusal: BoxError | None = None
        for layout in layouts:
            for output in outputs:
                try:
                    self.ask_model({"layout": layout, **output}, slice(0, FIRST_IMAGES))
                except BoxUnavailable:
                    raise
                except BoxError as error:
                    refusal = refusal or error
                    continue
                accepted.append(layout)
                self.facts.update(output)
                outputs = [output]
                break
        if not accepted:
            assert refusal is not None
            raise refusal
        return accepted

    def find_pixels(self, layouts: Sequence[str], own: Mapping[str, Facts] | None) -> Runner:
        """Normalisation, channel order and layout."""
        candidates = self.candidates(layouts, own)
        # one candidate has nothing to win: it only needs what the other questions compare with
        needed = MOST_COMPARED if len(candidates) == 1 else len(self.sample)
        end = race(candidates, self.ask, min(needed, len(self.sample)), PIXEL_QUERIES)
        if end is None:
            raise BoxError(
                "the model refused the images in every convention; state what it expects: mean, "
                "std, pixel_range and channels."
            )
        self.keep("pixels" if len(candidates) > 1 else None, end)
        return end.best

    def candidates(
        self, layouts: Sequence[str], own: Mapping[str, Facts] | None
    ) -> list[Candidate]:
        """All ways to send the pixels that are still open."""
        shown = self.sample.seen(self.box.input.view)
        return pixel_candidates(self.box.input, self.fixed, layouts, shown, own, stated=self.check)

    def find_pixels_again(self) -> None:
        """Compare the two best once more, if they could not be told apart on images on their side.

        What is left of the queries goes into it.
        """
        pixels = next((each for each in self.answers if each.question == "pixels"), None)
        if not self.facts.get("turn") or pixels is None or pixels.sure or not pixels.alternative:
            return
        names = (pixels.name, pixels.runner_up or "")
        first = {name: self.facts[name] for name in pixels.alternative}
        pair = [Candidate(*each) for each in zip(names, (first, pixels.alternative), strict=True)]
        pair.sort(key=lambda candidate: candidate.name.startswith(OWN))  # the usual ones first
        left = MOST_QUERIES - self.spent
        end = race(pair, self.ask, min(len(self.sample), left // 2), left)
        if end is not None:
            self.answers.remove(pixels)
            self.keep("pixels", end)
            self.answers.insert(0, self.answers.pop())

    def find_crop(self, champion: Runner) -> None:
        """Stretched to the model's size, or cropped."""
        if not self.crop_is_open:
            return
        self.challenge("crop", champion, CROPS, CHALLENGE_IMAGES)

    def find_orientation(self, champion: Runner) -> None:
        """Quarter turns, then mirrored or not."""
        if "turn" not in self.fixed:
            self.challenge("turn", champion, TURNS, CHALLENGE_IMAGES)
        if "mirror" not in self.fixed:
            self.challenge("mirror", champion, MIRRORS, MIRROR_IMAGES)

    def challenge(
        self, fact: str, champion: Runner, values: Mapping[str, Any], images: int
    ) -> None:
        """Compare the known value of a fact, which `champion` has, with the others."""
        known = getattr(self.box.input, fact)
        name = next((name for name, value in values.items() if value == known), STATED)
        others = [Candidate(other, {fact: values[other]}) for other in values if other != name]
        current = Runner(Candidate(name, {fact: known}), champion.rows)
        end = challenge(current, others, self.ask, min(images, len(self.sample)))
        self.keep({"turn": "orientation"}.get(fact, fact), end)
        champion.rows = end.best.rows  # the next question is compared with this answer

    def keep(self, question: str | None, end: Finish) -> None:
        """Keep the answer to a question and what it says about the model."""
        self.facts.update(end.best.candidate.facts)
        if question is not None:
            self.answers.append(Answer.of(question, end))

    @property
    def spent(self) -> int:
        """Queries so far."""
        return self.meter.ledger.by_purpose().get("convention", 0)

    # -- queries ---------------------------------------------------------------------------------

    def ask_model(self, facts: Facts, chosen: slice) -> Array:
        """Send some images in the way that these facts state."""
        box = self.box.restated(**{**self.facts, **facts})
        meter = Meter(box, self.meter.ledger, self.meter.transcript, self.meter.waiting)
        meter.responded = self.meter.responded
        with np.errstate(all="ignore"):  # a function may warn about pixels that are out of place
            rows = meter.asking("convention")(self.sample.seen(box.input.view)[chosen])
        self.progress(self.spent, self.meter.ledger.limit or MOST_QUERIES)
        return rows

    @property
    def ask(self) -> Ask:
        """As `ask_model`, for races: None if the model refuses the images."""

        def asked(candidate: Candidate, chosen: slice) -> Array | None:
            try:
                return self.ask_model(candidate.facts, chosen)
            except BoxUnavailable:
                raise
            except BoxError:
                return None  # for example NaN: this cannot be what the model expects

        return asked


def _plain(box: Box) -> dict[str, Any]:
    """All facts of a box, by name."""
    output = {name: getattr(box, name) for name in ("logits", "partial")}
    return {**box.input.card(), **output}


def looks_like_background(rows: Array | None) -> bool:
    """Whether class 0 is one too many, and never predicted."""
    if rows is None or rows.shape[1] != IMAGENET_CLASSES + 1:
        return False
    return bool((rows.argmax(axis=1) != 0).all() and rows[:, 0].mean() < 1 / len(rows[0]))
