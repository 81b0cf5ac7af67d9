"""What a search found and what it was judged by: kept also if the verdict was to keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.judging.measures import Views
from soda_tta.judging.verdict import Verdict, judge
from soda_tta.types import Array

ARRAYS = ("judged", "scenes", "searched", "moved_before", "after", "moved_after")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An adaptor that may be deployed, with the responses that were paid to judge it.

    Parameters
    ----------
    adaptor : Adaptor
        What the search found.
    judged : integer array of shape (n,)
        Places of the images it was judged on. The search did not use them.
    scenes : integer array of shape (n,)
        The scene of each of them.
    searched : integer array of shape (m,)
        Places of the images that the search used.
    moved_before, after, moved_after : arrays of shape (n, classes)
        Responses to the judged images: shifted, adapted, and adapted and shifted.
    """

    adaptor: Adaptor
    judged: Array
    scenes: Array
    searched: Array
    moved_before: Array
    after: Array
    moved_after: Array

    def judge(
        self, before: Array, level: float, candidates: int = 1, prior: Array | None = None
    ) -> Verdict:
        """The verdict, given the responses to all images as they are."""
        return judge(
            self.views_before(before),
            self.views_after,
            level,
            scenes=self.scenes,
            candidates=candidates,
            prior=prior,
        )

    def views_before(self, before: Array) -> Views:
        """Responses to both views of the judged images as they are."""
        return before[self.judged], self.moved_before

    @property
    def views_after(self) -> Views:
        """Responses to both views of the judged images, adapted."""
        return self.after, self.moved_after

    def answers(self, count: int) -> Array:
        """Responses to all `count` images, adapted; rows that were never asked for are NaN."""
        rows = np.full((count, self.after.shape[1]), np.nan, np.float32)
        rows[self.judged] = self.after
        return rows

    def changed(self, before: Array) -> Array:
        """Places of the judged images that get another class."""
        differs = self.after.argmax(axis=1) != before[self.judged].argmax(axis=1)
        places: Array = self.judged[differs]
        return places

    def arrays(self) -> dict[str, Array]:
        """Everything but the adaptor, by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    @staticmethod
    def from_arrays(adaptor: Adaptor, arrays: dict[str, Any]) -> Candidate:
        """The candidate with these arrays; KeyError if one is absent."""
        return Candidate(adaptor=adaptor, **{name: arrays[name] for name in ARRAYS})
