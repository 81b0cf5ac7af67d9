"""The folder of a run: who may open it, and whether it holds the run to be continued."""

import json
import subprocess
import sys

import numpy as np
import pytest

from soda_tta.errors import RunError, StorageError
from soda_tta.storage.run_folder import CARD, WORKING, RunFolder

BEFORE = np.array([[0.9, 0.1], [0.4, 0.6], [np.nan, np.nan], [0.5, 0.5]], np.float32)
AFTER = np.array([[0.8, 0.2], [0.7, 0.3], [0.1, 0.9], [np.nan, np.nan]], np.float32)

# -- opening ---------------------------------------------------------------------------------------


def test_a_new_folder_gets_a_card_before_anything_is_asked(tmp_path, card) -> None:
    path = tmp_path / "runs" / "first"
    with RunFolder.open(path, card(), resume=False) as folder:
        assert folder.holds_run
        assert not folder.ended
        assert not folder.holds_billed_work
        assert folder.read_card() == {**card(), "stopped": None}
        assert (path / WORKING).is_dir()
    assert (path / CARD).exists()


def test_a_run_in_memory_writes_nothing_and_every_file_still_works(
    tmp_path, card, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with RunFolder.open(None, card(), resume=False) as folder:
        folder.answers("select").write(np.arange(len(BEFORE)), BEFORE)
        folder.book().append("select", 4)
        folder.training("rate-0").journal.append({"step": 1})
        assert folder.training("rate-0").checkpoint is None
        assert folder.transcript("asked") is None
        assert folder.seconds_path() is None
        assert not folder.holds_run
        assert not folder.ended
        assert not folder.holds_billed_work
        folder.finish()
        folder.forget()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_a_run_is_refused_unless_it_is_resumed(tmp_path, card) -> None:
    with RunFolder.open(tmp_path / "run", card(), resume=False):
        pass
    message = "already holds a run; continue it with resume=True, or choose another out="
    with pytest.raises(RunError, match=message):
        RunFolder.open(tmp_path / "run", card(), resume=False).__enter__()
    with RunFolder.open(tmp_path / "run", card(), resume=True) as folder:
        assert folder.holds_run


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path, card) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(RunError, match="is not an empty folder; choose another out="):
            RunFolder.open(tmp_path, card(), resume=resume).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, card) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(StorageError, match="is a file, not a folder"):
        RunFolder.open(tmp_path / "run", card(), resume=False).__enter__()


@pytest.mark.parametrize("resume", [False, True])
def test_a_process_killed_before_its_card_was_written_leaves_a_folder_to_start_in(
    tmp_path, card, resume: bool
) -> None:
    (tmp_path / f".{CARD}.123.tmp").write_text("{")
    with RunFolder.open(tmp_path, card(), resume=resume) as folder:
        assert folder.holds_run


def test_temporary_files_of_a_crash_are_removed_on_resume(tmp_path, card) -> None:
    with RunFolder.open(tmp_path / "run", card(), resume=False):
        pass
    leftover = tmp_path / "run" / ".answers.safetensors.123.tmp"
    leftover.touch()
    with RunFolder.open(tmp_path / "run", card(), resume=True):
        assert not leftover.exists()


def test_a_folder_that_was_created_and_stays_empty_is_removed(tmp_path, card) -> None:
    with RunFolder.open(tmp_path / "run", card(), resume=False) as folder:
        folder.answers("select").write(np.arange(len(BEFORE)), BEFORE)
        folder.forget()  # the first request failed: nothing was received
    assert not (tmp_path / "run").exists()
    (tmp_path / "empty").mkdir()
    with RunFolder.open(tmp_path / "empty", card(), resume=False) as folder:
        folder.forget()
    assert (tmp_path / "empty").is_dir()  # it was there before


# -- the lock --------------------------------------------------------------------------------------


