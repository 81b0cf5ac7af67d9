"""What is known of a run, whether it came to its end or not."""

from __future__ import annotations

import csv
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


@dataclass
class Account:
    """A run as far as it got: what is not there is None, and `missing` says so in sentences."""

    title: str
    card: dict[str, Any]
    folder: Path | None = None
    before: Array | None = (
        None  # of the first images only, if the run was killed during its first look
    )
    after: Array | None = None
    adaptor: Adaptor | None = None
    queries: dict[str, int] = field(default_factory=dict)
    history: list[Step] = field(default_factory=list)
    stopped: str | None = None
    reason: str = ""
    names: list[str] = field(default_factory=list)
    seconds: float | None = None
    notices: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    missing: list[str] = field(default_factory=list)

    @property
    def total_queries(self) -> int:
        return sum(self.queries.values())

    @property
    def count(self) -> int:
        """How many images the run is about."""
        return int(
            self.card.get("images", {}).get("count")
            or (0 if self.before is None else len(self.before))
        )

    @property
    def size(self) -> tuple[int, int]:
        height, width = self.card.get("images", {}).get("size") or (32, 32)
        return int(height), int(width)

    def name(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else str(index)


def account_of(run: Run, title: str | None = None) -> Account:
    """The account of a run in memory."""
    return Account(
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
        missing=[] if run.after is not None else [NOT_ANSWERED],
    )


NOT_ANSWERED = "The adapted images were not asked about; continue the run with --resume."


def read_account(folder: Path) -> Account:
    """The account of a run directory. Only a directory without a readable card is refused; nothing in it is changed."""
    facts = read_card(folder)
    account = Account(
        title=folder.resolve().name,
        card=facts,
        folder=folder,
        stopped=facts.get("stopped"),
        reason=str(facts.get("reason") or ""),
        queries=dict(facts.get("queries") or {}),
        seconds=facts.get("seconds"),
        notices=list(facts.get("notices") or []),
    )
    if account.stopped is None:
        _read_unfinished(account, folder / WORKING)
        return account
    _read_verdict(account, facts.get("verdict"))
    _read_answers(account, folder / "answers.safetensors")
    account.history = _steps(account, folder / "history.jsonl")
    try:
        account.adaptor = Adaptor.load(folder / "adaptor.safetensors")
    except RunError as error:
        account.missing.append(f"The adaptor: {error}")
    try:
        with (folder / "predictions.csv").open(
            newline="", encoding="utf-8", errors="surrogateescape"
        ) as file:
            account.names = [row["image"] for row in csv.DictReader(file)]
    except (OSError, KeyError) as error:
        account.missing.append(
            f"The names of the images: predictions.csv cannot be read ({_why(error)})."
        )
    return account


def _read_verdict(account: Account, facts: Any) -> None:
    try:
        account.verdict = None if facts is None else Verdict(**facts)
    except TypeError:
        account.missing.append("The verdict: run.json holds one this version does not understand.")


def _read_answers(account: Account, path: Path) -> None:
    try:
        answers = load_file(path)
        account.before, account.after = answers["before"], answers.get("after")
    except (OSError, SafetensorError, KeyError) as error:
        account.missing.append(f"The answers: {path.name} cannot be read ({_why(error)}).")
        return
    if account.after is None:
        account.missing.append(NOT_ANSWERED)


def _read_unfinished(account: Account, working: Path) -> None:
    """What a killed run has left: answers already paid, its journal, its book of queries."""
    account.missing.append(
        "This run has not ended: it was killed, or is still at work. Continue it with --resume; "
        "what is shown here is what has been paid so far."
    )
    account.before = _paid_answers(working / "select.answers")
    if account.before is None:
        account.missing.append("No answer is kept yet, so there is nothing to show but the card.")
    elif len(account.before) < account.count:
        account.missing.append(
            f"The first look has reached {len(account.before):,} of {account.count:,} images."
        )
    account.history = max(
        (_steps(account, path) for path in working.glob("*/history.jsonl")), key=len, default=[]
    )
    try:
        lines = (working / "ledger.txt").read_text().splitlines()
        for purpose, queries in (line.split() for line in lines):
            account.queries[purpose] = account.queries.get(purpose, 0) + int(queries)
    except (OSError, ValueError) as error:
        account.missing.append(f"The queries spent: the book cannot be read ({_why(error)}).")


def _paid_answers(path: Path) -> Array | None:
    """Whole rows of a file `journal.AnswerFile` writes; a torn one is left out, and left in the file."""
    raw = path.read_bytes() if path.is_file() else b""
    classes = int(np.frombuffer(raw[:8], "<i8")[0]) if len(raw) >= 8 else 0
    rows = (len(raw) - 8) // (4 * classes) if classes > 0 else 0
    return np.frombuffer(raw, "<f4", rows * classes, 8).reshape(rows, classes) if rows else None


def _steps(account: Account, path: Path) -> list[Step]:
    try:
        whole = path.read_bytes()
    except OSError as error:
        account.missing.append(f"The history: {path.name} cannot be read ({_why(error)}).")
        return []
    steps = []
    for line in whole[: whole.rfind(b"\n") + 1].splitlines():
        try:
            steps.append(step_from_json(line))
        except (ValueError, TypeError, KeyError):
            account.missing.append(
                f"The history: line {len(steps) + 1} of {path.name} is damaged; it ends before."
            )
            break
    return steps


def _why(error: Exception) -> str:
    return (
        error.strerror or type(error).__name__
        if isinstance(error, OSError)
        else f"{type(error).__name__}: {error}"
    )
