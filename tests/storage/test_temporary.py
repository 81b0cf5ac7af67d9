"""Temporary files: never through a link, never one that is in use, and none for ever."""

import os
import stat
from pathlib import Path

import pytest

from soda_tta.errors import StorageError
from soda_tta.storage import temporary
from soda_tta.storage.atomic import append_bytes, replacing, write_bytes
from soda_tta.storage.temporary import remove_left_over, temporary_file


def test_a_link_under_the_name_of_a_temporary_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(temporary.secrets, "token_hex", lambda size: "ab" * size)
    (tmp_path / f".run.json.{'ab' * 8}.tmp").symlink_to(victim)
    with pytest.raises(StorageError, match="could not be written"):
        write_bytes(tmp_path / "run.json", b"{}")
    (tmp_path / f".run.json.{os.getpid()}.tmp").symlink_to(victim)  # the name of earlier versions
    monkeypatch.undo()
    write_bytes(tmp_path / "run.json", b"{}")
    assert victim.read_text() == "mine"


def test_a_file_that_grows_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "ledger.txt").symlink_to(tmp_path / "victim")
    with pytest.raises(StorageError, match="could not be written"):
        append_bytes(tmp_path / "ledger.txt", b"probe 3\n")
    assert (tmp_path / "victim").read_text() == "mine"


def test_a_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_bytes(tmp_path / "written", b"")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("usual", "written")}
    assert len(modes) == 1


def test_left_over_files_are_removed_by_the_next_process_and_those_in_use_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_over = [tmp_path / ".run.json.123.tmp", tmp_path / f".page.html.{'0f' * 8}.tmp"]
    others = [tmp_path / ".notes.tmp", tmp_path / "run.json.123.tmp", tmp_path / ".vim.swp"]
    for path in (*left_over, *others):
        path.write_text("{")
    (tmp_path / f".folder.{'0f' * 8}.tmp").mkdir()
    monkeypatch.setattr(temporary, "_visited", set())
    with replacing(tmp_path / "in-use") as in_use:
        assert not any(path.exists() for path in left_over)
        remove_left_over(tmp_path)
        assert in_use.exists()
        in_use.write_text("whole")
    assert (tmp_path / "in-use").read_text() == "whole"
    assert all(path.exists() for path in others)


def test_a_file_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = temporary.fcntl.flock
    raced: list[Path] = []

    def flock(descriptor: int, operation: int) -> None:
        if not raced:
            raced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
            raced[0].unlink()
        real(descriptor, operation)

    monkeypatch.setattr(temporary.fcntl, "flock", flock)
    with temporary_file(tmp_path / "x") as path:
        assert path.exists() and path != raced[0]
    assert not list(tmp_path.iterdir())