def test_a_folder_is_locked_while_it_is_open(tmp_path, card) -> None:
    message = "another process is working on the run in .*; wait for it, or choose another out="
    with RunFolder.open(tmp_path / "run", card(), resume=False):
        for resume in (False, True):
            with pytest.raises(StorageError, match=message):
                RunFolder.open(tmp_path / "run", card(), resume=resume).__enter__()
    with (
        pytest.raises(ZeroDivisionError),
        RunFolder.open(tmp_path / "run", card(), resume=True),
    ):
        raise ZeroDivisionError
    with RunFolder.open(tmp_path / "run", card(), resume=True):
        pass


def test_the_lock_of_a_killed_process_is_released(tmp_path, card) -> None:
    script = (
        "import json, sys, time\n"
        "from soda_tta.storage.run_folder import RunFolder\n"
        "with RunFolder.open(sys.argv[1], json.loads(sys.argv[2]), resume=False):\n"
        "    print('open', flush=True)\n"
        "    time.sleep(60)\n"
    )
    arguments = [sys.executable, "-c", script, str(tmp_path / "run"), json.dumps(card())]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "open\n"
        with pytest.raises(StorageError, match="another process"):
            RunFolder.open(tmp_path / "run", card(), resume=True).__enter__()
        process.kill()
        process.wait()
    with RunFolder.open(tmp_path / "run", card(), resume=True) as folder:
        assert folder.holds_run


# -- the identity of a run -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"method": "soda-r"}, "method: soda there, soda-r here"),
        ({"seed": 1}, "seed: 0 there, 1 here"),
        ({"budget": None}, "budget: 20.0 there, None here"),
        ({"settings": {"epochs": 3, "lr": 0.2}}, "settings: lr 0.1 there, 0.2 here"),
        (
            {"images": {"count": 5, "size": [8, 8], "fingerprint": "abc"}},
            "images: count 4 there, 5 here",
        ),
        ({"box": {"fingerprint": "other", "logits": False}}, "box: fingerprint model there"),
        (
            {"plan": {"epochs": 3, "rungs": [1], "queries": {}, "limit": 80}},
            r"rungs: \[1, 2\] there, \[1\] here",
        ),
        ({"seed": 1, "method": "dine"}, "method: soda there, dine here; seed: 0 there, 1 here"),
    ],
)
def test_another_run_is_not_resumed_and_every_difference_is_named(
    tmp_path, card, change, difference: str
) -> None:
    with RunFolder.open(tmp_path / "run", card(), resume=False):
        pass
    stored = (tmp_path / "run" / CARD).read_bytes()
    with pytest.raises(RunError, match=rf"holds another run \(.*{difference}") as error:
        RunFolder.open(tmp_path / "run", card(**change), resume=True).__enter__()
    assert str(error.value).endswith("; choose another out=.")
    assert (tmp_path / "run" / CARD).read_bytes() == stored


@pytest.mark.parametrize(
    "change",
    [
        {"versions": {"numpy": "3"}},
        {"command": ["soda-tta", "adapt"]},
        {"images": {"count": 4, "size": (8, 8), "fingerprint": "abc"}},  # a tuple becomes a list
        {"plan": {"epochs": 9, "rungs": (1, 2), "queries": {}, "limit": 1}},
    ],
)
def test_facts_that_do_not_identify_a_run_may_differ(tmp_path, card, change) -> None:
    with RunFolder.open(tmp_path / "run", card(), resume=False):
        pass
    with RunFolder.open(tmp_path / "run", card(**change), resume=True) as folder:
        assert folder.holds_run


def test_the_number_of_classes_is_not_compared(tmp_path, card) -> None:
    """It is known only after the first response, so the card of a new run does not hold it."""
    box = {**card()["box"], "classes": 10}
    with RunFolder.open(tmp_path / "run", card(box=box), resume=False):
        pass
    with RunFolder.open(tmp_path / "run", card(), resume=True) as folder:
        assert folder.read_card()["box"]["classes"] == 10


def test_a_setting_that_a_later_version_removed_is_ignored(tmp_path, card) -> None:
    settings = {**card()["settings"], "unused": 1}
    with RunFolder.open(tmp_path / "run", card(settings=settings), resume=False):
        pass
    with RunFolder.open(tmp_path / "run", card(), resume=True) as folder:
        assert folder.holds_run


