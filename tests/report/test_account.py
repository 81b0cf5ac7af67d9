"""Whole and broken run directories."""

import json

import numpy as np
import pytest

from soda_tta import adapt
from soda_tta.errors import RunError
from soda_tta.report import write_report
from soda_tta.report.account import account_of, read_account

from .conftest import SMALL


class Killed(Exception):
    pass


def killed_run(place, images, model, after: int):
    """A run whose process ended at its n-th event, as a kill would end it: the working directory stays as it was."""
    seen = []

    def listener(event) -> None:
        seen.append(event)
        if len(seen) == after:
            raise Killed

    with pytest.raises(Killed):
        adapt(images, model, method="soda", out=place, listener=listener, **SMALL)
    return place


def test_a_directory_says_the_same_as_the_run(run, folder) -> None:
    saved, alive = read_account(folder), account_of(run)
    np.testing.assert_array_equal(saved.before, alive.before)
    np.testing.assert_array_equal(saved.after, alive.after)
    assert (
        saved.queries == alive.queries
        and saved.history == alive.history
        and saved.names == alive.names
    )
    assert not saved.missing and not alive.missing and saved.title == "night"


@pytest.mark.parametrize("after", [2, 3, 8])
def test_a_killed_run_gives_what_it_has_paid_for_and_is_not_touched(
    tmp_path, images, model, after: int
) -> None:
    place = killed_run(tmp_path / "run", images, model, after)
    kept = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    account = read_account(place)
    assert account.stopped is None and "--resume" in account.missing[0]
    assert account.total_queries == model.asked
    made = write_report(place, tmp_path / "page.html")
    html = made.path.read_text()
    assert "Unfinished" in html and "has not ended" in html and f"{model.asked:,}" in html
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == kept
    adapt(images, model, method="soda", out=place, resume=True, **SMALL)
    assert not read_account(place).missing


def test_a_first_look_that_was_cut_shows_the_images_it_reached(tmp_path, folder) -> None:
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, "stopped": None, "queries": None}))
    working = folder / "working"
    working.mkdir()
    rows = np.full((20, 4), 0.25, "<f4").tobytes()
    (working / "select.answers").write_bytes(np.array(4, "<i8").tobytes() + rows + b"torn")
    (working / "ledger.txt").write_text("select 20\n")
    account = read_account(folder)
    assert len(account.before) == 20 and any(
        "20 of 50 images" in sentence for sentence in account.missing
    )
    write_report(folder, tmp_path / "page.html", labels=np.zeros(50, int))


@pytest.mark.parametrize(
    "name", ["answers.safetensors", "history.jsonl", "predictions.csv", "adaptor.safetensors"]
)
@pytest.mark.parametrize("how", ["gone", "garbage", "cut"])
def test_a_lost_or_damaged_file_is_named_and_the_rest_is_shown(
    folder, tmp_path, name: str, how: str
) -> None:
    path = folder / name
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(
            b"\x00\xff garbage\n" * 3
            if how == "garbage"
            else path.read_bytes()[: path.stat().st_size // 2]
        )
    made = write_report(folder, tmp_path / "page.html")
    assert made.facts["total_queries"] == 50 * 20
    if not (
        how == "cut" and name in ("history.jsonl", "predictions.csv")
    ):  # half of their lines are still lines
        assert made.facts["missing"]
        assert made.facts["missing"][0].replace("'", "&#39;")[:25] in made.path.read_text()


def test_without_a_readable_card_there_is_no_report(tmp_path, folder) -> None:
    with pytest.raises(RunError, match=r"no run\.json"):
        write_report(tmp_path, tmp_path / "x.html")
    (folder / "run.json").write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        write_report(folder, tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


def test_a_verdict_of_another_version_is_left_out(folder, tmp_path) -> None:
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**facts, "verdict": {"mood": "good"}}))
    assert any("verdict" in sentence for sentence in read_account(folder).missing)
