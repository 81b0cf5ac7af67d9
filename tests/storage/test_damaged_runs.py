"""Damaged, edited and foreign run folders and adaptors: a sentence, never a traceback.

What can still be read is read; everything else is an error of this package, for which the command
line exits with 2.
"""

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

from soda_tta import Run, adapt
from soda_tta.adaptors import Adaptor, Bank, PaperNetwork
from soda_tta.adaptors.files import KEY
from soda_tta.errors import RunError, SodaError
from soda_tta.foreign_text import CONTROL
from soda_tta.report.analysis import analyse
from soda_tta.report.commands import deployment_commands, reproduce_command
from soda_tta.report.headline import headline
from soda_tta.report.record import read_record
from soda_tta.report.run_page import flattened

SMALL = {"epochs": 2, "batch": 16, "width": 4, "lr": 0.05}
COMMAND = ["adapt", "--model", "m.onnx", "--images", "night", "--size", "8"]
ABSENT = object()


def name_of(value: object) -> str:
    """The name of a test case, the same in every process."""
    return "absent" if value is ABSENT else repr(value)


DEEP = "[" * 100_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)


def model(images: np.ndarray) -> np.ndarray:
    share = images.mean(axis=(1, 2, 3))
    return np.stack([share, 1 - share, 0 * share], axis=1)


IMAGES = np.random.default_rng(0).random((40, 3, 8, 8), np.float32)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, with a verdict."""
    place = tmp_path_factory.mktemp("damaged") / "run"
    adapt(IMAGES, model, method="soda", out=place, command=COMMAND, **SMALL)
    facts = json.loads((place / "run.json").read_text())
    verdict = {"adopt": True, "sentence": "Adopt: it helps.", "images": 10}
    verdict |= {"before": 0.1, "after": 0.2, "p_value": 0.001, "level": 0.01}
    (place / "run.json").write_text(json.dumps({**facts, "verdict": verdict}))
    return place


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A copy of that run, to be damaged."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def read_everything(folder: Path) -> None:
    """What the commands report, apply, export and adapt --resume read of a run folder."""
    for reader in (read_page, Run.load, resume):
        try:
            reader(folder)
        except SodaError as error:
            assert not CONTROL.search(str(error)) and len(str(error)) > 20


def read_page(folder: Path) -> None:
    record = read_record(folder)
    analysis = analyse(record, None, None, None)
    headline(analysis)
    analysis.facts()
    flattened(record.card)
    reproduce_command(record)
    deployment_commands(record)


def resume(folder: Path) -> None:
    run = adapt(
        IMAGES, model, method="soda", out=folder, resume=True, listener=lambda _: None, **SMALL
    )
    repr(run)
    run.summary()


def places_of(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON document."""
    inner = value.items() if isinstance(value, dict) else ()
    for key, each in inner:
        yield (*place, key)
        yield from places_of(each, (*place, key))


def changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """The document with another value at a place."""
    document = copy.deepcopy(document)
    around = document
    for key in place[:-1]:
        around = around[key]
    if value is ABSENT:
        del around[place[-1]]
    else:
        around[place[-1]] = value
    return document


@pytest.mark.parametrize("value", [ABSENT, -1, "\x1b[2J"])
def test_every_entry_of_the_card_may_be_damaged(finished: Path, folder: Path, value: Any) -> None:
    facts = json.loads((finished / "run.json").read_text())
    for place in places_of(facts):
        (folder / "run.json").write_text(json.dumps(changed(facts, place, value)))
        read_everything(folder)


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data(), value=JSON)
def test_any_value_may_stand_anywhere_in_the_card(folder: Path, data: Any, value: Any) -> None:
    path = folder / "run.json"
    path.with_name("good").write_bytes(path.read_bytes())
    facts = json.loads(path.read_text())
    place = data.draw(st.sampled_from(sorted(places_of(facts), key=str)))
    path.write_text(json.dumps(changed(facts, place, value)))
    read_everything(folder)
    path.with_name("good").replace(path)


def test_a_damaged_entry_is_named(folder: Path) -> None:
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(changed(facts, ("images", "count"), "many")))
    with pytest.raises(RunError, match=r"damaged: images\.count is 'many', not a whole number"):
        Run.load(folder)


def test_a_card_without_a_method_is_refused(folder: Path) -> None:
    facts = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(changed(facts, ("method",), ABSENT)))
    with pytest.raises(RunError, match="damaged: method is missing"):
        read_record(folder)


