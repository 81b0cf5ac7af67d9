"""Saving and loading runs, above all interrupted ones."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest

from soda_tta import Run, adapt
from soda_tta.adaptors import Identity
from soda_tta.engine.run import mean_confidence
from soda_tta.errors import RunError

FAST = dict(method="soda", epochs=4, batch=16, width=4, lr=0.05)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def stopped_in_the_search(images, box) -> Run:
    calls = iter(range(100))
    return adapt(images, box, stop=lambda: next(calls) == 5, **FAST)


@pytest.fixture
def stopped_in_the_first_pass(images, box, monkeypatch) -> Run:
    monkeypatch.setattr("soda_tta.data.images.AT_ONCE_FLOATS", 3 * 64 * 20)  # 20 images per piece
    return adapt(images, box, stop=lambda: True, **FAST)


def read_predictions(folder) -> list[dict[str, str]]:
    with (folder / "predictions.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def strict_json(path) -> dict:
    """The file as JSON; NaN and infinity, which JSON does not have, fail the test."""
    return json.loads(path.read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize("name", ["stopped_in_the_search", "stopped_in_the_first_pass"])
def test_an_interrupted_run_loads_as_it_was_saved(request, tmp_path, name: str) -> None:
    run = request.getfixturevalue(name)
    assert run.save(tmp_path / "run") == tmp_path / "run"
    loaded = Run.load(tmp_path / "run")
    assert loaded.stopped == "interrupted"
    assert loaded.after is None
    np.testing.assert_array_equal(loaded.before, run.before)
    np.testing.assert_array_equal(loaded.probabilities, run.before)
    np.testing.assert_array_equal(loaded.adaptor.parameters, run.adaptor.parameters)
    assert type(loaded.adaptor) is type(run.adaptor)
    assert loaded.history == run.history
    assert loaded.ledger.queries == run.ledger.queries
    assert loaded.names == run.names
    assert loaded.card.facts() == run.card.facts()  # tuples of the settings are lists in both
    assert loaded.unreached == 0
    assert loaded.verdict is None
    assert strict_json(tmp_path / "run" / "run.json") == json.loads(json.dumps(loaded.summary()))
    assert repr(loaded) == repr(run)


def test_a_run_stopped_in_its_search_has_an_adaptor_and_no_new_answers(
    stopped_in_the_search, tmp_path
) -> None:
    run = stopped_in_the_search
    run.save(tmp_path / "run")
    facts = strict_json(tmp_path / "run" / "run.json")
    assert len(run.history) == 6
    assert not isinstance(run.adaptor, Identity)
    assert facts["changed_answers"] is None
    assert facts["mean_confidence"]["after"] is None
    assert facts["mean_confidence"]["before"] == pytest.approx(run.before.max(axis=1).mean())
    for row, best in zip(
        read_predictions(tmp_path / "run"), run.before.argmax(axis=1), strict=True
    ):
        assert row["before"] == str(best)
        assert not row["after"]


def test_a_run_stopped_in_its_first_pass_leaves_unanswered_images_empty(
    stopped_in_the_first_pass, tmp_path
) -> None:
    run = stopped_in_the_first_pass
    run.save(tmp_path / "run")
    rows = read_predictions(tmp_path / "run")
    assert len(rows) == 50
    assert all(row["before"] and row["before_confidence"] for row in rows[:20])
    assert not any(row["before"] or row["before_confidence"] for row in rows[20:])
    assert all(row["image"] for row in rows)
    facts = strict_json(tmp_path / "run" / "run.json")
    assert facts["queries"] == {"select": 20}
    assert facts["queries_per_image"] == 0.4
    answered = run.before[:20].max(axis=1).mean()
    assert facts["mean_confidence"] == {"before": pytest.approx(answered), "after": None}
    assert facts["box"]["classes"] == 4
    assert run.changed == 0


def test_the_mean_confidence_is_that_of_answered_images() -> None:
    rows = np.array([[0.75, 0.25], [np.nan, np.nan], [0.5, 0.5]])
    assert mean_confidence(rows) == 0.625
    assert mean_confidence(rows[1:2]) is None


def test_an_interrupted_run_is_replaced_when_it_is_resumed(images, box, tmp_path) -> None:
    out = tmp_path / "run"
    adapt(images, box, out=out, stop=lambda: True, **FAST)
    assert (out / "working").is_dir()
    assert Run.load(out).stopped == "interrupted"
    finished = adapt(images, box, out=out, resume=True, **FAST)
    assert not (out / "working").exists()
    loaded = Run.load(out)
    assert loaded.stopped == "finished"
    np.testing.assert_array_equal(loaded.after, finished.after)


def test_a_run_that_has_not_ended_or_is_incomplete_is_not_loaded(images, box, tmp_path) -> None:
    out = tmp_path / "run"
    run = adapt(images, box, out=out, **FAST)
    with pytest.raises(RunError, match="holds no run"):
        Run.load(tmp_path)
    (out / "answers.safetensors").unlink()
    with pytest.raises(RunError, match="is incomplete: Predictions"):
        Run.load(out)
    facts = {**run.card.facts(), "stopped": None}
    (out / "run.json").write_text(json.dumps(facts))
    with pytest.raises(RunError, match="has not ended; continue it with resume=True"):
        Run.load(out)


def test_a_missing_history_is_named(images, box, tmp_path) -> None:
    adapt(images, box, method="lame", out=tmp_path / "run")
    (tmp_path / "run" / "history.jsonl").unlink()
    with pytest.raises(RunError, match=r"incomplete: History: history\.jsonl cannot be read"):
        Run.load(tmp_path / "run")


def test_images_that_were_not_answered_have_no_class(images, box) -> None:
    run = adapt(images, box, method="lame")
    run.before[3] = np.nan
    run.after = None
    assert run.predictions[3] == -1 and (run.predictions[:3] >= 0).all()


def test_a_notebook_shows_verdict_before_and_after_and_queries(images, box) -> None:
    run = adapt(images, box, method="deployed")
    run.verdict = SimpleNamespace(sentence="Adopt: it helps.", facts=dict)
    run.notices = ["<script>alert(1)</script>"]
    html = run._repr_html_()
    for text in (
        "Adopt: it helps.",
        "mean confidence before",
        "50, 1.00 per image (select 50)",
        "0 of 50",
    ):
        assert text in html
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_a_notebook_shows_a_run_that_has_no_answers_yet(stopped_in_the_search) -> None:
    html = stopped_in_the_search._repr_html_()
    assert "this method gives none" in html
    assert html.count("not known yet") == 2  # answers changed, mean confidence after
