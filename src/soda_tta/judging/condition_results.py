"""What came of all conditions of a mixed set of images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor, RoutedAdaptor
from soda_tta.conditions.router import Router, Routes
from soda_tta.judging.candidate import ARRAYS, Candidate
from soda_tta.judging.condition_result import ConditionResult, overall_verdict
from soda_tta.judging.settle import what_would_settle
from soda_tta.judging.verdict import Verdict
from soda_tta.types import Array

ROUTES = ("conditions", "distances", "familiar")


@dataclass(frozen=True)
class ConditionResults:
    """The results of all conditions, and which image belongs to which.

    Parameters
    ----------
    results : list of ConditionResult
        The most frequent condition first.
    router : Router
        Tells the condition of further images.
    routes : Routes
        The condition of each image of the run.
    """

    results: list[ConditionResult]
    router: Router
    routes: Routes

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[ConditionResult]:
        return iter(self.results)

    def __getitem__(self, number: int) -> ConditionResult:
        return self.results[number]

    @property
    def adaptor(self) -> RoutedAdaptor:
        """What is deployed: the adopted adaptors, and nothing for the other conditions."""
        return self._routed([result.adaptor for result in self])

    @property
    def found(self) -> RoutedAdaptor:
        """What was found for each condition, adopted or not."""
        return self._routed([result.found for result in self])

    def _routed(self, adaptors: Sequence[Adaptor]) -> RoutedAdaptor:
        count = len(self.routes.conditions)
        return RoutedAdaptor(
            router=self.router,
            adaptors=adaptors,
            words=[result.words for result in self],
            shares=[result.images / count for result in self],
        )

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on all conditions together; None if nothing was found for any."""
        return overall_verdict(self.results)

    @property
    def unfamiliar(self) -> int:
        """How many images are unlike all conditions and stay as they are."""
        return int((~self.routes.familiar).sum())

    def members(self, number: int) -> Array:
        """Which images belong to a condition and are adapted with it."""
        return np.asarray((self.routes.conditions == number) & self.routes.familiar)

    def known_answers(self, before: Array) -> Array:
        """Answers that need no query: of images that stay as they are, or were judged; else NaN."""
        known = np.full(before.shape, np.nan, np.float32)
        known[~self.routes.familiar] = before[~self.routes.familiar]
        for number, result in enumerate(self):
            own = self.members(number)
            if not result.adopted:
                known[own] = before[own]
            elif result.candidate is not None:
                known[own] = result.candidate.answers(len(before))[own]
        return known

    def next_steps(self, before: Array) -> list[str]:
        """What would settle the verdicts to keep, as sentences."""
        sentences = []
        for result in self:
            if result.verdict is None or result.candidate is None or result.adopted:
                continue
            steps = what_would_settle(result.verdict, result.candidate, before)
            sentences.append(" ".join([f"{result.words}:", *steps]))
        return sentences

    def to_label(self, before: Array) -> Array:
        """Places of judged images that get another class by what was found."""
        places = [
            result.candidate.changed(before) for result in self if result.candidate is not None
        ]
        return np.sort(np.concatenate([np.zeros(0, int), *places]))

    def with_verdicts(self, verdicts: Sequence[Verdict | None]) -> ConditionResults:
        """The same with other verdicts, one per condition."""
        results = [
            replace(result, verdict=verdict)
            for result, verdict in zip(self.results, verdicts, strict=True)
        ]
        return replace(self, results=results)

    # -- on disk ---------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """Everything but arrays and adaptors, as plain JSON."""
        return {
            "unfamiliar": self.unfamiliar,
            "conditions": [result.facts() for result in self],
        }

    def arrays(self) -> dict[str, Array]:
        """The routes, and the responses that judged each condition, by name."""
        named = {f"routes.{name}": getattr(self.routes, name) for name in ROUTES}
        for number, result in enumerate(self):
            if result.candidate is not None:
                own = result.candidate.arrays()
                named |= {f"{number}.{name}": array for name, array in own.items()}
        return named

    @staticmethod
    def from_parts(
        facts: dict[str, Any], arrays: dict[str, Array], found: Adaptor
    ) -> ConditionResults:
        """The inverse of `facts`, `arrays` and `found`.

        KeyError, TypeError or ValueError if these are something else.
        """
        if not isinstance(found, RoutedAdaptor):
            raise ValueError("what was found is not an adaptor of several conditions")
        results = []
        for number, (each, adaptor) in enumerate(
            zip(facts["conditions"], found.adaptors, strict=True)
        ):
            own = {name: arrays.get(f"{number}.{name}") for name in ARRAYS}
            judged = own["judged"] is not None
            verdict = each["verdict"]
            results.append(
                ConditionResult(
                    words=str(each["words"]),
                    images=int(each["images"]),
                    examples=tuple(int(place) for place in each["examples"]),
                    verdict=None if verdict is None else Verdict(**verdict),
                    candidate=Candidate.from_arrays(adaptor, own) if judged else None,
                )
            )
        routes = Routes(*(arrays[f"routes.{name}"] for name in ROUTES))
        return ConditionResults(results, found.router, routes)
