"""The reader of run folders: what is there is read, and what is not is stated."""

import csv
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soda_tta import Run
from soda_tta.errors import RunError
from soda_tta.storage.answers import AnswerFile
from soda_tta.storage.run_folder import RunFolder
from soda_tta.storage.stored_run import NOT_ANSWERED, NOT_ENDED, StoredRun, read_run_folder

NAMES = ["a.png", "b.png", "odd\udcff.png", "d.png"]
BEFORE = np.random.default_rng(0).dirichlet(np.ones(3), 4).astype(np.float32)
AFTER = np.random.default_rng(1).dirichlet(np.ones(3), 4).astype(np.float32)
STEPS = [{"step": number, "loss": 1 / (1 + number)} for number in range(3)]
QUERIES = {"select": 4, "probe": 60, "evaluate": 4}


def save_run(path, card, stopped: str = "finished", after=AFTER) -> RunFolder:
    """A run that has come to an end, or was stopped by its user."""
    folder = RunFolder(path)
    path.mkdir(exist_ok=True)
    folder.write_answers(BEFORE, after)
    folder.write_history(STEPS)
    folder.write_predictions(NAMES, BEFORE, after)
    folder.write_card({**card, "stopped": stopped, "queries": QUERIES})
    return folder


@pytest.fixture
def finished(tmp_path, card):
    save_run(tmp_path / "run", card())
    return tmp_path / "run"


@pytest.fixture
def killed(tmp_path, card):
    """A run killed during its second training."""
    with RunFolder.open(tmp_path / "killed", card(), resume=False) as folder:
        folder.answers("select").write(np.arange(len(BEFORE)), BEFORE)
        folder.book().append("select", 4)
        folder.book().append("probe", 20)
        for step in STEPS:
            folder.training("rate-0").journal.append(step)
        folder.training("rate-1").journal.append({**STEPS[0], "loss": 9.0})
    return tmp_path / "killed"


def snapshot(folder) -> dict:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files}


# -- runs that ended -------------------------------------------------------------------------------


@pytest.mark.parametrize("stopped", ["finished", "budget", "interrupted"])
def test_a_run_that_ended_is_read_completely(tmp_path, card, stopped: str) -> None:
    save_run(tmp_path / "run", card(), stopped)
    stored = read_run_folder(str(tmp_path / "run"))
    assert stored.stopped == stopped
    assert stored.folder == tmp_path / "run"
    assert stored.facts["method"] == "soda"
    np.testing.assert_array_equal(stored.before, BEFORE)
    np.testing.assert_array_equal(stored.after, AFTER)
    assert stored.steps == STEPS
    assert stored.names == NAMES
    assert stored.queries == QUERIES
    assert stored.missing == []


def test_a_run_interrupted_before_the_last_pass_has_no_answers_after_adapting(
    tmp_path, card
) -> None:
    save_run(tmp_path / "run", card(), "interrupted", after=None)
    stored = read_run_folder(tmp_path / "run")
    np.testing.assert_array_equal(stored.before, BEFORE)
    assert stored.after is None
    assert stored.missing == [NOT_ANSWERED]
    assert stored.names == NAMES


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("answers.safetensors", "Predictions"),
        ("history.jsonl", "History"),
        ("predictions.csv", "Image names"),
    ],
)
def test_a_missing_file_is_named_and_the_others_are_read(finished, name: str, subject: str) -> None:
    (finished / name).unlink()
    stored = read_run_folder(finished)
    (sentence,) = stored.missing
    assert sentence.startswith(f"{subject}: {name} cannot be read (No such file or directory")
    assert sentence.endswith(").")
    assert (stored.before is None) == (name == "answers.safetensors")
    assert (stored.steps == []) == (name == "history.jsonl")
    assert (stored.names == []) == (name == "predictions.csv")
    assert stored.queries == QUERIES


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"garbage" * 10, bytes(64)],
    ids=["empty", "a byte", "text", "zeros"],
)
@pytest.mark.parametrize(
    ("name", "subject"), [("answers.safetensors", "Predictions"), ("predictions.csv", "Image name")]
)
def test_a_damaged_file_is_named(finished, name: str, subject: str, content: bytes) -> None:
    (finished / name).write_bytes(content)
    (sentence,) = read_run_folder(finished).missing
    assert sentence.startswith(subject)
    assert f"{name} cannot be read (" in sentence


def test_answers_without_the_images_as_they_are_count_as_damaged(finished) -> None:
    from safetensors.numpy import save_file

    save_file({"after": AFTER}, finished / "answers.safetensors")
    stored = read_run_folder(finished)
    assert stored.before is None
    assert "answers.safetensors cannot be read (KeyError" in stored.missing[0]


