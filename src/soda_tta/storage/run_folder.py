"""The folder of a run: the only code that knows the names, formats and locks of its files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from soda_tta.errors import RunError
from soda_tta.storage.answers import AnswerFile
from soda_tta.storage.atomic import make_folder, replacing, write_bytes, write_text
from soda_tta.storage.book import Book
from soda_tta.storage.card_check import read_card
from soda_tta.storage.journal import Journal, encoded
from soda_tta.storage.locks import locked
from soda_tta.storage.same_run import check_same_begin, check_same_run
from soda_tta.storage.spreadsheet import write_predictions, write_to_label
from soda_tta.storage.temporary import is_temporary, remove_left_over
from soda_tta.storage.transcript import Transcript
from soda_tta.types import Array

FORMAT = 2  # of the files in a run folder
CARD = "run.json"
ADAPTOR = "adaptor.safetensors"
ANSWERS = "answers.safetensors"
CANDIDATE = "candidate.safetensors"
EVIDENCE = "evidence.safetensors"
HISTORY = "history.jsonl"
PREDICTIONS = "predictions.csv"
TO_LABEL = "label-these.csv"
SAMPLE = "sample"  # which images of an archive the run has
IDENTITY = "begun.txt"  # what was begun here before there was a card
WORKING = "working"  # what is only needed to continue the run
BILLED = (".answers", ".jsonl", ".transcript")  # suffixes of files that hold billed work
ENDED = ("finished", "budget")


class TrainingFiles(NamedTuple):
    """Where one training keeps its steps and its last checkpoint."""

    journal: Journal
    checkpoint: Path | None


class RunFolder:
    """Everything a run keeps on disk. Without a path it keeps nothing, and every call still works.

    Parameters
    ----------
    path : the folder; None for a run in memory only.

    Examples
    --------
    >>> RunFolder(None).answers("select").kept.shape
    (0, 0)
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)

    @classmethod
    @contextmanager
    def open(
        cls, path: str | Path | None, card: dict[str, Any], *, resume: bool
    ) -> Iterator[RunFolder]:
        """Create the folder of a run, or check that it holds this run, and lock it for the block.

        Parameters
        ----------
        path : the folder; None for a run in memory only.
        card : the facts that identify the run.
        resume : whether a run that is already there may be continued.
        """
        folder = cls(path)
        if folder.path is None:
            yield folder
            return
        created = make_folder(folder.path)
        message = (
            f"another process is working on the run in {folder.path}; "
            "wait for it, or choose another out=."
        )
        with locked(folder.path, message):
            try:
                folder._prepare(card, resume)
                yield folder
            finally:
                if created and not any(folder.path.iterdir()):
                    folder.path.rmdir()

    @classmethod
    @contextmanager
    def preparing(cls, path: str | Path | None, identity: str) -> Iterator[RunFolder]:
        """Create and lock the folder of a run that is billed before its card is known."""
        folder = cls(path)
        if folder.path is None:
            yield folder
            return
        make_folder(folder.path)
        with locked(folder.path, f"another process is working in {folder.path}; wait for it."):
            if not all(folder._is_left_by_a_start(each) for each in folder.path.iterdir()):
                raise RunError(f"{folder.path} is not an empty folder; choose another out=.")
            (folder.path / WORKING).mkdir(exist_ok=True)
            check_same_begin(folder.path, folder.path / WORKING / IDENTITY, identity)
            yield folder

    def check_free(self, resume: bool) -> None:
        """Refuse a folder that holds something else than a run to continue."""
        if self.path is None or not self.path.exists():
            return
        if self.holds_run and not resume:
            raise RunError(
                f"{self.path} already holds a run; continue it with resume=True, "
                "or choose another out=."
            )
        if self.holds_run or not self.path.is_dir():
            return
        if not all(self._is_left_by_a_start(path) for path in self.path.iterdir()):
            raise RunError(f"{self.path} is not an empty folder; choose another out=.")

    def _prepare(self, card: dict[str, Any], resume: bool) -> None:
        assert self.path is not None
        self.check_free(resume)
        if self.holds_run:
            check_same_run(self.path, self.read_card(), card)
        remove_left_over(self.path)  # a crash came while a file was written
        if not self.ended:  # also one that was interrupted: it is at work again
            facts = self.read_card() if self.holds_run else card
            self.write_card({**facts, "stopped": None})
        if not self.ended:
            (self.path / WORKING).mkdir(exist_ok=True)

    def _is_left_by_a_start(self, path: Path) -> bool:
        """Whether a start without any response may have left this.

        A process killed before its first query leaves a temporary file; one whose first query
        failed leaves its ledger.
        """
        if path.name == WORKING:
            return all(self._is_kept_from_a_start(each) for each in path.iterdir())
        return is_temporary(path, CARD)

    def _is_kept_from_a_start(self, path: Path) -> bool:
        """Whether this is billed work from before the run: its ledger, or a found convention."""
        names = (IDENTITY, SAMPLE, "convention.transcript")
        return path.name in names or path == self.book().path

    # -- what the folder holds -------------------------------------------------------------------

    @property
    def holds_run(self) -> bool:
        """Whether there is a run in it, ended or not."""
        return self.path is not None and (self.path / CARD).exists()

    @property
    def ended(self) -> bool:
        """Whether its run has come to its end, so that there is nothing to continue."""
        return self.holds_run and self.read_card().get("stopped") in ENDED

    @property
    def holds_billed_work(self) -> bool:
        """Whether answers or steps are on disk that a resumed run would use."""
        if self.path is None:
            return False
        kept = [path for path in (self.path / WORKING).rglob("*") if path.suffix in BILLED]
        return any(path.stat().st_size for path in kept)

    @property
    def adaptor_path(self) -> Path:
        """Where its adaptor is, or will be."""
        return Path(self.path or "") / ADAPTOR

    @property
    def candidate_path(self) -> Path:
        """Where the adaptor that was judged is, or will be."""
        return Path(self.path or "") / CANDIDATE

    def read_card(self) -> dict[str, Any]:
        """`run.json`: the protocol card and, once the run has ended, the outcome."""
        assert self.path is not None
        return read_card(self.path / CARD, FORMAT)

    # -- while the run is at work ----------------------------------------------------------------

    def _working(self, name: str) -> Path | None:
        return None if self.path is None else self.path / WORKING / name

    def answers(self, purpose: str) -> AnswerFile:
        """The answers of a pass over all images."""
        return AnswerFile(self._working(f"{purpose}.answers"))

    def book(self) -> Book:
        """Every query, written down before it is sent."""
        return Book(self._working("ledger.txt"))

    def transcript(self, name: str) -> Transcript | None:
        """The responses a method, or one step of it, has received; None for a run in memory."""
        return None if self.path is None else Transcript(self.path / WORKING / f"{name}.transcript")

    def training(self, name: str) -> TrainingFiles:
        """The steps and checkpoints of one training."""
        folder = self._working(name)
        if folder is None:
            return TrainingFiles(Journal(None), None)
        return TrainingFiles(Journal(folder / HISTORY), folder / "checkpoint.safetensors")

    def sample_path(self) -> Path | None:
        """Where the sample of an archive is kept; None for a run that has ended."""
        return None if self.ended else self._working(SAMPLE)

    def seconds_path(self) -> Path | None:
        """Where a stopwatch notes its time."""
        return self._working("seconds.txt")

    # -- at the end ------------------------------------------------------------------------------

    def write_card(self, facts: dict[str, Any]) -> None:
        """Replace `run.json`."""
        assert self.path is not None
        write_text(self.path / CARD, json.dumps(facts, indent=2) + "\n")

    def write_answers(self, before: Array, after: Array | None, clean: Array | None = None) -> None:
        """Replace the probabilities of all images, without and with adapting, and of clean ones."""
        arrays = {"before": before, "after": after, "clean": clean}
        self._write_arrays(ANSWERS, arrays)

    def write_evidence(self, arrays: dict[str, Array]) -> None:
        """Replace the responses that the candidate was judged by."""
        self._write_arrays(EVIDENCE, arrays)

    def _write_arrays(self, name: str, arrays: Mapping[str, Array | None]) -> None:
        assert self.path is not None
        present = {key: each for key, each in arrays.items() if each is not None}
        contiguous = {key: np.ascontiguousarray(each) for key, each in present.items()}
        write_bytes(self.path / name, save(contiguous))

    def read_evidence(self) -> dict[str, Array] | None:
        """The responses that the candidate was judged by; None if there are none."""
        assert self.path is not None
        path = self.path / EVIDENCE
        if not path.exists():
            return None
        try:
            return load_file(path)
        except (OSError, SafetensorError) as error:
            raise RunError(f"{path} cannot be read: {error}") from error

    def write_history(self, steps: list[dict[str, Any]]) -> None:
        """Replace the history."""
        write_bytes(Path(self.path or "") / HISTORY, b"".join(encoded(step) for step in steps))

    def write_predictions(
        self, names: list[str], before: Array, after: Array | None, routes: Any = None
    ) -> None:
        """Replace the table that people and spreadsheets read."""
        with self._table(PREDICTIONS) as file:
            write_predictions(file, names, before, after, routes)

    def write_to_label(self, names: list[str]) -> None:
        """Replace the list of images whose labels would settle the verdict."""
        with self._table(TO_LABEL) as file:
            write_to_label(file, names)

    @contextmanager
    def _table(self, name: str) -> Iterator[TextIO]:
        """A table to write, which replaces the file of this name when it is complete."""
        assert self.path is not None
        with (
            replacing(self.path / name) as temporary,
            temporary.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file,
        ):
            yield file

    def finish(self) -> None:
        """Remove what is only needed to continue the run."""
        if self.path is not None:
            shutil.rmtree(self.path / WORKING, ignore_errors=True)

    def forget(self) -> None:
        """Remove what was written of a run that never received a response.

        The ledger is kept if anything was sent: it may have been billed, and the next run in this
        folder counts it as lost.
        """
        if self.path is None:
            return
        (self.path / CARD).unlink(missing_ok=True)
        if not any(self.book().by_purpose().values()):
            self.finish()
            return
        for path in (self.path / WORKING).iterdir():
            if not self._is_kept_from_a_start(path):
                path.unlink()