FILES = (
    "run.json",
    "answers.safetensors",
    "history.jsonl",
    "predictions.csv",
    "adaptor.safetensors",
)
DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda data: None,
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "inverted": lambda data: bytes(255 - byte for byte in data),
    "deep": lambda data: DEEP.encode() + b"\n",
    "null": lambda data: b"null\n",
    "number": lambda data: b"5\n",
    "tail": lambda data: data + b"\xff\xfe\n",
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_file_may_be_damaged(folder: Path, file: str, damage: str) -> None:
    content = DAMAGES[damage]((folder / file).read_bytes())
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    read_everything(folder)


ROWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "whole numbers": lambda rows: rows.astype(np.int64),
    "one dimension": lambda rows: rows[:, 0],
    "three dimensions": lambda rows: rows[None],
    "no image": lambda rows: rows[:0],
    "no class": lambda rows: rows[:, :0],
    "one class": lambda rows: rows[:, :1],
    "infinite": lambda rows: np.full_like(rows, np.inf),
    "negative": lambda rows: -rows,
    "few": lambda rows: rows[:3],
    "double": lambda rows: np.concatenate([rows, rows]),
    "wide": lambda rows: np.concatenate([rows, rows], axis=1),
}


@pytest.mark.parametrize("name", ["before", "after"])
@pytest.mark.parametrize("kind", ROWS)
def test_answers_of_any_kind(folder: Path, name: str, kind: str) -> None:
    arrays = load_file(folder / "answers.safetensors")
    arrays[name] = np.ascontiguousarray(ROWS[kind](arrays[name]))
    (folder / "answers.safetensors").write_bytes(save(arrays))
    assert "answers.safetensors cannot be read" in " ".join(read_record(folder).missing)
    read_everything(folder)


@pytest.mark.parametrize("value", [ABSENT, None, "x", {}, [None]])
def test_every_entry_of_the_history_may_be_damaged(folder: Path, value: Any) -> None:
    first, *rest = (folder / "history.jsonl").read_text().splitlines()
    for place in places_of(json.loads(first)):
        lines = [json.dumps(changed(json.loads(first), place, value)), *rest]
        (folder / "history.jsonl").write_text("\n".join(lines) + "\n")
        read_everything(folder)


ADAPTORS = {"bank": Bank().build(), "network": PaperNetwork(width=4).build(seed=0)}
VALUES = [ABSENT, None, 5, -1, float("nan"), 1e308, 10**30, "x", [], ["x"], {}, {"a": 1}, True]


@pytest.mark.parametrize("value", VALUES, ids=name_of)
@pytest.mark.parametrize("kind", ADAPTORS)
def test_every_entry_of_an_adaptor_may_be_damaged(tmp_path: Path, kind: str, value: Any) -> None:
    adaptor = ADAPTORS[kind]
    description = {"kind": adaptor.kind, "settings": adaptor.settings}
    tensors = {"parameters": adaptor.parameters}
    texts = [json.dumps(changed(description, place, value)) for place in places_of(description)]
    for text in [*texts, DEEP, "" if value is ABSENT else json.dumps(value)]:
        check_adaptor_file(tmp_path, save(tensors, {KEY: text}))


PARAMETERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "whole numbers": lambda vector: vector.astype(np.int64),
    "double precision": lambda vector: vector.astype(np.float64),
    "two dimensions": lambda vector: vector[None],
    "none": lambda vector: vector[:0],
    "few": lambda vector: vector[:2],
    "double": lambda vector: np.tile(vector, 2),
    "NaN": lambda vector: vector * np.nan,
    "huge": lambda vector: vector + np.float32(1e30),
}


@pytest.mark.parametrize("change", PARAMETERS)
@pytest.mark.parametrize("kind", ADAPTORS)
def test_parameters_of_any_kind_are_refused(tmp_path: Path, kind: str, change: str) -> None:
    adaptor = ADAPTORS[kind]
    description = {"kind": adaptor.kind, "settings": adaptor.settings}
    vector = np.ascontiguousarray(PARAMETERS[change](adaptor.parameters))
    content = save({"parameters": vector}, {KEY: json.dumps(description)})
    assert not check_adaptor_file(tmp_path, content)


def check_adaptor_file(place: Path, content: bytes) -> bool:
    """Whether the file holds an adaptor; one that is loaded can be used."""
    (place / "a.safetensors").write_bytes(content)
    try:
        adaptor = Adaptor.load(place / "a.safetensors")
    except RunError as error:
        assert "a.safetensors" in str(error) and str(error).isprintable()
        return False
    assert np.isfinite(adaptor(IMAGES[:1])).all()
    return True
