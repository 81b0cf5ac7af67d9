"""The one reader of run folders: tolerant, for runs that ended and for runs that were killed."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load_file

from soda_tta.foreign_text import quoted
from soda_tta.storage.answers import problem_of, read_rows
from soda_tta.storage.book import Book
from soda_tta.storage.journal import read_intact_lines
from soda_tta.storage.run_folder import ANSWERS, HISTORY, PREDICTIONS, WORKING, RunFolder
from soda_tta.storage.spreadsheet import from_cell
from soda_tta.types import Array

NOT_ENDED = (
    "This run has not finished: it was killed, or it is still running. Continue it with "
    "--resume. This page shows its progress so far."
)
NOT_ANSWERED = "The adapted images were not evaluated. Continue the run with --resume."
NOT_WANTED = (
    "The adapted images were not evaluated, because of --answers none. 'soda-tta apply' does it."
)


@dataclass
class StoredRun:
    """What a run folder holds. What is absent is None or empty, and `missing` says so."""

    folder: Path
    facts: dict[str, Any]  # run.json
    before: Array | None = None  # of the first images only, if the first pass was interrupted
    after: Array | None = None
    clean: Array | None = None  # of the clean images
    steps: list[dict[str, Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    queries: dict[str, int] = field(default_factory=dict)  # by purpose
    calls: int | None = None  # requests; None if the run was made by an earlier version
    missing: list[str] = field(default_factory=list)  # sentences

    @property
    def stopped(self) -> str | None:
        """Why the run ended; None if it did not."""
        reason: str | None = self.facts.get("stopped")
        return reason


def read_run_folder(path: str | Path) -> StoredRun:
    """Read whatever a run folder holds; only a folder without a readable card is refused.

    Nothing in the folder is changed.
    """
    folder = Path(path)
    stored = StoredRun(folder=folder, facts=RunFolder(folder).read_card())
    if stored.stopped is None:
        _read_unfinished(stored)
    else:
        stored.queries = dict(stored.facts.get("queries") or {})
        stored.calls = stored.facts.get("calls")
        _read_answers(stored)
        _read_history(stored, folder / HISTORY)
        _read_names(stored)
    return stored


def _read_answers(stored: StoredRun) -> None:
    try:
        answers = load_file(stored.folder / ANSWERS)
        before = answers["before"]
        after = answers.get("after")
        check_answers(before, after)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        stored.missing.append(f"Predictions: {ANSWERS} cannot be read ({reason_of(error)}).")
        return
    stored.before = before
    stored.after = after
    stored.clean = answers.get("clean")
    if stored.after is None:
        stored.missing.append(unanswered(stored.facts))


def unanswered(facts: dict[str, Any]) -> str:
    """Why a run has no answers to adapted images."""
    wanted = facts.get("answers") != "none" or facts.get("stopped") == "interrupted"
    return NOT_ANSWERED if wanted else NOT_WANTED


def check_answers(before: Array, after: Array | None) -> None:
    """Raise ValueError unless both are rows of probabilities, of the same images and classes."""
    for rows in (before, before if after is None else after):
        problem = problem_of(rows)
        if problem is not None:
            raise ValueError(problem)
    if after is not None and after.shape != before.shape:
        raise ValueError(f"the answers have the shapes {before.shape} and {after.shape}")


def _read_history(stored: StoredRun, path: Path) -> None:
    try:
        steps, problem = read_intact_lines(path)
    except OSError as error:
        stored.missing.append(f"History: {path.name} cannot be read ({reason_of(error)}).")
        return
    if problem:
        stored.missing.append(f"History: {problem}.")
    if len(steps) > len(stored.steps):
        stored.steps = steps


def _read_names(stored: StoredRun) -> None:
    path = stored.folder / PREDICTIONS
    try:
        with path.open(newline="", encoding="utf-8", errors="surrogateescape") as file:
            table = csv.DictReader(file)
            if "image" not in (table.fieldnames or ()):
                raise ValueError("no column 'image'")
            stored.names = [from_cell(row["image"] or "") for row in table]
    except (OSError, ValueError, csv.Error) as error:
        stored.missing.append(f"Image names: {path.name} cannot be read ({reason_of(error)}).")
        return
    count = len(stored.names)
    if stored.before is not None and count != len(stored.before):
        stored.missing.append(
            f"Image names: {path.name} has {count:,} rows for {len(stored.before):,} images."
        )


def _read_unfinished(stored: StoredRun) -> None:
    """Read what a killed run has left: responses, journals, its book of queries."""
    working = stored.folder / WORKING
    stored.missing.append(NOT_ENDED)
    stored.before = _first_pass(stored, working / "select.answers")
    count = int(stored.facts.get("images", {}).get("count") or 0)
    if stored.before is None:
        stored.missing.append("No response is stored yet, so the page shows only the card.")
    elif len(stored.before) < count:
        done = len(stored.before)
        stored.missing.append(f"The first pass has covered {done:,} of {count:,} images.")
    for path in sorted(working.glob(f"*/{HISTORY}")):  # of several trainings, the longest
        _read_history(stored, path)
    book = working / "ledger.txt"
    try:
        if not book.exists():
            raise FileNotFoundError
        stored.queries = Book(book).by_purpose()
        stored.calls = Book(book).calls()
    except (OSError, ValueError) as error:
        stored.missing.append(f"Queries: the ledger cannot be read ({reason_of(error)}).")


def _first_pass(stored: StoredRun, path: Path) -> Array | None:
    rows = read_rows(path)
    problem = None if rows is None else problem_of(rows)
    if problem is not None:
        stored.missing.append(f"Predictions: {path.name} is damaged ({problem}).")
        return None
    return rows


def reason_of(error: Exception) -> str:
    """An exception in a few words."""
    if isinstance(error, FileNotFoundError):  # that of safetensors has no strerror
        return "No such file or directory"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return f"{type(error).__name__}: {quoted(error)}"
