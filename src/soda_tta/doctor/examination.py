"""`examine`: two queries an image at most, and what they tell about adapting."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from soda_tta.box import Box, Ledger, Metered, load_box
from soda_tta.data import Images, open_images
from soda_tta.doctor.advice import accuracy, advise, cost, enough, prescribe
from soda_tta.doctor.balance import EVEN, balance, evenness
from soda_tta.doctor.finding import Finding, State
from soda_tta.doctor.probabilities import (
    SAME,
    completeness,
    digits,
    repeatability,
    saturation,
    sums,
)
from soda_tta.doctor.sensitivity import sensitivity
from soda_tta.doctor.shift import shift
from soda_tta.doctor.trial import FEWEST, RESTORATIONS, trial
from soda_tta.errors import BoxUnavailable, ImageError, MethodError, SodaError
from soda_tta.judging.estimate import Estimate, classes_alone, estimate_accuracy
from soda_tta.types import Array

Progress = Callable[[int, int], None]
SAMPLE = 500  # images looked at; more would not change the advice
PIECE = 128  # images a call: a failure loses no more, and progress is seen
A_FEW = 32  # asked again, or a step aside
TRIED = 120  # images a restoration
FEWEST_TO_COMPARE = 20  # images of either set; with fewer the test for a shift has no power


@dataclass(kw_only=True)
class Examination:
    """What was found and what to do; `advice` is go, try, leave, fix or unknown."""

    advice: str
    sentence: str
    findings: list[Finding]
    estimate: Estimate | None
    method: str
    budget: float
    images: int
    sampled: int
    queries: dict[str, int]  # by purpose
    limit: int
    seconds: float
    failed: str | None = None  # what went wrong, if the examination is incomplete
    seed: int = 0

    def __getitem__(self, name: str) -> Finding:
        """The finding of that name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(
            f"nothing was found on {name!r}; there is {', '.join(f.name for f in self.findings)}"
        )

    def __contains__(self, name: object) -> bool:
        return any(finding.name == name for finding in self.findings)

    @property
    def total(self) -> int:
        return sum(self.queries.values())

    def facts(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {**asdict(self), "total": self.total}


def examine(
    images: Any,
    box: Any,
    *,
    clean: Any = None,
    clean_accuracy: float | None = None,
    price: float | None = None,
    sample: int = SAMPLE,
    seed: int = 0,
    progress: Progress = lambda done, of: None,
) -> Examination:
    """Says whether adapting `images` to the deployed model `box` is likely to help; neither is changed.

    Looks at no more than `sample` images, and as many of `clean`, and spends no more than two queries on each.
    `clean_accuracy`: the share of clean images the model is known to get right, if you know it.
    A model that fails half-way gives what is known until then, with `failed` set.
    """
    if sample < 1:
        raise ImageError(f"a sample of {sample} images shows nothing; give at least 1.")
    if seed < 0:
        raise MethodError(f"seed {seed} is negative; give 0 or more.")
    if clean_accuracy is not None and (clean is None or not 0 < clean_accuracy <= 1):
        raise MethodError(
            f"a clean accuracy of {clean_accuracy:g} needs clean images (--clean) and is a share of 1."
        )
    began = time.perf_counter()
    reference = None if clean is None else open_images(clean)
    visit = Visit(
        open_images(images), load_box(box), reference, clean_accuracy, sample, seed, progress
    )
    visit.go()
    prescription = prescribe(len(visit.images))
    if visit.answers is not None:
        visit.findings.append(enough(len(visit.images), visit.answers.shape[1]))
    visit.findings.append(cost(prescription, len(visit.images), price))
    advice, sentence = advise(visit.findings, visit.estimate, visit.failed, len(visit.images))
    return Examination(
        advice=advice,
        sentence=sentence,
        findings=visit.findings,
        estimate=visit.estimate,
        method=prescription.method,
        budget=prescription.budget,
        images=len(visit.images),
        sampled=len(visit.chosen),
        queries=visit.ledger.by_purpose(),
        limit=visit.ledger.limit or 0,
        seconds=round(time.perf_counter() - began, 3),
        failed=visit.failed,
        seed=seed,
    )


@dataclass
class Visit:
    """An examination under way: each look may fail, and what is known by then stays."""

    images: Images
    box: Box
    clean: Images | None
    clean_accuracy: float | None
    sample: int
    seed: int
    progress: Progress
    findings: list[Finding] = field(default_factory=list)
    estimate: Estimate | None = None
    answers: Array | None = None
    clean_answers: Array | None = None
    noise: float = 0.0
    failed: str | None = None

    def __post_init__(self) -> None:
        generator = np.random.default_rng(self.seed)
        self.chosen = np.sort(generator.permutation(len(self.images))[: self.sample])
        of_clean = 0 if self.clean is None else len(self.clean)
        self.chosen_clean = np.sort(generator.permutation(of_clean)[: self.sample])
        self.ledger = Ledger(2 * (len(self.chosen) + len(self.chosen_clean)))

    def go(self) -> None:
        """Every look in turn, until one fails."""
        away = False
        looks = (
            self.first_look,
            self.clean_look,
            self.look_again,
            self.look_aside,
            self.try_restorations,
        )
        for look in looks:
            try:
                look()
            except SodaError as error:  # of the model, or of an image that cannot be read
                if isinstance(error, ImageError) and self.answers is None:
                    raise  # nothing was asked yet, and it is not the model's doing
                self.failed = (
                    f"{WHAT[look.__name__]} failed after {self.ledger.total:,} queries: {error}"
                )
                away = isinstance(error, BoxUnavailable)
                break
        if self.answers is None:
            said = "The model did not answer." if away else "The model gave no usable answer."
            state: State = "caution" if away else "bad"
            self.findings.append(
                Finding(name="answers", state=state, sentence=said, remedy=self.failed or "")
            )

    def ask(self, images: Array, purpose: str = "probe") -> Array:
        rows = Metered(self.box, self.ledger, purpose)(images)
        self.progress(self.ledger.total, self.ledger.limit or 0)
        return rows

    def walk(self, images: Images, chosen: Array, keep: Callable[[Array], None]) -> None:
        """In pieces; `keep` receives all rows there are after each, so that a failure loses only the piece."""
        rows: list[Array] = []
        try:
            piece = min(PIECE, images.at_once)
            for start in range(0, len(chosen), piece):
                rows.append(self.ask(images[chosen[start : start + piece]], "select"))
        finally:
            if rows:
                keep(np.concatenate(rows))

    def first_look(self) -> None:
        def keep(rows: Array) -> None:
            self.answers = rows
            self.findings += [sums(rows), digits(rows), completeness(rows), saturation(rows)]
            if self.clean is None:
                self.judge(None)

        self.walk(self.images, self.chosen, keep)

    def clean_look(self) -> None:
        if self.clean is None:
            return

        def keep(rows: Array) -> None:
            self.clean_answers = rows

        try:
            self.walk(self.clean, self.chosen_clean, keep)
        finally:
            self.judge(self.clean_answers)

    def judge(self, clean: Array | None) -> None:
        """What needs both sets of answers, or is content with one."""
        assert self.answers is not None
        clean = clean if clean is not None and len(clean) >= FEWEST_TO_COMPARE else None
        shares = None
        if clean is not None and evenness(clean.argmax(axis=1), clean.shape[1]) < EVEN:
            shares = clean.mean(axis=0)  # better than to take balance for granted
        known = None if clean is None else self.clean_accuracy
        self.estimate = estimate_accuracy(
            self.answers, shares=shares, clean=clean, clean_accuracy=known
        )
        if clean is not None and len(self.answers) >= FEWEST_TO_COMPARE:
            usual = known or estimate_accuracy(clean, shares=shares).accuracy
            now = self.estimate.accuracy
            self.findings.append(shift(self.answers, clean, now=now, usual=usual, seed=self.seed))
        self.findings.append(balance(self.answers, clean))
        self.findings.append(accuracy(self.estimate))

    def look_again(self) -> None:
        few = self.few(looks=2)
        if not few:
            return
        assert self.answers is not None
        images, first = self.images[self.chosen[:few]][::-1].copy(), self.answers[:few][::-1]
        again = self.ask(images)
        self.noise = float(np.abs(first - again).max())
        once_more = self.ask(images) if self.noise > SAME else None
        self.findings.append(repeatability(first, again, once_more))

    def look_aside(self) -> None:
        if few := self.few(looks=5):
            shown = self.images[self.chosen[:few]]
            noise = self.noise if self.noise > SAME else 0.0
            assert self.answers is not None
            looks = len(np.unique(self.answers.argmax(axis=1))) > 1 and classes_alone(self.answers)
            self.findings += sensitivity(
                shown, self.ask, self.box.quantum, noise, self.seed, only_classes=looks
            )

    def try_restorations(self) -> None:
        few = min(TRIED, len(self.chosen), (self.ledger.left or 0) // len(RESTORATIONS))
        if few >= FEWEST:
            assert self.answers is not None
            places = np.sort(np.random.default_rng(self.seed).permutation(len(self.chosen))[:few])
            chosen, at_once = self.chosen[places], self.images.at_once
            pieces = (
                self.images[chosen[start : start + at_once]] for start in range(0, few, at_once)
            )
            self.findings.append(trial(pieces, self.answers[places], self.ask, self.seed))

    def few(self, looks: int) -> int:
        """How many images to spare for so many looks at each."""
        return min(A_FEW, max(1, len(self.chosen) // 8), (self.ledger.left or 0) // looks)


WHAT = {
    "first_look": "the first look at the images",
    "clean_look": "the look at the clean images",
    "look_again": "asking the same images again",
    "look_aside": "asking one 8-bit step aside",
    "try_restorations": "trying plain restorations",
}
