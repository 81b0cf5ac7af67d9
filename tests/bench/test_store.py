"""Results survive kills, merges and other versions."""

import json

import pytest

from soda_tta.bench import Cell, Store
from soda_tta.cli import main
from soda_tta.errors import RunError

RESULT = {"before": 20.0, "after": 60.0, "queries_per_image": 902.0}


def cell(**more) -> Cell:
    return Cell(**{"method": "soda", **more})


def test_a_result_is_found_again_by_the_content_of_its_cell(tmp_path) -> None:
    store = Store(tmp_path)
    store.add(cell(seed=1, settings={"q": 10, "lr": 0.1}), RESULT)
    again = Store(tmp_path)
    assert (
        cell(settings={"lr": 0.1, "q": 10}, seed=1) in again
    )  # the order of names does not matter
    assert cell(seed=2) not in again and len(again) == 1
    assert [result for _, result in again] == [RESULT]


def test_a_torn_last_line_is_dropped_with_a_warning_and_nothing_else_is_lost(tmp_path) -> None:
    store = Store(tmp_path)
    for seed in range(3):
        store.add(cell(seed=seed), RESULT)
    raw = store.path.read_bytes()
    store.path.write_bytes(raw[:-7])
    with pytest.warns(UserWarning, match="torn"):
        kept = Store(tmp_path)
    assert len(kept) == 2 and cell(seed=2) not in kept
    kept.add(cell(seed=2), RESULT)
    assert len(Store(tmp_path)) == 3


def test_a_store_of_another_version_is_refused_and_never_misread(tmp_path) -> None:
    (tmp_path / "results.jsonl").write_text(json.dumps({"format": 99, "key": "x"}) + "\n")
    with pytest.raises(RunError, match="another version"):
        Store(tmp_path)
    for line in ("not json", '{"format": 1, "key": "x"}', "[]"):
        (tmp_path / "results.jsonl").write_text(line + "\n")
        with pytest.raises(RunError, match="no result"):
            Store(tmp_path)


@pytest.mark.parametrize(
    ("change", "raw"),
    [
        ({"result": {}}, b""),
        ({"result": {**RESULT, "after": "x"}}, b""),
        ({"cell": {}}, b""),
        ({"cell": {"method": 3}}, b""),
        ({"cell": {"method": "soda", "settings": 3}}, b""),
        ({"cell": {"method": "soda", "prompt": "of a later version"}}, b""),
        ({}, b"\xff\xfe"),
    ],
)
def test_a_damaged_line_is_named_with_its_number(
    tmp_path, change: dict, raw: bytes, capsys
) -> None:
    Store(tmp_path).add(cell(), RESULT)
    path = tmp_path / "results.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + raw + json.dumps({**json.loads(whole), **change}).encode() + b"\n")
    assert main(["bench", "table", str(tmp_path)]) == 2
    assert "results.jsonl, line 2, is no result" in capsys.readouterr().err


def test_a_folder_in_the_place_of_results_is_told(tmp_path, capsys) -> None:
    (tmp_path / "results.jsonl").mkdir()
    assert main(["bench", "table", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_an_empty_line_is_none(tmp_path) -> None:
    Store(tmp_path).add(cell(), RESULT)
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write("\n")
    assert len(Store(tmp_path)) == 1


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nowhere"])
def test_a_folder_that_cannot_be_written_is_told_before_anything_is_run(
    tmp_path, place: str, capsys
) -> None:
    (tmp_path / "file").write_text("")
    for command in (["run", "small", "--scale", "tiny"], ["merge", str(tmp_path / "store")]):
        Store(tmp_path / "store").add(cell(), RESULT)
        assert main(["bench", *command, "--out", str(tmp_path / place)]) == 2
        assert "choose another --out" in capsys.readouterr().err


def test_stores_of_several_machines_are_merged_once(tmp_path) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    one.add(cell(seed=0), RESULT)
    two.add(cell(seed=0), RESULT)
    two.add(cell(seed=1), RESULT)
    both = Store(tmp_path / "both")
    assert [len(both.merge(other)[0]) for other in (one, two, two)] == [1, 1, 0]
    assert len(Store(tmp_path / "both")) == 2


def test_a_merge_takes_adaptors_and_tells_which_cells_came_out_otherwise(tmp_path, capsys) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    one.add(cell(seed=0), RESULT)
    two.add(cell(seed=0), {**RESULT, "after": 61.0})
    two.add(cell(seed=1), RESULT)
    two.adaptor_path(cell(seed=1)).parent.mkdir()
    two.adaptor_path(cell(seed=1)).write_bytes(b"an adaptor")
    places = [str(tmp_path / name) for name in ("one", "two", "both")]
    assert main(["bench", "merge", *places[:2], "--out", places[2], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [told[place]["taken"] for place in places[:2]] == [1, 1]
    assert told[places[1]]["differing"] == [
        "soda on gaussian_noise 5 of cifar10, cifar10_resnet20, 500 images, seed 0"
    ]
    both = Store(places[2])
    assert both.results[cell(seed=0).key]["result"] == RESULT
    assert both.adaptor_path(cell(seed=1)).read_bytes() == b"an adaptor"
    assert main(["bench", "merge", *places[:2], "--out", places[2]]) == 0
    assert "1 cells were in" in capsys.readouterr().err
    assert main(["bench", "merge", places[0], "nowhere", "--out", str(tmp_path / "new")]) != 0
    assert not (tmp_path / "new").exists()
