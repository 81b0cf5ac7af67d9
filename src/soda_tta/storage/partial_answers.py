"""Answers on their way to a file: kept beside it until all are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from soda_tta.errors import StorageError
from soda_tta.storage.answers import AnswerFile
from soda_tta.storage.atomic import make_folder
from soda_tta.storage.book import Book
from soda_tta.storage.locks import locked


class PartialAnswers:
    """The responses received so far, and every query that was sent for them.

    Parameters
    ----------
    path : the file for the responses; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def file(self, view: str | None = None) -> AnswerFile:
        """The responses received so far, to the images or to another view of them."""
        return AnswerFile(self.path if view is None else self._of_view(view))

    def _of_view(self, view: str) -> Path | None:
        return None if self.path is None else self.path.with_name(f"{self.path.name}.view-{view}")

    def book(self) -> Book:
        """Every query, written down before it is sent."""
        return Book(None if self.path is None else self.path.with_name(f"{self.path.name}.ledger"))

    @property
    def holds_answers(self) -> bool:
        """Whether there is anything to resume."""
        return self.path is not None and self.path.exists() and self.path.stat().st_size > 0

    def remove(self) -> None:
        """Delete everything: the answers are complete, or there are none."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            for path in self.path.parent.glob(f"{escape(self.path.name)}.view-*"):
                path.unlink(missing_ok=True)
        self.book().remove()


@contextmanager
def partial_answers(
    out: Path | None, digest: str, *, resume: bool, force: bool
) -> Iterator[PartialAnswers]:
    """Keep answers beside the file they will end in, so that a crash loses none.

    The name of the partial file contains a digest of what the answers depend on: those to other
    images, from another adaptor or from another model are never mixed in. No other process writes
    to it until the block ends.

    Parameters
    ----------
    out : the file that the complete answers will be written to; None keeps nothing.
    digest : of the images, the adaptor and the model.
    resume : continue with answers that are there.
    force : allow `out` to be overwritten.
    """
    if out is None:
        yield PartialAnswers(None)
        return
    check_target(out, overwrite=resume or force)
    make_folder(out.parent)
    partial = PartialAnswers(out.with_name(f"{out.name}.{digest}.partial"))
    assert partial.path is not None
    try:
        partial.path.touch()  # fails before anything is billed
    except OSError as error:
        raise StorageError(
            f"{out} cannot be written: {error.strerror}; choose another out=."
        ) from error
    message = (
        f"another process is writing these answers to {out}; wait for it, or choose another out=."
    )
    with locked(partial.path, message):
        try:
            check_partial(partial, out, resume=resume, force=force)
            yield partial
        finally:
            if not partial.holds_answers:
                partial.remove()


def check_target(out: Path, *, overwrite: bool) -> None:
    """Refuse to write over a folder or, unless allowed, a file."""
    if out.is_dir():
        raise StorageError(f"{out} is a folder; out= is the file to write.")
    if out.exists() and not overwrite:
        raise StorageError(f"{out} exists; choose another name, or use force=True.")


def check_partial(partial: PartialAnswers, out: Path, *, resume: bool, force: bool) -> None:
    """Refuse to resume where there is nothing, and to bill again what is there."""
    if resume and not partial.holds_answers:
        raise StorageError(
            f"there are no answers to these images, from this adaptor and this model, to continue "
            f"beside {out}."
        )
    if out.exists() and not force:
        raise StorageError(f"{out} exists and holds other answers; move it, or use force=True.")
    if partial.holds_answers and not resume:
        raise StorageError(
            f"{partial.path} holds answers that were billed; continue with resume=True, "
            "or remove it."
        )
