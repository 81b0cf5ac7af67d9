"""Resuming: what continues, what is refused and why, and what is never sent twice."""

import json
import os

import numpy as np
import pytest
from PIL import Image

from soda_tta import Run, adapt
from soda_tta.errors import RunError

FAST = dict(method="soda", epochs=4, batch=16, width=4, lr=0.05)
pytestmark = pytest.mark.filterwarnings("ignore")


def test_resuming_a_finished_run_sends_no_query(images, model, tmp_path) -> None:
    run = adapt(images, model, out=tmp_path / "run", **FAST)
    sent = model.asked
    again = adapt(images, model, out=tmp_path / "run", resume=True, **FAST)
    assert model.asked == sent
    np.testing.assert_array_equal(run.probabilities, again.probabilities)


@pytest.mark.parametrize("killed", [True, False])
def test_resuming_a_finished_run_leaves_no_working_folder(
    images, model, tmp_path, monkeypatch, killed: bool
) -> None:
    out = tmp_path / "run"
    adapt(images, model, out=out, **FAST)
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    if killed:  # between the last file and the removal of the working folder
        (out / "working").mkdir()
        (out / "working" / "seconds.txt").write_text("1000.5")
    monkeypatch.setattr("soda_tta.storage.stopwatch.EVERY", 0.0)  # as in a process of some seconds
    adapt(images, model, out=out, resume=True, **FAST)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == files


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "seed"),
        ({"q": 7}, "directions"),
        ({"budget": 30}, "budget"),
        ({"method": "deployed"}, "method"),
    ],
)
def test_another_run_is_not_resumed(images, model, tmp_path, change, words: str) -> None:
    adapt(images, model, out=tmp_path / "run", **FAST)
    settings = {} if "method" in change else FAST
    with pytest.raises(RunError, match=words):
        adapt(images, model, out=tmp_path / "run", resume=True, **{**settings, **change})
    with pytest.raises(RunError, match="fingerprint"):
        adapt(images[::-1], model, out=tmp_path / "run", resume=True, **FAST)
    with pytest.raises(RunError, match="box"):
        adapt(images, lambda x: model(x), out=tmp_path / "run", resume=True, **FAST)
    with pytest.raises(RunError, match="continue it with resume=True"):
        adapt(images, model, out=tmp_path / "run", **FAST)


def test_a_damaged_checkpoint_or_card_is_reported(images, box, tmp_path) -> None:
    adapt(images, box, out=tmp_path / "run", stop=lambda: True, **FAST)
    checkpoint = tmp_path / "run" / "working" / "lr-0.05" / "checkpoint.safetensors"
    checkpoint.write_bytes(b"not a checkpoint")
    with pytest.raises(RunError, match="checkpoint"):
        adapt(images, box, out=tmp_path / "run", resume=True, **FAST)
    (tmp_path / "run" / "run.json").write_text('{"format": 99}')
    with pytest.raises(RunError, match="another version"):
        adapt(images, box, out=tmp_path / "run", resume=True, **FAST)


def test_a_step_whose_line_in_the_journal_is_cut_off_is_repeated(images, model, tmp_path) -> None:
    whole = adapt(images, model, out=tmp_path / "whole", **FAST)
    steps = iter(range(100))
    adapt(images, model, out=tmp_path / "run", stop=lambda: next(steps) == 5, **FAST)
    journal = tmp_path / "run" / "working" / "lr-0.05" / "history.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    resumed = adapt(images, model, out=tmp_path / "run", resume=True, **FAST)
    np.testing.assert_array_equal(whole.probabilities, resumed.probabilities)


def test_a_run_killed_before_its_first_query_starts_with_or_without_resume(
    images, box, tmp_path
) -> None:
    for folder, resume in (("run", True), ("again", False)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ".run.json.123.tmp").write_text("{")
        run = adapt(images, box, out=tmp_path / folder, resume=resume, **FAST)
        assert run.stopped == "finished"
    assert adapt(images, box, out=tmp_path / "other", resume=True, **FAST).stopped == "finished"


def test_two_processes_never_bill_the_same_run(images, model, tmp_path) -> None:
    def model_and_second_run(batch):
        for resume in (True, False):
            with pytest.raises(RunError, match="another process is working on the run"):
                adapt(images, model, out=tmp_path / "run", resume=resume, **FAST)
        return model(batch)

    run = adapt(images, model_and_second_run, out=tmp_path / "run", **FAST)
    assert run.stopped == "finished"
    assert model.asked == run.ledger.total


def test_a_file_in_the_place_of_the_run_folder_is_reported(images, box, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    for out in ("file", "file/run"):
        with pytest.raises(RunError, match="choose another out="):
            adapt(images, box, out=tmp_path / out, **FAST)


def test_a_setting_that_was_removed_since_does_not_prevent_a_resume(images, box, tmp_path) -> None:
    first = adapt(images, box, method="lame", out=tmp_path / "run")
    card = json.loads((tmp_path / "run" / "run.json").read_text())
    card["settings"]["epochs"] = 1
    (tmp_path / "run" / "run.json").write_text(json.dumps(card))
    again = adapt(images, box, method="lame", out=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(again.after, first.after)


def test_a_setting_that_was_added_since_is_reported(images, box, tmp_path) -> None:
    adapt(images, box, out=tmp_path / "run", **FAST)
    card = json.loads((tmp_path / "run" / "run.json").read_text())
    del card["settings"]["start"], card["settings"]["deviation"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(card))
    words = "started by a version without start, deviation; finish it with that version"
    with pytest.raises(RunError, match=words):
        adapt(images, box, out=tmp_path / "run", resume=True, **FAST)
    # another difference is reported instead
    longer = {**FAST, "epochs": 1 + FAST["epochs"]}
    with pytest.raises(RunError, match=r"holds another run .settings: .*epochs"):
        adapt(images, box, out=tmp_path / "run", resume=True, **longer)


def test_a_file_name_that_is_not_utf8_does_not_lose_a_billed_run(box, tmp_path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(folder / "a.png")
    (folder / "a.png").rename(folder / os.fsdecode(b"\xff.png"))
    run = adapt(folder, box, out=tmp_path / "run", **FAST)
    assert Run.load(tmp_path / "run").names == run.names


def test_an_interrupted_run_that_is_resumed_and_killed_counts_as_unfinished(
    images, tmp_path
) -> None:
    class Killed(BaseException):
        """Stands for SIGKILL: nothing may catch it."""

    def classify(batch):
        if killing[0]:
            raise Killed
        share = batch.mean(axis=(1, 2, 3))
        return np.stack([share, 1 - share], axis=1)

    killing = [False]
    steps = iter([False, True])
    settings = dict(method="soda", epochs=4, batch=16, width=4, out=tmp_path / "run")
    adapt(images, classify, stop=lambda: next(steps, True), **settings)
    assert Run.load(tmp_path / "run").stopped == "interrupted"
    killing[0] = True
    with pytest.raises(Killed):
        adapt(images, classify, resume=True, **settings)
    with pytest.raises(RunError, match="has not ended"):
        Run.load(tmp_path / "run")
