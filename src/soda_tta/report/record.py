"""Everything that is stored about a run, whether it has finished or not."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from soda_tta.adaptors import Adaptor
from soda_tta.engine.events import Step
from soda_tta.engine.run import Run, read_card
from soda_tta.errors import RunError
from soda_tta.judging.verdict import Verdict
from soda_tta.storage.journal import step_from_json
from soda_tta.storage.run_folder import WORKING
from soda_tta.types import Array

NOT_EVALUATED = "The adapted images were not evaluated. Continue the run with --resume."
DEFAULT_SIZE = (32, 32)  # pixels, for a card that does not record the image size


@dataclass
class RunRecord:
    """A run as far as it got. What is not available is None, and `missing` explains why."""

    title: str
    card: dict[str, Any]
    folder: Path | None = None
    before: Array | None = None  # only the first images if the first pass was interrupted
    after: Array | None = None
    adaptor: Adaptor | None = None
    queries: dict[str, int] = field(default_factory=dict)  # by purpose
    history: Sequence[Step] = ()
    stopped: str | None = None  # None: the run has not finished
    reason: str = ""
    names: list[str] = field(default_factory=list)
    seconds: float | None = None
    notices: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    unreached: int = 0  # images that keep their unadapted prediction: the budget ran out
    missing: list[str] = field(default_factory=list)  # sentences for the page

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
    return RunRecord(
        title=title or str(run.card["method"]),
        card=run.card,
        before=run.before,
        after=run.after,
        adaptor=run.adaptor,
        queries=run.ledger.by_purpose(),
        history=run.history,
        stopped=run.stopped,
        reason=run.reason,
        names=run.names,
        seconds=run.seconds,
        notices=run.notices,
        verdict=run.verdict,
        unreached=run.unreached,
        missing=[] if run.after is not None else [NOT_EVALUATED],
    )


def read_record(folder: Path) -> RunRecord:
    """The record of a run directory, which is not changed.

    A missing or damaged file is named in `missing`; only a directory without a readable card is
    an error.
    """
    facts = read_card(folder)
    record = RunRecord(
        title=folder.resolve().name,
        card=facts,
        folder=folder,
        stopped=facts.get("stopped"),
        reason=str(facts.get("reason") or ""),
        queries=dict(facts.get("queries") or {}),
        seconds=facts.get("seconds"),
        notices=list(facts.get("notices") or []),
        unreached=int(facts.get("unreached_images") or 0),
    )
    if record.stopped is None:
        _read_unfinished(record, folder / WORKING)
        return record
    _read_verdict(record, facts.get("verdict"))
    _read_probabilities(record, folder / "answers.safetensors")
    record.history = _read_steps(record, folder / "history.jsonl")
    _read_adaptor(record, folder / "adaptor.safetensors")
    _read_names(record, folder / "predictions.csv")
    return record


def _read_verdict(record: RunRecord, facts: Any) -> None:
    try:
        record.verdict = None if facts is None else Verdict(**facts)
    except TypeError:
        record.missing.append("Verdict: run.json was written by an incompatible version.")


def _read_probabilities(record: RunRecord, path: Path) -> None:
    try:
        probabilities = load_file(path)
        record.before = probabilities["before"]
    except (OSError, SafetensorError, KeyError) as error:
        record.missing.append(f"Predictions: {path.name} cannot be read ({_cause(error)}).")
        return
    record.after = probabilities.get("after")
    if record.after is None:
        record.missing.append(NOT_EVALUATED)


def _read_adaptor(record: RunRecord, path: Path) -> None:
    try:
        record.adaptor = Adaptor.load(path)
    except RunError as error:
        record.missing.append(f"Adaptor: {error}")


def _read_names(record: RunRecord, path: Path) -> None:
    try:
        with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
            record.names = [row["image"] for row in csv.DictReader(file)]
    except (OSError, KeyError) as error:
        record.missing.append(f"Image names: {path.name} cannot be read ({_cause(error)}).")


def _read_unfinished(record: RunRecord, working: Path) -> None:
    """Read what an unfinished run has stored: first responses, steps and the query ledger."""
    record.missing.append(
        "This run has not finished: it was killed, or it is still running. Continue it with "
        "--resume. This page shows its progress so far."
    )
    record.before = _stored_rows(working / "select.answers")
    if record.before is None:
        record.missing.append("No response is stored yet, so the page shows only the card.")
    elif len(record.before) < record.count:
        record.missing.append(
            f"The first pass has covered {len(record.before):,} of {record.count:,} images."
        )
    histories = [_read_steps(record, path) for path in working.glob("*/history.jsonl")]
    record.history = max(histories, key=len, default=[])
    try:
        lines = (working / "ledger.txt").read_text().splitlines()
        for purpose, queries in (line.split() for line in lines):
            record.queries[purpose] = record.queries.get(purpose, 0) + int(queries)
    except (OSError, ValueError) as error:
        record.missing.append(f"Queries: the ledger cannot be read ({_cause(error)}).")


def _stored_rows(path: Path) -> Array | None:
    """The complete rows of a `journal.AnswerFile`; an incomplete last row is ignored."""
    raw = path.read_bytes() if path.is_file() else b""
    classes = int(np.frombuffer(raw[:8], "<i8")[0]) if len(raw) >= 8 else 0
    rows = (len(raw) - 8) // (4 * classes) if classes > 0 else 0
    return np.frombuffer(raw, "<f4", rows * classes, 8).reshape(rows, classes) if rows else None


def _read_steps(record: RunRecord, path: Path) -> list[Step]:
    """The complete lines of a history, up to the first damaged one."""
    try:
        content = path.read_bytes()
    except OSError as error:
        record.missing.append(f"History: {path.name} cannot be read ({_cause(error)}).")
        return []
    steps: list[Step] = []
    for line in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            steps.append(step_from_json(line))
        except (ValueError, TypeError, KeyError):
            record.missing.append(
                f"History: line {len(steps) + 1} of {path.name} is damaged. "
                "The steps before it are shown."
            )
            break
    return steps


def _cause(error: Exception) -> str:
    """A short description of an error."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return f"{type(error).__name__}: {error}"
