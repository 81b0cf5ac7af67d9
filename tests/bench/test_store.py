"""Results survive crashes and merges; other versions are refused."""

import json
from dataclasses import replace

import pytest

from soda_tta.bench import Cell, CellResult, Store
from soda_tta.bench.store import FORMAT
from soda_tta.cli import main
from soda_tta.errors import RunError

RESULT = CellResult(before=20.0, after=60.0, queries_per_image=902.0)


def cell(**facts) -> Cell:
    return Cell(**{"method": "soda", **facts})


def test_a_result_is_found_by_the_content_of_its_cell(tmp_path) -> None:
    store = Store(tmp_path)
    store.add(cell(seed=1, settings={"q": 10, "lr": 0.1}), RESULT)
    again = Store(tmp_path)
    assert cell(settings={"lr": 0.1, "q": 10}, seed=1) in again  # the order does not matter
    assert cell(settings={"lr": 0.1, "directions": 10}, seed=1) in again  # nor does the short name
    assert cell(seed=2) not in again
    assert [result for _, result in again] == [RESULT]


def test_a_line_holds_the_cell_and_the_result_under_plain_names(tmp_path) -> None:
    store = Store(tmp_path)
    store.add(cell(settings={"q": 10}), RESULT)
    line = json.loads(store.path.read_text())
    assert line["format"] == FORMAT
    assert line["key"] == cell(settings={"q": 10}).key
    assert line["cell"]["settings"] == {"directions": 10}
    assert line["cell"]["order"] == "given"
    assert CellResult.from_facts(line["result"]) == RESULT


def test_an_incomplete_last_line_is_dropped_with_a_warning(tmp_path) -> None:
    store = Store(tmp_path)
    for seed in range(3):
        store.add(cell(seed=seed), RESULT)
    raw = store.path.read_bytes()
    store.path.write_bytes(raw[:-7])
    with pytest.warns(UserWarning, match="incomplete"):
        kept = Store(tmp_path)
    assert len(kept) == 2
    assert cell(seed=2) not in kept
    kept.add(cell(seed=2), RESULT)
    assert len(Store(tmp_path)) == 3


@pytest.mark.parametrize("form", [1, 99])
def test_a_store_of_another_version_is_refused(tmp_path, form: int) -> None:
    (tmp_path / "results.jsonl").write_text(json.dumps({"format": form, "key": "x"}) + "\n")
    with pytest.raises(RunError, match="another version"):
        Store(tmp_path)


@pytest.mark.parametrize("line", ["not json", f'{{"format": {FORMAT}, "key": "x"}}', "[]"])
def test_a_line_that_is_not_a_result_is_refused(tmp_path, line: str) -> None:
    (tmp_path / "results.jsonl").write_text(line + "\n")
    with pytest.raises(RunError, match="not a result"):
        Store(tmp_path)


@pytest.mark.parametrize(
    ("change", "raw"),
    [
        ({"result": {}}, b""),
        ({"result": []}, b""),
        ({"result": {**RESULT.facts(), "after": "x"}}, b""),
        ({"result": {**RESULT.facts(), "unknown": 1}}, b""),
        ({"cell": {}}, b""),
        ({"cell": {"method": 3}}, b""),
        ({"cell": {"method": "soda", "settings": 3}}, b""),
        ({"cell": {"method": "soda", "prompt": "of a later version"}}, b""),
        ({}, b"\xff\xfe"),
    ],
)
def test_a_damaged_line_is_reported_with_its_number(
    tmp_path, change: dict, raw: bytes, capsys
) -> None:
    Store(tmp_path).add(cell(), RESULT)
    path = tmp_path / "results.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + raw + json.dumps({**json.loads(whole), **change}).encode() + b"\n")
    assert main(["bench", "table", str(tmp_path)]) == 2
    assert "results.jsonl, line 2, is not a result" in capsys.readouterr().err


def test_a_folder_in_place_of_the_results_is_reported(tmp_path, capsys) -> None:
    (tmp_path / "results.jsonl").mkdir()
    assert main(["bench", "table", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_an_empty_line_is_ignored(tmp_path) -> None:
    Store(tmp_path).add(cell(), RESULT)
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write("\n")
    assert len(Store(tmp_path)) == 1


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nowhere"])
def test_a_folder_that_cannot_be_written_is_reported_before_anything_runs(
    tmp_path, place: str, capsys
) -> None:
    (tmp_path / "file").write_text("")
    Store(tmp_path / "store").add(cell(), RESULT)
    for command in (["run", "small", "--scale", "tiny"], ["merge", str(tmp_path / "store")]):
        assert main(["bench", *command, "--out", str(tmp_path / place)]) == 2
        assert "choose another --out" in capsys.readouterr().err


def test_merging_copies_each_cell_once(tmp_path) -> None:
    one = Store(tmp_path / "one")
    two = Store(tmp_path / "two")
    one.add(cell(seed=0), RESULT)
    two.add(cell(seed=0), RESULT)
    two.add(cell(seed=1), RESULT)
    both = Store(tmp_path / "both")
    assert [len(both.merge(other)[0]) for other in (one, two, two)] == [1, 1, 0]
    assert len(Store(tmp_path / "both")) == 2


def test_merging_copies_adaptors_and_reports_different_answers(tmp_path, capsys) -> None:
    one = Store(tmp_path / "one")
    two = Store(tmp_path / "two")
    one.add(cell(seed=0), RESULT)
    two.add(cell(seed=0), replace(RESULT, after=61.0))
    two.add(cell(seed=1), RESULT)
    two.adaptor_path(cell(seed=1)).parent.mkdir()
    two.adaptor_path(cell(seed=1)).write_bytes(b"an adaptor")
    places = [str(tmp_path / name) for name in ("one", "two", "both")]
    assert main(["bench", "merge", *places[:2], "--out", places[2], "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [facts[place]["copied"] for place in places[:2]] == [1, 1]
    assert facts[places[1]]["different"] == [
        "soda on gaussian_noise 5 of cifar10, cifar10_resnet20, 500 images, seed 0"
    ]
    both = Store(places[2])
    assert both[cell(seed=0)] == RESULT
    assert both.adaptor_path(cell(seed=1)).read_bytes() == b"an adaptor"
    assert main(["bench", "merge", *places[:2], "--out", places[2]]) == 0
    error = capsys.readouterr().err
    assert f"1 cells of {places[1]} have other answers in {places[2]}, which are kept" in error
    assert "500 images, seed 0" in error
    assert main(["bench", "merge", places[0], "nowhere", "--out", str(tmp_path / "new")]) != 0
    assert not (tmp_path / "new").exists()


def test_answers_are_compared_image_by_image_where_both_recorded_them(tmp_path) -> None:
    one = Store(tmp_path / "one")
    two = Store(tmp_path / "two")
    one.add(cell(), replace(RESULT, correct={"before": "00", "after": "f0"}))
    two.add(cell(), replace(RESULT, correct={"before": "00", "after": "0f"}))
    assert one.merge(two) == ([], [cell()])