def test_a_damaged_history_is_read_up_to_the_damage(finished) -> None:
    path = finished / "history.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{torn\n" + lines[2])
    stored = read_run_folder(finished)
    assert stored.steps == STEPS[:1]
    message = "History: line 2 of history.jsonl is damaged. The steps before it are shown."
    assert stored.missing == [message]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    name=st.sampled_from(["answers.safetensors", "history.jsonl", "predictions.csv"]),
    place=st.floats(0, 1),
    damage=st.binary(max_size=12),
    cut=st.booleans(),
)
def test_no_damage_to_a_finished_run_prevents_reading_it(
    finished, name: str, place: float, damage: bytes, cut: bool
) -> None:
    path = finished / name
    content = path.read_bytes()
    start = int(place * len(content))
    path.write_bytes(content[:start] + damage + (b"" if cut else content[start + len(damage) :]))
    try:
        stored = read_run_folder(finished)
        assert isinstance(stored, StoredRun)
        assert all(sentence.endswith(".") for sentence in stored.missing)
        assert all(isinstance(step, dict) for step in stored.steps)
    finally:
        path.write_bytes(content)


# -- runs that were killed -------------------------------------------------------------------------


def test_a_killed_run_is_read_as_far_as_it_came_and_nothing_is_changed(killed) -> None:
    files = snapshot(killed)
    stored = read_run_folder(killed)
    assert snapshot(killed) == files
    assert stored.stopped is None
    np.testing.assert_array_equal(stored.before, BEFORE)
    assert stored.after is None
    assert stored.steps == STEPS  # of several trainings, the longest
    assert stored.names == []
    assert stored.queries == {"select": 4, "probe": 20}
    assert stored.missing == [NOT_ENDED]


def test_a_run_killed_before_its_first_response_has_only_a_card(tmp_path, card) -> None:
    with RunFolder.open(tmp_path / "run", card(), resume=False):
        pass
    stored = read_run_folder(tmp_path / "run")
    assert stored.before is None
    assert stored.steps == []
    assert stored.queries == {}
    assert stored.missing == [
        NOT_ENDED,
        "No response is stored yet, so the page shows only the card.",
        "Queries: the ledger cannot be read (No such file or directory).",
    ]


def test_a_run_killed_in_its_first_pass_states_how_far_it_came(killed) -> None:
    path = killed / "working" / "select.answers"
    path.unlink()
    AnswerFile(path).write(np.arange(2), BEFORE[:2])
    stored = read_run_folder(killed)
    np.testing.assert_array_equal(stored.before, BEFORE[:2])
    assert stored.missing[1] == "The first pass has covered 2 of 4 images."


def test_lines_cut_off_by_the_crash_are_not_damage(killed) -> None:
    with (killed / "working" / "ledger.txt").open("ab") as file:
        file.write(b"probe 1")
    with (killed / "working" / "rate-0" / "history.jsonl").open("ab") as file:
        file.write(b'{"step": 3, "lo')
    stored = read_run_folder(killed)
    assert stored.queries == {"select": 4, "probe": 20}
    assert stored.steps == STEPS
    assert stored.missing == [NOT_ENDED]


@pytest.mark.parametrize("damage", [b"probe\n", b"probe many\n", b"\xff\xfe 3\n", b"a b c\n"])
def test_a_damaged_ledger_is_named(killed, damage: bytes) -> None:
    (killed / "working" / "ledger.txt").write_bytes(b"select 4\n" + damage)
    stored = read_run_folder(killed)
    assert stored.queries == {}
    assert stored.missing[-1].startswith("Queries: the ledger cannot be read (")


# -- folders without a run -------------------------------------------------------------------------


def test_only_a_folder_without_a_readable_card_is_refused(tmp_path, finished) -> None:
    with pytest.raises(RunError, match=r"holds no run .there is no run\.json"):
        read_run_folder(tmp_path)
    with pytest.raises(RunError, match=r"holds no run .there is no run\.json"):
        read_run_folder(tmp_path / "absent")
    (finished / "run.json").write_text("{")
    with pytest.raises(RunError, match=r"run\.json cannot be read"):
        read_run_folder(finished)
    (finished / "run.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(RunError, match=r"run\.json was written by another version"):
        read_run_folder(finished)


def test_an_image_name_too_long_for_a_table_is_stated(tmp_path, card) -> None:
    folder = save_run(tmp_path / "run", card())
    names = ["x" * (csv.field_size_limit() + 1), *NAMES[1:]]
    folder.write_predictions(names, BEFORE, AFTER)
    (sentence,) = read_run_folder(tmp_path / "run").missing
    assert sentence.startswith("Image names: predictions.csv cannot be read (Error: field larger")


def test_a_table_with_too_few_rows_is_stated(finished) -> None:
    path = finished / "predictions.csv"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    stored = read_run_folder(finished)
    assert stored.names == NAMES[:2]
    assert stored.missing == ["Image names: predictions.csv has 2 rows for 4 images."]


@pytest.mark.parametrize("content", [b"", b"image\na.png\n"])
def test_a_run_without_its_image_names_is_not_loaded(finished, content: bytes) -> None:
    (finished / "predictions.csv").write_bytes(content)
    with pytest.raises(RunError, match=r"is incomplete: Image names: predictions\.csv"):
        Run.load(finished)
