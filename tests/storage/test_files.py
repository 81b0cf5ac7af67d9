"""Files that only grow: what a crash cuts off is dropped, and everything before it is kept."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soda_tta.box import Ledger
from soda_tta.errors import RunError, StorageError
from soda_tta.storage.answers import HEADER, AnswerFile, read_rows
from soda_tta.storage.atomic import (
    GrowingFile,
    append_bytes,
    make_folder,
    replacing,
    write_bytes,
    write_text,
)
from soda_tta.storage.book import Book
from soda_tta.storage.journal import Journal, read_intact_lines
from soda_tta.storage.locks import locked
from soda_tta.storage.records import HEADER as LENGTHS

ROWS = np.random.default_rng(0).random((5, 4)).astype(np.float32)
ROW_BYTES = 4 * ROWS.shape[1]
STEPS = [{"step": 0, "loss": 0.1}, {"step": 1, "loss": 1 / 3}, {"step": 2, "loss": 2.5e-17}]

# -- whole files or none ---------------------------------------------------------------------------


def test_a_file_is_replaced_only_if_the_block_succeeds(tmp_path) -> None:
    path = tmp_path / "deep" / "file.bin"
    write_bytes(path, b"first")
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_bytes(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"first"
    write_text(path, "second")
    assert path.read_text() == "second"
    assert [each.name for each in path.parent.iterdir()] == ["file.bin"]  # no temporary file stays


def test_a_failed_write_names_the_file_and_keeps_the_previous_content(tmp_path) -> None:
    path = tmp_path / "file.bin"
    write_bytes(path, b"first")
    message = r"file\.bin could not be written: No space left"
    with pytest.raises(StorageError, match=message), replacing(path):
        raise OSError(28, "No space left on device")
    assert path.read_bytes() == b"first"
    with pytest.raises(StorageError, match=r"could not be written.*resume=True"):
        append_bytes(tmp_path, b"a folder is not a file")


def test_make_folder_creates_parents_and_refuses_a_file(tmp_path) -> None:
    assert make_folder(tmp_path / "a" / "b") is True
    assert make_folder(tmp_path / "a" / "b") is False
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="is a file, not a folder; choose another out="):
        make_folder(tmp_path / "file")
    with pytest.raises(StorageError, match="could not be created: Not a directory"):
        make_folder(tmp_path / "file" / "below")


def test_a_lock_is_exclusive_and_ends_with_its_block(tmp_path) -> None:
    with (
        locked(tmp_path, "busy"),
        pytest.raises(StorageError, match="busy"),
        locked(tmp_path, "busy"),
    ):
        pytest.fail("two processes hold the lock")
    with pytest.raises(ZeroDivisionError), locked(tmp_path, "busy"):
        raise ZeroDivisionError
    with locked(tmp_path, "busy"):
        pass


# -- answers ---------------------------------------------------------------------------------------


def answer_file(tmp_path) -> Path:
    path = tmp_path / "select.answers"
    file = AnswerFile(path)
    file.write(np.arange(2), ROWS[:2])
    file.write(np.arange(2, 5), ROWS[2:])
    return path


def test_answers_are_kept_request_by_request_in_any_order(tmp_path) -> None:
    path = tmp_path / "select.answers"
    file = AnswerFile(path)
    file.write(np.array([3, 4]), ROWS[3:])
    assert read_rows(path) is None  # of the first images
    kept = AnswerFile(path).kept
    np.testing.assert_array_equal(kept[3:], ROWS[3:])
    assert np.isnan(kept[:3]).all()
    file.write(np.array([0, 2]), ROWS[[0, 2]])
    np.testing.assert_array_equal(read_rows(path), ROWS[:1])
    AnswerFile(path).write(np.array([1]), ROWS[1:2])
    np.testing.assert_array_equal(AnswerFile(path).kept, ROWS)


def test_an_answer_file_cut_off_anywhere_keeps_its_complete_requests(tmp_path) -> None:
    path = answer_file(tmp_path)
    data = path.read_bytes()
    first = LENGTHS.size + HEADER.size + 2 * ROW_BYTES
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        complete = 5 if size == len(data) else 2 * (size >= first)
        rows = read_rows(path)
        assert path.stat().st_size == size  # reading does not change the file
        assert (0 if rows is None else len(rows)) == complete
        resumed = AnswerFile(path)
        assert len(resumed.kept) == complete
        if complete < 5:
            resumed.write(np.arange(complete, 5), ROWS[complete:])
        np.testing.assert_array_equal(read_rows(path), ROWS)


def test_zeros_that_a_power_cut_left_are_not_answers(tmp_path) -> None:
    path = answer_file(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:-20] + bytes(20))
    assert len(AnswerFile(path).kept) == 2
    path.write_bytes(bytes(len(data)))
    assert AnswerFile(path).kept.shape == (0, 0)


@given(st.binary(max_size=64))
def test_a_damaged_answer_file_has_no_rows_or_some(tmp_path_factory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("damaged") / "select.answers"
    path.write_bytes(data)
    rows = read_rows(path)
    assert rows is None or (rows.ndim == 2 and len(rows) and rows.nbytes <= len(data))


def test_answers_in_memory_keep_nothing() -> None:
    file = AnswerFile(None)
    file.write(np.arange(5), ROWS)
    assert file.kept.shape == (0, 0)


def test_what_cannot_be_appended_whole_is_not_appended(tmp_path, monkeypatch) -> None:
    path = tmp_path / "ledger.txt"
    append_bytes(path, b"probe 64\n")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        append_bytes(path, b"probe 64\n", sync=True)
    assert path.read_bytes() == b"probe 64\n"


def test_a_growing_file_is_synced_at_once_and_then_now_and_then(tmp_path, monkeypatch) -> None:
    clock = [100.0]
    synced = []
    monkeypatch.setattr("soda_tta.storage.atomic.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("os.fsync", lambda descriptor: synced.append(clock[0]))
    file = GrowingFile(tmp_path / "ledger.txt")
    for _ in range(6):
        file.append(b"probe 64\n")
        clock[0] += 0.25
    assert synced == [100, 100.5, 101]
    assert file.path.stat().st_size == 6 * 9


# -- the book --------------------------------------------------------------------------------------


def test_a_book_adds_up_queries_by_purpose(tmp_path) -> None:
    book = Book(tmp_path / "ledger.txt")
    assert book.by_purpose() == {}
    book.append("select", 50)
    book.append("probe", 7)
    book.append("probe", 0)
    book.append("probe", 5)
    for reader in (book, Book(book.path)):
        assert reader.by_purpose() == {"select": 50, "probe": 12}
    assert book.path.read_text() == "select 50\nprobe 7\nprobe 5\n"
    book.remove()
    assert book.by_purpose() == {}
    book.remove()  # removing it twice is not an error


def test_a_book_cut_off_anywhere_counts_its_complete_lines(tmp_path) -> None:
    data = b"select 50\nprobe 7\nprobe 15\n"
    totals = {27: 72, 18: 57, 10: 50, 0: 0}  # by the least size of the file
    for size in range(len(data) + 1):
        path = tmp_path / "ledger.txt"
        path.write_bytes(data[:size])
        total = next(total for least, total in totals.items() if size >= least)
        ledger = Ledger(book=Book(path))
        assert ledger.lost == total
        ledger.spend(7, "probe")  # a new line, and not the rest of the one that was cut off
        assert Ledger(book=Book(path)).lost == total + 7


def test_queries_without_a_response_are_taken_back(tmp_path) -> None:
    path = tmp_path / "ledger.txt"
    ledger = Ledger(100, book=Book(path))
    ledger.spend(30, "probe")
    ledger.unanswered(30, "probe", sent=True)
    ledger.spend(30, "probe")
    ledger.unanswered(30, "probe", sent=False)
    ledger.spend(30, "probe")
    assert ledger.by_purpose() == {"probe": 30, "retried": 30}
    assert ledger.left == 40
    resumed = Ledger(100, book=Book(path))
    assert resumed.by_purpose() == {"retried": 30, "lost": 30}
    assert resumed.left == 40
    data = path.read_bytes()
    for size in range(len(data)):  # a crash never makes it forget what was sent
        path.write_bytes(data[:size])
        assert Ledger(book=Book(path)).total >= 30 * (size >= len("probe 30\n"))


@pytest.mark.parametrize("damage", [b"probe\n", b"probe many\n", b"\xff 3\n", b"\n"])
def test_a_run_with_a_damaged_book_is_not_resumed(tmp_path, damage: bytes) -> None:
    path = tmp_path / "ledger.txt"
    path.write_bytes(b"select 50\n" + damage)
    with pytest.raises(RunError, match=r"ledger\.txt is damaged.* another out="):
        Ledger(100, book=Book(path))


def test_a_book_in_memory_keeps_nothing() -> None:
    book = Book(None)
    book.append("probe", 5)
    assert book.by_purpose() == {}
    book.remove()


# -- the journal -----------------------------------------------------------------------------------


def test_a_journal_restores_numbers_exactly(tmp_path) -> None:
    journal = Journal(tmp_path / "rate-0" / "history.jsonl")
    assert journal.read() == []
    for step in STEPS:
        journal.append(step)
    assert Journal(journal.path).read() == STEPS
    assert read_intact_lines(journal.path) == (STEPS, None)
    journal.rewrite(STEPS[:1])
    assert journal.read() == STEPS[:1]
    journal.append(STEPS[1])
    assert journal.read() == STEPS[:2]


def test_a_journal_cut_off_anywhere_keeps_its_complete_lines(tmp_path) -> None:
    path = tmp_path / "history.jsonl"
    data = b"".join(json.dumps(step).encode() + b"\n" for step in STEPS)
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        complete = data[:size].count(b"\n")
        assert read_intact_lines(path) == (STEPS[:complete], None)
        assert path.stat().st_size == size  # reading does not change the file
        journal = Journal(path)
        assert journal.read() == STEPS[:complete]
        for step in STEPS[complete:]:
            journal.append(step)
        assert path.read_bytes() == data


@pytest.mark.parametrize("damage", [b"{torn", b"\xff\xfe", b"", b"3", b"[1]", b"null"])
def test_a_damaged_line_is_refused_when_resuming_and_tolerated_when_reading(
    tmp_path, damage: bytes
) -> None:
    path = tmp_path / "history.jsonl"
    first, _, third = (json.dumps(step).encode() for step in STEPS)
    path.write_bytes(b"\n".join([first, damage, third, b""]))
    with pytest.raises(RunError, match=r"history\.jsonl is not a journal of this version"):
        Journal(path).read()
    steps, problem = read_intact_lines(path)
    assert steps == STEPS[:1]
    assert problem == "line 2 of history.jsonl is damaged. The steps before it are shown"


def test_a_journal_in_memory_keeps_nothing() -> None:
    journal = Journal(None)
    journal.append(STEPS[0])
    journal.rewrite(STEPS)
    assert journal.read() == []
