"""Everything that is stored about a run, whether it has finished or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.engine.events import Step
from soda_tta.engine.run import Run, load_conditions
from soda_tta.errors import RunError
from soda_tta.foreign_text import quoted
from soda_tta.judging.condition_results import ConditionResults
from soda_tta.judging.verdict import Verdict
from soda_tta.storage.run_folder import RunFolder
from soda_tta.storage.stored_run import read_run_folder, unanswered
from soda_tta.types import Array

NOT_SENT = (
    "The method of this run did not send all images as they are, so the page cannot compare its "
    "answers with those of the model alone. A run with --method deployed has these."
)
DEFAULT_SIZE = (32, 32)  # pixels, for a card that does not record the image size


@dataclass
class RunRecord:
    """A run as far as it got. What is not available is None, and `missing` explains why."""

    title: str
    card: dict[str, Any]
    folder: Path | None = None
    before: Array | None = None  # only the first images if the first pass was interrupted
    after: Array | None = None
    clean: Array | None = None  # responses to clean images
    adaptor: Adaptor | None = None
    queries: dict[str, int] = field(default_factory=dict)  # by purpose
    calls: int | None = None  # requests; None if the run was made by an earlier version
    history: Sequence[Step] = ()
    stopped: str | None = None  # None: the run has not finished
    reason: str = ""
    names: list[str] = field(default_factory=list)
    seconds: float | None = None
    notices: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    conditions: ConditionResults | None = None  # of mixed images
    next_steps: list[str] = field(default_factory=list)  # what would settle a verdict to keep
    unreached: int = 0  # images that keep their unadapted prediction: the budget ran out
    missing: list[str] = field(default_factory=list)  # sentences for the page

    clean_accuracy: float | None = None  # known for the clean images

    @property
    def total_queries(self) -> int:
        return sum(self.queries.values())

    @property
    def count(self) -> int:
        """The number of images of the run."""
        recorded = self.card.get("images", {}).get("count")
        if recorded:
            return int(recorded)
        return 0 if self.before is None else len(self.before)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the images in pixels."""
        height, width = self.card.get("images", {}).get("size") or DEFAULT_SIZE
        return int(height), int(width)

    def name(self, index: int) -> str:
        """The name of an image; its position if the names are not available."""
        return self.names[index] if index < len(self.names) else str(index)


def record_of(run: Run, title: str | None = None) -> RunRecord:
    """The record of a run in memory."""
    record = RunRecord(
        title=title or run.card.method,
        card=run.card.facts(),
        before=run.before,
        after=run.after,
        clean=run.clean,
        clean_accuracy=(run.card.clean or {}).get("accuracy"),
        adaptor=run.adaptor,
        queries=run.ledger.by_purpose(),
        calls=run.ledger.calls,
        history=run.history,
        stopped=run.stopped,
        reason=run.reason,
        names=run.names,
        seconds=run.seconds,
        notices=run.notices,
        verdict=run.verdict,
        conditions=run.conditions,
        next_steps=run.next_steps,
        unreached=run.unreached,
        missing=[] if run.after is not None else [unanswered(run.summary())],
    )
    _keep_answered(record)
    return record


def read_record(folder: Path) -> RunRecord:
    """The record of a run folder, which is not changed.

    A missing or damaged file is named in `missing`; only a folder without a readable card is an
    error.
    """
    stored = read_run_folder(folder)
    facts = stored.facts
    record = RunRecord(
        title=folder.resolve().name,
        card=facts,
        folder=folder,
        before=stored.before,
        after=stored.after,
        clean=stored.clean,
        clean_accuracy=(facts.get("clean") or {}).get("accuracy"),
        queries=stored.queries,
        calls=stored.calls,
        stopped=stored.stopped,
        reason=str(facts.get("reason") or ""),
        names=stored.names,
        seconds=facts.get("seconds"),
        notices=list(facts.get("notices") or []),
        next_steps=[str(text) for text in facts.get("next_steps") or []],
        unreached=int(facts.get("unreached_images") or 0),
        missing=list(stored.missing),
    )
    _keep_answered(record)
    record.history = _steps(record, stored.steps)
    if record.stopped is not None:
        _read_verdict(record, facts.get("verdict"))
        _read_adaptor(record, RunFolder(folder).adaptor_path)
        _read_conditions(record, folder, facts.get("mixed"))
    return record


def _keep_answered(record: RunRecord) -> None:
    """Leave out the rows of NaN of a run that was interrupted during its first pass.

    The first pass answers images in their order, so these rows are the last ones. A method without
    a first pass sends few images as they are, or none: then there is nothing to compare with.
    """
    if record.before is None:
        return
    total = len(record.before)
    answered = int((~np.isnan(record.before).any(axis=1)).sum())
    if answered == total:
        return
    if record.after is not None:
        record.before = None
        record.missing.append(NOT_SENT)
        return
    record.before = record.before[:answered] if answered else None
    record.missing.append(f"The first pass has covered {answered:,} of {total:,} images.")


def _read_verdict(record: RunRecord, facts: Any) -> None:
    try:
        record.verdict = None if facts is None else Verdict(**facts)
    except TypeError:
        record.missing.append("Verdict: run.json was written by an incompatible version.")


def _read_conditions(record: RunRecord, folder: Path, facts: Any) -> None:
    """The conditions, if they fit the responses: a damaged folder still gets a page."""
    if facts is None:
        return
    try:
        conditions = load_conditions(RunFolder(folder), facts)
    except (RunError, KeyError, TypeError, ValueError) as error:
        record.missing.append(f"Conditions: they cannot be read ({quoted(error)}).")
        return
    if record.before is None or len(conditions.routes.conditions) != len(record.before):
        record.missing.append("Conditions: they do not fit the stored responses.")
        return
    record.conditions = conditions


def _read_adaptor(record: RunRecord, path: Path) -> None:
    try:
        record.adaptor = Adaptor.load(path)
    except RunError as error:
        record.missing.append(f"Adaptor: {error}")


def _steps(record: RunRecord, entries: list[dict[str, Any]]) -> list[Step]:
    """The steps of a history, up to the first one that this version cannot read."""
    steps: list[Step] = []
    for entry in entries:
        try:
            steps.append(Step.from_facts(entry))
        except (TypeError, KeyError, ValueError):
            record.missing.append(
                f"History: line {len(steps) + 1} is damaged. The steps before it are shown."
            )
            break
    return steps
