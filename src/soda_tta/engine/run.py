"""A run: what came out, what it cost, and everything needed to repeat it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Ledger
from soda_tta.display.notebook import html_columns, html_table
from soda_tta.engine.card import Card
from soda_tta.engine.events import Step
from soda_tta.errors import RunError
from soda_tta.foreign_text import quoted
from soda_tta.judging.candidate import Candidate
from soda_tta.judging.condition_results import ConditionResults
from soda_tta.judging.condition_table import (
    HEADER,
    condition_rows,
    mixed_facts,
    unfamiliar_sentence,
)
from soda_tta.judging.settle import what_would_settle
from soda_tta.judging.verdict import Verdict
from soda_tta.storage.run_folder import RunFolder
from soda_tta.storage.stored_run import NOT_ANSWERED, NOT_WANTED, read_run_folder
from soda_tta.types import Array, Stopped
from soda_tta.user_code import load_own

# The report is an instrument of a higher floor: it is named here, not imported.
WRITE_REPORT = "soda_tta.report:write_report"


@dataclass(repr=False)
class Run:
    """The result of `adapt`.

    Parameters
    ----------
    before : probabilities of the images as they are, (images, classes). Rows are NaN where the
        image was not sent as it is: the run was interrupted during its first pass, or its method
        has none.
    after : probabilities of the adapted images; None if the run was interrupted before it answered,
        or was not to answer.
    adaptor : what was learned.
    ledger : the queries spent, by purpose.
    history : the steps of the search.
    stopped : why the run ended: "finished", "budget" or "interrupted".
    reason : the same as a sentence.
    card : the protocol card.
    names : the name of every image.
    seconds : how long it took, over all processes.
    notices : what the user should know.
    verdict : whether to deploy the adaptor; None if the method gives no verdict.
    candidate : what was judged, also if the verdict was to keep; `rejudge` can judge it again.
    earlier_verdicts : verdicts that later ones replaced, the first one first.
    unreached : images that keep their unadapted answer because the budget ran out.
    clean : probabilities of the clean images; None without any.
    conditions : what came of each condition of mixed images; None if all images are alike.
    """

    before: Array
    after: Array | None
    adaptor: Adaptor
    ledger: Ledger
    history: list[Step]
    stopped: Stopped
    reason: str
    card: Card
    names: list[str]
    seconds: float
    notices: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    unreached: int = 0
    candidate: Candidate | None = None
    earlier_verdicts: list[Verdict] = field(default_factory=list)
    clean: Array | None = None
    conditions: ConditionResults | None = None

    @property
    def probabilities(self) -> Array:
        """The answers to use: of the adapted images, or of the images as they are."""
        return self.before if self.after is None else self.after

    @property
    def predictions(self) -> Array:
        """The most likely class of every image; -1 for images that were not answered."""
        return most_likely(self.probabilities)

    @property
    def changed(self) -> int:
        """How many images now get another class, among those that were also sent as they are."""
        before = most_likely(self.before)
        return int(((self.predictions != before) & (before >= 0)).sum())

    @property
    def queries_per_image(self) -> float:
        """All queries that were billed, per image."""
        return self.ledger.total / len(self.before)

    @property
    def next_steps(self) -> list[str]:
        """What would settle a verdict to keep, as sentences; empty if nothing is open."""
        if self.conditions is not None:
            return self.conditions.next_steps(self.before)
        if self.candidate is None or self.verdict is None or self.verdict.adopt:
            return []
        return what_would_settle(self.verdict, self.candidate, self.before)

    def __repr__(self) -> str:
        count = len(self.before)
        return f"<{self.card.method} on {count:,} images: {self.stopped}, {self.ledger!r}>"

    def _repr_html_(self) -> str:
        """The run as a notebook shows it: verdict, before and after, queries."""
        count = len(self.before)
        facts = self.summary()
        verdict = "this method gives none" if self.verdict is None else self.verdict.sentence
        changed = "not known yet"
        if self.after is not None:
            changed = f"{self.changed:,} of {count:,} ({self.changed / count:.1%})"
        spent = ", ".join(f"{purpose} {queries:,}" for purpose, queries in facts["queries"].items())
        rows = [
            ("verdict", verdict),
            ("answers changed", changed),
            *(
                (f"mean confidence {moment}", "not known yet" if value is None else f"{value:.3f}")
                for moment, value in facts["mean_confidence"].items()
            ),
            ("queries", f"{self.ledger.total:,}, {self.queries_per_image:.2f} per image ({spent})"),
            ("stopped", f"{self.stopped}: {self.reason}"),
            *(("note", text) for text in self.notices),
        ]
        title = f"{self.card.method} on {count:,} images"
        if not self.adaptor.answering.is_plain:
            rows.append(("answers", self.adaptor.answering.describe()))
        if self.conditions is None:
            return html_table(title, [*rows, ("adaptor", self.adaptor.describe())])
        unfamiliar = unfamiliar_sentence(self.conditions.unfamiliar)
        if unfamiliar is not None:
            rows.append(("unfamiliar", unfamiliar))
        conditions = condition_rows(self.conditions, self.before, self.after)
        columns = html_columns("conditions", HEADER, [row.cells() for row in conditions])
        return html_table(title, rows) + columns

    def summary(self) -> dict[str, Any]:
        """`run.json`: the protocol card and the outcome, as plain JSON."""
        return {
            **self.card.facts(),
            "stopped": self.stopped,
            "reason": self.reason,
            "queries": self.ledger.by_purpose(),
            "queries_per_image": self.queries_per_image,
            "calls": self.ledger.calls,
            "changed_answers": None if self.after is None else self.changed,
            "mean_confidence": {
                "before": mean_confidence(self.before),
                "after": None if self.after is None else mean_confidence(self.after),
            },
            "unreached_images": self.unreached,
            "seconds": round(self.seconds, 3),
            "notices": self.notices,
            "verdict": None if self.verdict is None else self.verdict.facts(),
            "mixed": self._mixed_facts(),
            "next_steps": self.next_steps,
            "earlier_verdicts": [verdict.facts() for verdict in self.earlier_verdicts],
        }

    def _mixed_facts(self) -> dict[str, Any] | None:
        if self.conditions is None:
            return None
        return mixed_facts(self.conditions, self.before, self.after)

    def save(self, path: str | Path) -> Path:
        """Write the run to a folder: adaptor, answers, history, predictions.csv, then run.json."""
        folder = RunFolder(path)
        self.adaptor.save(folder.adaptor_path)
        folder.write_answers(self.before, self.after, self.clean)
        folder.write_history([step.facts() for step in self.history])
        routes = None if self.conditions is None else self.conditions.routes
        folder.write_predictions(self.names, self.before, self.after, routes)
        if self.conditions is not None:
            self.conditions.found.save(folder.candidate_path)
            folder.write_evidence(self.conditions.arrays())
            changed = self.conditions.to_label(self.before)
            folder.write_to_label([self.names[place] for place in changed])
        elif self.candidate is not None:
            self.candidate.adaptor.save(folder.candidate_path)
            folder.write_evidence(self.candidate.arrays())
            changed = self.candidate.changed(self.before)
            folder.write_to_label([self.names[place] for place in changed])
        folder.write_card(self.summary())
        return Path(path)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one self-contained HTML page.

        Parameters
        ----------
        path : the file to write.
        options : `images`, `labels`, `classes`, `price`, `clean` and `clean_accuracy`, as in
            `soda_tta.report.write_report`.
        """
        written: Path = load_own(WRITE_REPORT)(self, path, **options).path
        return written

    @staticmethod
    def load(path: str | Path) -> Run:
        """Read a saved run."""
        stored = read_run_folder(path)
        facts = stored.facts
        if stored.stopped is None:
            raise RunError(f"{path} holds a run that has not ended; continue it with resume=True.")
        problems = [text for text in stored.missing if text not in (NOT_ANSWERED, NOT_WANTED)]
        if problems or stored.before is None:
            raise RunError(f"{path} is incomplete: {' '.join(problems)}")
        ledger = Ledger()
        ledger.queries = dict(stored.queries)
        ledger.calls = stored.calls or 0
        verdict = facts.get("verdict")
        mixed = facts.get("mixed")
        try:
            return Run(
                before=stored.before,
                after=stored.after,
                adaptor=Adaptor.load(RunFolder(path).adaptor_path),
                ledger=ledger,
                history=[Step.from_facts(step) for step in stored.steps],
                stopped=facts["stopped"],
                reason=facts["reason"],
                card=Card.from_facts(facts),
                names=stored.names,
                seconds=facts["seconds"],
                notices=facts["notices"],
                verdict=None if verdict is None else Verdict(**verdict),
                unreached=facts["unreached_images"],
                candidate=load_candidate(RunFolder(path)) if mixed is None else None,
                conditions=None if mixed is None else load_conditions(RunFolder(path), mixed),
                earlier_verdicts=[Verdict(**each) for each in facts.get("earlier_verdicts", ())],
                clean=stored.clean,
            )
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {quoted(error)}"
            raise RunError(
                f"{path} is damaged, or of another version ({reason}); restore it from a copy."
            ) from error


