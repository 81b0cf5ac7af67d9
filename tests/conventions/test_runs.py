"""Runs and examinations that find the convention first."""

import json

import numpy as np
import pytest

from soda_tta import adapt, examine, load_box
from soda_tta.cli import main
from soda_tta.engine.run import Run
from soda_tta.errors import BoxError, BudgetError, RunError

from .conftest import Classifier, photographs

IMAGES = photographs(200)
QUIET = {"listener": lambda event: None}


def auto(model: Classifier):
    return load_box(model, input="auto", layout="NCHW")


def test_a_run_finds_the_convention_within_its_budget(tmp_path) -> None:
    model = Classifier("Caffe", "BGR")
    told = []
    run = adapt(
        IMAGES, auto(model), method="deployed", budget=8, out=tmp_path / "run", listener=told.append
    )
    spent = run.ledger.by_purpose()
    assert spent["convention"] > 0 and sum(spent.values()) == model.queries <= 8 * len(IMAGES)
    assert run.card.convention["sure"] and run.card.box["input"]["channels"] == "BGR"
    assert any("Input convention" in getattr(event, "text", "") for event in told)
    again = Run.load(tmp_path / "run")
    assert again.card.convention == run.card.convention
    before = model.queries
    adapt(
        IMAGES, auto(model), method="deployed", budget=8, out=tmp_path / "run", resume=True, **QUIET
    )
    assert model.queries == before  # a finished run needs no query


def test_a_run_without_a_folder_counts_the_same() -> None:
    model = Classifier()
    run = adapt(IMAGES, auto(model), method="deployed", **QUIET)
    assert sum(run.ledger.by_purpose().values()) == model.queries


@pytest.mark.parametrize("after", [3, 200, 500])
def test_a_kill_during_the_search_loses_no_response(tmp_path, after: int) -> None:
    killed = Classifier("ImageNet", "BGR")
    killed.killed_after = after
    settings = {"method": "deployed", "out": tmp_path / "run", **QUIET}
    with pytest.raises(KeyboardInterrupt):
        adapt(IMAGES, auto(killed), **settings)
    model = Classifier("ImageNet", "BGR")
    run = adapt(IMAGES, auto(model), **settings)
    unbroken = Classifier("ImageNet", "BGR")
    adapt(IMAGES, auto(unbroken), method="deployed", **QUIET)
    assert killed.queries + model.queries == unbroken.queries
    assert run.card.convention["facts"]["channels"] == "BGR"


def test_another_run_cannot_continue_a_search_that_was_killed(tmp_path) -> None:
    killed = Classifier()
    killed.killed_after = 100
    settings = {"method": "deployed", "out": tmp_path / "run", **QUIET}
    with pytest.raises(KeyboardInterrupt):
        adapt(IMAGES, auto(killed), **settings)
    model = Classifier()
    with pytest.raises(RunError, match="another run was begun"):
        adapt(photographs(200, seed=1), auto(model), **settings)
    assert not model.queries


def test_a_run_does_not_go_on_with_a_guess(tmp_path) -> None:
    random = np.random.default_rng(0)

    def model(pixels: np.ndarray) -> np.ndarray:
        return random.dirichlet(np.ones(8), len(pixels))

    with pytest.raises(BoxError, match="the input convention is not clear"):
        adapt(IMAGES, auto(model), method="deployed", out=tmp_path / "run", **QUIET)
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_budget_that_does_not_cover_the_search_is_refused_before_any_query() -> None:
    model = Classifier()
    with pytest.raises(BudgetError, match=r"1,000 for the input convention\); give at least 6"):
        adapt(IMAGES, auto(model), budget=5, **QUIET)
    assert not model.queries


def test_the_doctor_examines_with_what_it_found() -> None:
    model = Classifier("-1 to 1", "BGR")
    examination = examine(IMAGES, auto(model))
    assert examination["input"].state == "good" and "--channels BGR" in examination["input"].remedy
    assert examination.convention["sure"]
    assert examination.total_queries == model.queries <= examination.query_limit == 1400


def test_the_doctor_checks_what_is_stated() -> None:
    wrong = examine(IMAGES, load_box(Classifier("-1 to 1")), check_input=True)
    assert wrong.advice == "fix" and wrong["input"].state == "bad"
    assert "surely better" in wrong["input"].sentence and "nats" in wrong["input"].sentence
    right = examine(IMAGES, load_box(Classifier("-1 to 1"), mean=0.5, std=0.5), check_input=True)
    assert right["input"].state == "good"
    upright = examine(IMAGES, load_box(Classifier(), turn=180), check_input=True)
    assert upright["input"].remedy == "Leave out --turn."
    twice = examine(IMAGES, load_box(Classifier(), logits=True))
    assert twice.advice == "fix" and twice["logits"].remedy == "Leave out logits=True."
    few = examine(IMAGES[:15], auto(Classifier()))
    assert "too few" in few["input"].sentence


MODEL = """
from tests.conventions.conftest import Classifier
predict = Classifier("Caffe", "BGR")
"""


def test_the_command_line_finds_it_and_prints_what_to_write_down(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    np.save("photos.npy", np.rint(IMAGES * 255).astype(np.uint8))
    words = ["--model", "model.py:predict", "--images", "photos.npy"]
    main(["doctor", *words, "--json"])
    facts = json.loads(capsys.readouterr().out)
    flags = facts["convention"]["options"]
    assert {"--channels", "BGR", "--mean", "103.939,116.779,123.68"} <= set(flags)
    assert facts["command"] is None or "--channels BGR" in facts["command"]
    assert main(["doctor", *words, "--json", "--input", "stated"]) >= 0
    assert json.loads(capsys.readouterr().out)["convention"] is None
    main(["adapt", *words, "--input", "auto", "--dry-run"])
    assert "convention 1,000" in capsys.readouterr().out