def test_a_setting_that_a_later_version_added_is_named(tmp_path, card) -> None:
    with RunFolder.open(tmp_path / "run", card(), resume=False):
        pass
    settings = {**card()["settings"], "momentum": 0.9}
    message = "was started by a version without momentum; finish it with that version"
    with pytest.raises(RunError, match=message):
        RunFolder.open(tmp_path / "run", card(settings=settings), resume=True).__enter__()


# -- the card --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stopped", ["finished", "budget"])
def test_an_ended_run_has_no_working_folder(tmp_path, card, stopped: str) -> None:
    with RunFolder.open(tmp_path / "run", card(), resume=False) as folder:
        folder.answers("select").write(np.arange(len(BEFORE)), BEFORE)
        folder.write_card(card(stopped=stopped))
        folder.finish()
    with RunFolder.open(tmp_path / "run", card(), resume=True) as folder:
        assert folder.ended
        assert not folder.holds_billed_work
        assert not (tmp_path / "run" / WORKING).exists()


def test_an_interrupted_run_has_not_ended(tmp_path, card) -> None:
    with RunFolder.open(tmp_path / "run", card(), resume=False) as folder:
        folder.write_card(card(stopped="interrupted"))
        assert not folder.ended


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b'{"format": 2', "cannot be read"),
        (b"\xff\xfe\xfd", "cannot be read"),
        (b"[]", "was written by another version"),
        (b"null", "was written by another version"),
        (b'{"format": 1}', "was written by another version"),
        (b"{}", "was written by another version"),
    ],
)
def test_a_damaged_card_is_refused_and_named(tmp_path, card, content: bytes, message: str) -> None:
    (tmp_path / CARD).write_bytes(content)
    with pytest.raises(RunError, match=f"{CARD} {message}"):
        RunFolder(tmp_path).read_card()
    with pytest.raises(RunError, match=f"{CARD} {message}"):
        RunFolder.open(tmp_path, card(), resume=True).__enter__()
    assert (tmp_path / CARD).read_bytes() == content


def test_a_folder_without_a_card_holds_no_run(tmp_path) -> None:
    assert not RunFolder(tmp_path).holds_run
    with pytest.raises(RunError, match=f"holds no run .there is no {CARD}"):
        RunFolder(tmp_path).read_card()


# -- the files of a run ----------------------------------------------------------------------------


def test_billed_work_is_answers_steps_or_responses(tmp_path, card) -> None:
    def write_book(folder: RunFolder) -> None:
        folder.book().append("select", 4)

    def write_answers(folder: RunFolder) -> None:
        folder.answers("select").write(np.arange(len(BEFORE)), BEFORE)

    def write_steps(folder: RunFolder) -> None:
        folder.training("rate-0").journal.append({"step": 1})

    def write_responses(folder: RunFolder) -> None:
        folder.transcript("asked").append(1, 0, [bytes(16)] * len(BEFORE), BEFORE)

    for write in (write_book, write_answers, write_steps, write_responses):
        path = tmp_path / write.__name__
        with RunFolder.open(path, card(), resume=False) as folder:
            write(folder)
            # A book alone is billed, but a resumed run has no use for it.
            assert folder.holds_billed_work == (write is not write_book)


def test_the_table_of_predictions_leaves_unanswered_cells_empty(tmp_path) -> None:
    folder = RunFolder(tmp_path)
    names = ["a.png", "b, c.png", "odd\udcff.png", "d.png"]
    folder.write_predictions(names, BEFORE, AFTER)
    lines = (tmp_path / "predictions.csv").read_bytes().splitlines()
    assert lines == [
        b"image,before,before_confidence,after,after_confidence,changed",
        b"a.png,0,0.900000,0,0.800000,0",
        b'"b, c.png",1,0.600000,0,0.700000,1',
        b"odd\xff.png",
        b"d.png,0,0.500000",
    ]
    folder.write_predictions(names, BEFORE, None)
    lines = (tmp_path / "predictions.csv").read_bytes().splitlines()
    assert lines[1] == b"a.png,0,0.900000"
