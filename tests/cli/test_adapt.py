"""`soda-tta adapt`: what it writes, prints, costs and refuses."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from .conftest import ADAPT, MODEL, SMALL, Soda, in_process


def test_a_run_is_written_and_summarised_in_a_separate_process(place: Path) -> None:
    done = in_process(place, *ADAPT, *SMALL, "--out", "run", "--price", "2")
    assert done.returncode == 0, done.stderr
    assert "560 (select 40, probe 480, evaluate 40)" in done.stdout
    assert "1.12 in total at 2 per 1,000 queries" in done.stdout
    written = {"run.json", "history.jsonl", "predictions.csv", "adaptor.safetensors"}
    assert written <= set(os.listdir(place / "run"))


def test_json_prints_one_object_and_nothing_else(soda: Soda) -> None:
    done = soda(*ADAPT, *SMALL, "--out", "run", "--json")
    summary = json.loads(done.out)
    assert summary["queries"] == {"select": 40, "probe": 480, "evaluate": 40}
    assert summary["stopped"] == "finished" and summary["out"] == "run"
    assert done.err == ""


def test_a_dry_run_prints_the_cost_and_sends_no_query(soda: Soda, model: Any, place: Path) -> None:
    paper = [*ADAPT, "--method", "soda", "--dry-run"]
    files = sorted(place.rglob("*"))
    done = soda(*paper, "--price", "1.5", "--json")
    assert done.code == 0, done.err
    plan = json.loads(done.out)
    assert plan["total"] == 40 * 902
    assert plan["cost"] == pytest.approx(40 * 902 / 1000 * 1.5)
    text = soda(*paper, "--budget", "10").out
    assert "none was sent" in text and "1 of 150" in text
    assert model.queries == 0
    assert sorted(place.rglob("*")) == files


def test_prices_per_call_and_per_hour(soda: Soda) -> None:
    dry = [*ADAPT, "--request-size", "5", "--dry-run", "--method", "deployed"]
    per_call = json.loads(soda(*dry, "--price", "0.5 per call", "--json").out)
    assert (per_call["price"], per_call["cost"]) == ("0.5 per call", 4)  # 40 images, 5 at a time
    per_hour = json.loads(soda(*dry, "--price", "2 per hour", "--json").out)
    assert per_hour["cost"] is None
    assert "the time it takes cannot be known before" in soda(*dry, "--price", "2/hour").out
    run = [*ADAPT, "--request-size", "5", "--method", "deployed", "--json"]
    facts = json.loads(soda(*run, "--out", "calls", "--price", "0.5 per call").out)
    assert (facts["calls"], facts["cost"]) == (8, 4)
    facts = json.loads(soda(*run, "--out", "hours", "--price", "3600 per hour").out)
    assert facts["cost"] == pytest.approx(facts["seconds"], abs=0.001)
    report = soda("report", "calls", "--price", "0.5 per call", "--out", "page.html", "--json")
    assert json.loads(report.out)["cost"] == 4


def test_soda_e_is_the_default_and_states_what_a_budget_buys(soda: Soda) -> None:
    plan = json.loads(soda(*ADAPT, "--dry-run", "--budget", "60", "--json").out)
    assert plan["method"] == "soda-e" and plan["total"] <= plan["limit"] == 60 * 40
    assert plan["queries"]["judge"] == 32 and plan["queries"]["probe"] > 1000
    done = soda(*ADAPT, "--budget", "60", "--out", "run", "--json")
    summary = json.loads(done.out)
    assert summary["method"] == "soda-e" and sum(summary["queries"].values()) <= 60 * 40
    assert summary["reason"].endswith(".") and done.err == ""
    little = json.loads(soda(*ADAPT, "--budget", "3", "--out", "little", "--json").out)
    assert little["queries"] == {"select": 40} and "too few" in little["reason"]


@pytest.mark.parametrize("option", ["--group-by", "--condition-by"])
def test_a_dry_run_refuses_a_rule_that_the_run_would_refuse(soda: Soda, option: str) -> None:
    done = soda(*ADAPT, "--dry-run", option, "name:nothing")
    assert done.code == 2 and "matches none of the 40 images" in done.err


def test_a_dry_run_loads_the_model(soda: Soda) -> None:
    done = soda("adapt", "--model", "none.onnx", "--images", "night", "--dry-run")
    assert done.code == 2 and "does not exist" in done.err


def test_logits_are_accepted_with_the_option(soda: Soda) -> None:
    words = ["adapt", "--model", "{model}:logits", "--images", "night", *SMALL, "--out", "r"]
    failed = soda(*words)
    assert failed.code == 2
    assert "--logits" in failed.err and "--resume" not in failed.err
    assert soda(*words, "--logits").code == 0  # nothing of the failed run is in the way


@pytest.mark.parametrize(
    ("text", "code"),
    [("8", 0), ("8x6", 0), ("8x", 2), ("x8", 2), ("8x6x4", 2), ("0", 2), ("8x-6", 2)],
)
def test_a_size_is_one_positive_number_or_two(soda: Soda, text: str, code: int) -> None:
    done = soda(*ADAPT, "--dry-run", "--size", text)
    assert done.code == code
    assert ("is not a size; write 224" in done.err) == (code == 2)


def test_a_missing_run_is_not_resumed(soda: Soda, model: Any, place: Path) -> None:
    done = soda(*ADAPT, *SMALL, "--out", "typo", "--resume")
    assert done.code == 2 and "no run in typo" in done.err
    assert model.queries == 0 and not (place / "typo").exists()


def test_a_folder_that_holds_a_run_names_resume(soda: Soda, finished_run: None) -> None:
    done = soda(*ADAPT, *SMALL, "--out", "run")
    assert done.code == 2
    assert "already holds a run; continue it with --resume, or choose another --out." in done.err


def test_a_model_whose_file_was_edited_is_another_model(soda: Soda, place: Path) -> None:
    source = "SCALE = 1.0\n" + MODEL.replace("np.exp(8 * (", "np.exp(SCALE * 8 * (")
    (place / "scaled.py").write_text(source)
    adapt = ["adapt", "--model", "scaled.py:predict", "--images", "night", *SMALL, "--out", "run"]
    assert soda(*adapt).code == 0
    # the function itself stays the same
    (place / "scaled.py").write_text(source.replace("SCALE = 1.0", "SCALE = -1.0"))
    done = soda(*adapt, "--resume")
    assert done.code == 2 and "another run" in done.err and "another --out" in done.err
    apply = shlex.split("apply --adaptor run --images night --model scaled.py:predict --out a.csv")
    assert "not the model the adaptor was learned for" in soda(*apply).err