def load_candidate(folder: RunFolder) -> Candidate | None:
    """The candidate in a run folder; None if there is none."""
    arrays = folder.read_evidence()
    if arrays is None:
        return None
    try:
        return Candidate.from_arrays(Adaptor.load(folder.candidate_path), arrays)
    except KeyError as error:
        raise RunError(f"{folder.path}: the evidence of the candidate lacks {error}.") from error


def load_conditions(folder: RunFolder, facts: dict[str, Any]) -> ConditionResults:
    """The results of all conditions in a run folder."""
    arrays = folder.read_evidence() or {}
    return ConditionResults.from_parts(facts, arrays, Adaptor.load(folder.candidate_path))


def most_likely(probabilities: Array) -> Array:
    """The most likely class of every row; -1 for rows of NaN, which were not answered."""
    if not probabilities.shape[1]:
        return np.full(len(probabilities), -1)
    answered = ~np.isnan(probabilities[:, 0])
    classes: Array = np.where(answered, np.argmax(probabilities, axis=1), -1)
    return classes


def mean_confidence(probabilities: Array) -> float | None:
    """The mean probability of the most likely class, over the images that were answered."""
    answered = probabilities[~np.isnan(probabilities[:, :1]).any(axis=1)]
    return float(answered.max(axis=1).mean()) if answered.size else None
