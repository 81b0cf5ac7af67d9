"""Records of complete, unfinished and damaged run directories."""

import json

import numpy as np
import pytest

from soda_tta import adapt
from soda_tta.box import CallableBox
from soda_tta.errors import RunError
from soda_tta.report import write_report
from soda_tta.report.record import read_record, record_of
from soda_tta.storage.answers import AnswerFile

from .conftest import SMALL, check_self_contained, make_run


@pytest.mark.parametrize("method", ["soda", "soda-e", "soda-o", "lame"])
def test_a_run_interrupted_in_its_first_pass_gives_a_page(
    tmp_path, images, model, method: str
) -> None:
    box = CallableBox(model, batch=20)
    run = adapt(images, box, method=method, out=tmp_path / "run", stop=lambda: True)
    assert run.stopped == "interrupted" and np.isnan(run.before[20:]).all()
    for subject in (run, tmp_path / "run"):
        for labels in (None, model(images).argmax(axis=1)):
            report = write_report(subject, tmp_path / "page.html", labels=labels)
            html = report.path.read_text()
            check_self_contained(html)
            assert "The first pass has covered 20 of 50 images." in html
            assert report.facts["changed_answers"] is None
            json.dumps(report.facts, allow_nan=False)
    other = adapt(images, model, method="lame", out=tmp_path / "other")
    compared = write_report([run, other], tmp_path / "compared.html")
    check_self_contained(compared.path.read_text())


def test_a_run_without_any_response_gives_a_page(tmp_path) -> None:
    run = make_run(np.full((3, 4), np.nan, np.float32), None)
    report = write_report(run, tmp_path / "page.html")
    check_self_contained(report.path.read_text())
    assert record_of(run).before is None


class Killed(Exception):
    pass


def make_killed_run(folder, images, model, after: int):
    """A run whose process ended at its n-th event; its working directory is left as it was."""
    events = []

    def listener(event) -> None:
        events.append(event)
        if len(events) == after:
            raise Killed

    with pytest.raises(Killed):
        adapt(images, model, method="soda", out=folder, listener=listener, **SMALL)
    return folder


def contents(folder) -> dict:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_directory_gives_the_same_record_as_the_run(run, folder) -> None:
    from_disk = read_record(folder)
    from_memory = record_of(run)
    np.testing.assert_array_equal(from_disk.before, from_memory.before)
    np.testing.assert_array_equal(from_disk.after, from_memory.after)
    assert from_disk.queries == from_memory.queries
    assert from_disk.history == from_memory.history
    assert from_disk.names == from_memory.names
    assert not from_disk.missing and not from_memory.missing
    assert from_disk.title == "night"


@pytest.mark.parametrize("after", [2, 3, 8])
def test_a_killed_run_shows_its_progress_and_is_not_modified(
    tmp_path, images, model, after: int
) -> None:
    folder = make_killed_run(tmp_path / "run", images, model, after)
    files = contents(folder)
    record = read_record(folder)
    assert record.stopped is None and "--resume" in record.missing[0]
    assert record.total_queries == model.asked
    html = write_report(folder, tmp_path / "page.html").path.read_text()
    assert "Unfinished" in html and "has not finished" in html and f"{model.asked:,}" in html
    assert contents(folder) == files
    adapt(images, model, method="soda", out=folder, resume=True, **SMALL)
    assert not read_record(folder).missing


def test_an_interrupted_first_pass_shows_the_images_it_covered(tmp_path, folder) -> None:
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, "stopped": None, "queries": None}))
    working = folder / "working"
    working.mkdir()
    path = working / "select.answers"
    AnswerFile(path).write(np.arange(20), np.full((20, 4), 0.25, np.float32))
    path.write_bytes(path.read_bytes() + b"torn")
    (working / "ledger.txt").write_text("select 20\n")
    record = read_record(folder)
    assert len(record.before) == 20
    assert any("20 of 50 images" in sentence for sentence in record.missing)
    write_report(folder, tmp_path / "page.html", labels=np.zeros(50, int))


@pytest.mark.parametrize(
    "name", ["answers.safetensors", "history.jsonl", "predictions.csv", "adaptor.safetensors"]
)
@pytest.mark.parametrize("damage", ["missing", "garbage", "truncated"])
def test_a_missing_or_damaged_file_is_named_and_the_rest_is_shown(
    folder, tmp_path, name: str, damage: str
) -> None:
    path = folder / name
    if damage == "missing":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(b"\x00\xff garbage\n" * 3)
    else:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    report = write_report(folder, tmp_path / "page.html")
    assert report.facts["total_queries"] == 50 * 20
    # half of a text file still consists of complete lines
    if damage != "truncated" or name not in ("history.jsonl", "predictions.csv"):
        missing = report.facts["missing"]
        assert missing
        assert missing[0].replace("'", "&#39;")[:25] in report.path.read_text()


def test_a_directory_without_a_readable_card_is_an_error(tmp_path, folder) -> None:
    with pytest.raises(RunError, match=r"run\.json"):
        write_report(tmp_path, tmp_path / "x.html")
    (folder / "run.json").write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        write_report(folder, tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


def test_a_verdict_of_an_incompatible_version_is_left_out(folder, tmp_path) -> None:
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, "verdict": {"mood": "good"}}))
    assert any("Verdict" in sentence for sentence in read_record(folder).missing)
