"""soda-e with a helper: it searches the bank without queries, and the model confirms a shortlist.

The helper stays as it was trained, with its own statistics: those of a batch would hide the changes
of tone that the bank repairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from soda_tta.adaptors import Bank, BankAdaptor
from soda_tta.engine.restored import RestoredImages
from soda_tta.engine.work import Work
from soda_tta.judging.verdict import Verdict
from soda_tta.methods.economy_confirm import (
    SEARCH_MOVES,
    SHORTLIST,
    Confirmation,
    chosen,
    search_batch,
)
from soda_tta.methods.economy_plan import EconomyPlan
from soda_tta.methods.economy_sizes import Sizes
from soda_tta.methods.helped.fusion import fused_answers
from soda_tta.methods.helped.helper import Helper
from soda_tta.methods.method import Outcome
from soda_tta.methods.tools import in_order, step_of
from soda_tta.randomness import RandomStream, generator
from soda_tta.search import EconomySearch
from soda_tta.types import Array

FREE_QUERIES = 12_000  # of the helper: what a search of soda-e takes
FUSED = (
    "answers are averaged with the helper's; `apply` gives the model's own answer to the adapted "
    "image."
)


class HelpedRun:
    """One run.

    Parameters
    ----------
    method : the settings.
    work : the run.
    helper : the local network.
    confirmation : how the queries are divided.
    """

    def __init__(
        self, method: EconomyPlan, work: Work, helper: Helper, confirmation: Confirmation
    ) -> None:
        self.method = replace(method, recipes=False)  # the helper's queries are free: all moves
        self.work = work
        self.helper = helper
        self.confirmation = confirmation
        self.bank = Bank.for_size(work.images.size).build()
        self.thetas = np.zeros((1, self.bank.parameters.size))  # the first leaves images unchanged
        self.rows: list[Array] = []  # the model's responses to the confirming images, by candidate
        random = generator(work.seed, RandomStream.CONFIRM)
        self.order = random.permutation(len(work.images))
        self.random = random
        self.rounds = 0
        self.verdict: Verdict | None = None

    def outcome(self) -> Outcome:
        """Search, confirm and answer."""
        self.work.expect(self.helper.answers(self.work.images[slice(0, 1)]).shape[1])
        if not self.confirmation.confirmed:
            return self.answered(0, reason=self.confirmation.outline)
        confirming = np.sort(self.order[: self.confirmation.confirmed])
        free = self.order[self.confirmation.confirmed :]
        restored, search = self.searched_by_helper(free)
        self.thetas = np.concatenate([self.thetas, self.shortlist(search)])
        self.ask(confirming, self.thetas)
        self.work.before[confirming] = self.rows[0]
        scenes = self.work.scenes(confirming)
        best, verdict = chosen(np.array(self.rows), scenes, self.random)
        if self.confirmation.probe:
            self.search_on(restored, best if verdict.adopt else 0)
            self.ask(confirming, self.thetas[len(self.rows) :])
            best, verdict = chosen(np.array(self.rows), scenes, self.random)
        self.verdict = verdict
        told = "adopt" if verdict.adopt else "keep"
        reason = f"{self.rounds} rounds of search by the helper; the verdict is to {told}."
        return self.answered(best if verdict.adopt else 0, reason, confirming)

    # -- searching -------------------------------------------------------------------------------

    def searched_by_helper(self, free: Array) -> tuple[RestoredImages, EconomySearch]:
        """The search of soda-e with the helper in place of the model."""
        sizes = self.sizes(len(free), FREE_QUERIES)
        restored = self.method.restored(self.bank, self.work, free, sizes)
        places = restored.places
        before = np.full(self.work.before.shape, np.nan, np.float32)
        before[places] = self.helper.answers(self.work.images[places])
        known = replace(self.work, before=before)
        search = self.method.search(known, restored, self.work.scenes(places), sizes)
        self.singles = np.zeros((0, self.thetas.shape[1]))
        while (question := search.ask(None)) is not None:
            answers = restored.answers(question.thetas, question.images, self.helper.box)
            completed = search.tell(answers)
            if completed is None:
                continue
            if not self.rounds:  # the first round tries every move by itself
                order = np.argsort(completed.losses[1:], kind="stable")
                self.singles = search.settings.moves[order]
            self.rounds += 1
            step = step_of(completed, len(self.work.history) + 1)
            self.work.record(replace(step, queries=0))  # the helper's cost nothing
        return restored, search

    def sizes(self, images: int, probe: int) -> Sizes:
        """A search on so many images with so many queries."""
        return Sizes(judged=0, searched=images, batch=min(self.method.batch, images), probe=probe)

    def shortlist(self, search: EconomySearch) -> Array:
        """Where evolution and pursuit ended, and the best single moves."""
        found: list[Array] = []
        for theta in (search.theta, search.pursued, *self.singles):
            if theta.any() and not any(np.array_equal(theta, other) for other in found):
                found.append(theta)
        return np.array(found[:SHORTLIST])

    def search_on(self, restored: RestoredImages, begin: int) -> None:
        """The model itself searches from what it has confirmed, with the helper's best moves."""
        probe = self.confirmation.probe
        places = restored.places
        sizes = self.sizes(len(places), probe)._replace(batch=search_batch(len(places), probe))
        before: Array = np.zeros(self.work.before.shape, np.float32)  # not used
        known = replace(self.work, before=before)
        search = self.method.search(known, restored, self.work.scenes(places), sizes)
        settings = replace(search.settings, moves=self.singles[:SEARCH_MOVES])
        search = EconomySearch(settings, before[places])
        classes = before.shape[1]
        search.begin_at(self.thetas[begin], np.zeros(0, int), np.zeros((0, classes), np.float32))
        reserve = len(self.work.images)
        self.method.drive(search, restored, self.work, reserve)
        if not any(np.array_equal(search.theta, theta) for theta in self.thetas):
            self.thetas = np.concatenate([self.thetas, search.theta[None]])

    # -- asking the model ------------------------------------------------------------------------

    def ask(self, places: Array, thetas: Array) -> None:
        """The responses to these images, by candidate."""
        if not len(thetas):
            return
        box = self.work.asking("judge")

        def pieces() -> Iterator[Array]:
            for part in in_order(len(places), self.work.images.at_once):
                self.work.check_stop()
                images = self.work.images[places[part]]
                yield from self.bank.candidates(images, thetas)

        # Of all candidates on some images, then on the next: the next are made meanwhile.
        responses = list(box.each(pieces()))
        count = len(thetas)
        rows: Array = np.array([np.concatenate(responses[k::count]) for k in range(count)])
        if rows.shape[2] != self.work.before.shape[1]:
            self.helper.check(self.work.images[places[:1]], rows.shape[2])
        self.rows += list(rows)

    def answered(self, best: int, reason: str, confirming: Array | None = None) -> Outcome:
        """The answers through a candidate; those of the confirming images are known."""
        known = np.full(self.work.before.shape, np.nan, np.float32)
        if confirming is not None:
            known[confirming] = self.rows[best]
        theta = self.thetas[best].astype(np.float32)
        adaptor = BankAdaptor(structure=self.bank.structure, parameters=theta)
        facts: dict[str, Any] = {"verdict": self.verdict, "reason": reason}
        fuses = self.method.fuse > 0
        if theta.any() and not fuses:
            return Outcome(adaptor=adaptor, known=known, **facts)
        rows = self.all_answers(adaptor, known)
        if not theta.any():
            self.work.before[:] = rows
        if not fuses:
            return Outcome(rows, **facts)
        rows = fused_answers(self.helper, adaptor, self.work, rows, self.method.fuse)
        if theta.any():
            return Outcome(rows, adaptor=adaptor, notices=(FUSED,), **facts)
        return Outcome(rows, **facts)

    def all_answers(self, adaptor: BankAdaptor, known: Array) -> Array:
        """The model's answers to all images through an adaptor."""
        box = self.work.asking("evaluate")
        missing = np.flatnonzero(np.isnan(known[:, 0]))
        parts = list(in_order(len(missing), self.work.images.at_once))

        def pieces() -> Iterator[Array]:
            for part in parts:
                self.work.check_stop()
                yield adaptor(self.work.images[missing[part]])

        for part, rows in zip(parts, box.each(pieces()), strict=True):
            if rows.shape[1] != known.shape[1]:
                self.helper.check(self.work.images[missing[part]], rows.shape[1])
            known[missing[part]] = rows
        return known


def adapt_with_helper(method: EconomyPlan, work: Work) -> Outcome:
    """One adaptor for all images, found by the helper and confirmed by the model."""
    confirmation = method.confirmation(len(work.images), work.meter.limit)
    return HelpedRun(method, work, method.found_helper(), confirmation).outcome()
