"""Answers on their way to a file: kept beside it until they are complete."""

import numpy as np
import pytest

from soda_tta.errors import StorageError
from soda_tta.storage.partial_answers import partial_answers

ROWS = np.random.default_rng(0).random((3, 4)).astype(np.float32)


def leave_answers(out, digest: str = "abc") -> None:
    """A process that is killed after it has received some answers."""
    with partial_answers(out, digest, resume=False, force=False) as partial:
        partial.book().append("serve", 3)
        partial.file().write(np.arange(len(ROWS)), ROWS)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def enter(out, digest: str = "abc", *, resume: bool = False, force: bool = False) -> None:
    with partial_answers(out, digest, resume=resume, force=force):
        pytest.fail("the answers were not refused")


def test_nothing_is_kept_without_a_file_to_write(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with partial_answers(None, "abc", resume=False, force=False) as partial:
        partial.file().write(np.arange(len(ROWS)), ROWS)
        partial.book().append("serve", 3)
        assert not partial.holds_answers
        partial.remove()
    assert names(tmp_path) == []


def test_answers_stay_until_they_are_removed(tmp_path) -> None:
    out = tmp_path / "folder" / "answers.csv"
    with partial_answers(out, "abc", resume=False, force=False) as partial:
        assert not partial.holds_answers
        partial.book().append("serve", 3)
        partial.file().write(np.arange(len(ROWS)), ROWS)
        assert partial.holds_answers
    assert names(out.parent) == ["answers.csv.abc.partial", "answers.csv.abc.partial.ledger"]
    with partial_answers(out, "abc", resume=True, force=False) as partial:
        np.testing.assert_array_equal(partial.file().kept, ROWS)
        assert partial.book().by_purpose() == {"serve": 3}
        partial.remove()
    assert names(out.parent) == []


def test_a_process_that_received_nothing_leaves_nothing(tmp_path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        partial_answers(tmp_path / "answers.csv", "abc", resume=False, force=False) as partial,
    ):
        partial.book().append("serve", 3)
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_answers_that_were_billed_are_not_billed_again(tmp_path) -> None:
    out = tmp_path / "answers.csv"
    leave_answers(out)
    for force in (False, True):
        with pytest.raises(StorageError, match=r"holds answers that were billed; .* resume=True"):
            enter(out, force=force)
    assert names(tmp_path) == ["answers.csv.abc.partial", "answers.csv.abc.partial.ledger"]


def test_there_must_be_answers_to_resume(tmp_path) -> None:
    out = tmp_path / "answers.csv"
    with pytest.raises(StorageError, match="no answers to these images, from this adaptor"):
        enter(out, resume=True)
    assert names(tmp_path) == []


def test_answers_to_other_images_are_never_mixed_in(tmp_path) -> None:
    out = tmp_path / "answers.csv"
    leave_answers(out)
    with pytest.raises(StorageError, match="no answers to these images, from this adaptor"):
        enter(out, "other", resume=True)
    with partial_answers(out, "other", resume=False, force=False) as partial:
        assert not partial.holds_answers
        assert partial.book().by_purpose() == {}
    assert names(tmp_path) == ["answers.csv.abc.partial", "answers.csv.abc.partial.ledger"]


def test_an_existing_file_is_overwritten_only_with_force(tmp_path) -> None:
    out = tmp_path / "answers.csv"
    out.write_text("other answers")
    with pytest.raises(StorageError, match=r"exists; choose another name, or use force=True"):
        enter(out)
    with partial_answers(out, "abc", resume=False, force=True) as partial:
        partial.file().write(np.arange(len(ROWS)), ROWS)
    with pytest.raises(StorageError, match="exists and holds other answers; move it, or use force"):
        enter(out, resume=True)
    with partial_answers(out, "abc", resume=True, force=True) as partial:
        assert partial.holds_answers
    assert out.read_text() == "other answers"  # this module never writes the file itself


def test_a_folder_in_place_of_the_file_is_refused(tmp_path) -> None:
    for force in (False, True):
        with pytest.raises(StorageError, match="is a folder; out= is the file to write"):
            enter(tmp_path, force=force)


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_billed(
    tmp_path, monkeypatch
) -> None:
    def refuse(path, **_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.touch", refuse)
    with pytest.raises(StorageError, match=r"cannot be written: Permission denied; choose another"):
        enter(tmp_path / "answers.csv")


def test_two_processes_do_not_write_the_same_answers(tmp_path) -> None:
    out = tmp_path / "answers.csv"
    with partial_answers(out, "abc", resume=False, force=False) as partial:
        partial.file().write(np.arange(len(ROWS)), ROWS)
        with pytest.raises(StorageError, match="another process is writing these answers"):
            enter(out, resume=True)
        with partial_answers(out, "other", resume=False, force=False):
            pass  # other answers have a file of their own
        assert partial.holds_answers
