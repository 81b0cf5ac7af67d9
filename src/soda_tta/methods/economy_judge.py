"""The verdict of soda-e: pay for the responses that judge a candidate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from soda_tta.adaptors import BankAdaptor
from soda_tta.engine.work import Work
from soda_tta.judging.candidate import Candidate
from soda_tta.judging.verdict import Verdict, moved
from soda_tta.methods.tools import in_order
from soda_tta.types import Array, Purpose


class Judge:
    """Judges candidates on images that the search did not use.

    Parameters
    ----------
    work : the run.
    adaptor : the bank; a candidate is this bank with other parameters.
    judged : places of the images to judge by.
    scenes : their scenes.
    searched : places of the images that the search used.
    answers : queries that answering all images takes in the end.
    prior : the share of each class, if it was stated.
    """

    def __init__(
        self,
        work: Work,
        adaptor: BankAdaptor,
        judged: Array,
        scenes: Array,
        searched: Array,
        *,
        answers: int,
        prior: Array | None = None,
    ) -> None:
        self.work = work
        self.answers = answers
        self.prior = prior
        self.adaptor = adaptor
        order = np.argsort(judged)
        self.judged = judged[order]
        self.scenes = scenes[order]
        self.searched = searched
        self.moved_before: Array | None = None  # paid once, for the first candidate

    def best_of(self, thetas: list[Array], level: float) -> tuple[Candidate, Verdict]:
        """The first candidate to adopt; if there is none, the one with the smallest p-value."""
        judged: list[tuple[Candidate, Verdict]] = []
        for theta in thetas:
            if judged and not self._affordable():
                break
            candidate = self.candidate(theta)
            verdict = candidate.judge(self.work.before, level, len(thetas), self.prior)
            judged.append((candidate, verdict))
            if verdict.adopt:
                return judged[-1]
        return min(judged, key=lambda pair: pair[1].p_value)

    def _affordable(self) -> bool:
        """Whether another candidate can be judged and then answer all images."""
        left = self.work.meter.left
        return left is None or left >= self.answers + len(self.judged)

    def candidate(self, theta: Array) -> Candidate:
        """A candidate with the responses that judge it."""
        adaptor = BankAdaptor(structure=self.adaptor.structure, parameters=theta)
        first = self.moved_before is None
        # If the first candidate is adopted, these responses are answers. Later ones rarely are.
        answering: Purpose = "evaluate" if first else "judge"

        def pieces() -> Iterator[tuple[Purpose, Array]]:
            for place in in_order(len(self.judged), self.work.images.at_once):
                self.work.check_stop()
                images = self.work.images[self.judged[place]]
                adapted = adaptor(images)
                yield answering, adapted
                if first:
                    yield "judge", moved(images)
                yield "judge", moved(adapted)

        # One flight: a call for each would leave most workers idle at its end.
        rows = list(self.work.meter.each(pieces(), answering, "judge"))
        if first:
            self.moved_before = np.concatenate(rows[1::3])
        step = 3 if first else 2
        assert self.moved_before is not None
        return Candidate(
            adaptor=adaptor,
            judged=self.judged,
            scenes=self.scenes,
            searched=self.searched,
            moved_before=self.moved_before,
            after=np.concatenate(rows[::step]),
            moved_after=np.concatenate(rows[step - 1 :: step]),
        )
