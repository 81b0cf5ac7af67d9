"""The command as a user runs it, in its own process."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

SODA = [sys.executable, "-c", "from soda_tta.cli import main; raise SystemExit(main())"]
MODEL = """
import time, os
import numpy as np
weights = np.random.default_rng(7).normal(size=(3, 4))
def predict(images):
    time.sleep(float(os.environ.get("SLOW", 0)))
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
def logits(images):
    return 8 * (images.mean(axis=(2, 3)) - 0.5) @ weights
"""


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "model.py").write_text(MODEL)
    folder = tmp_path / "night"
    folder.mkdir()
    for number in range(40):
        pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
    return tmp_path


def soda(place: Path, *words: str, **environment: str) -> subprocess.CompletedProcess:
    command = [*SODA, *words]
    return subprocess.run(
        command,
        cwd=place,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


ADAPT = ["adapt", "--model", "model.py:predict", "--images", "night"]
SMALL = [
    "--method",
    "soda",
    "--set",
    "epochs=2",
    "--set",
    "batch=16",
    "--set",
    "width=4",
    "--set",
    "lr=0.05",
]


def test_adapt_apply_export_from_end_to_end(place) -> None:
    done = soda(place, *ADAPT, *SMALL, "--out", "run", "--price", "2")
    assert done.returncode == 0, done.stderr
    assert (
        "560 (select 40, probe 480, evaluate 40)" in done.stdout
        and "1.12 in all at 2 a thousand" in done.stdout
    )
    assert {"run.json", "history.jsonl", "predictions.csv", "adaptor.safetensors"} <= set(
        os.listdir(place / "run")
    )
    applied = soda(
        place,
        "apply",
        "--adaptor",
        "run",
        "--model",
        "model.py:predict",
        "--images",
        "night",
        "--out",
        "a.csv",
    )
    assert applied.returncode == 0 and "40 queries" in applied.stderr
    after = [
        line.split(",")[3]
        for line in (place / "run" / "predictions.csv").read_text().splitlines()[1:]
    ]
    assert [line.split(",")[1] for line in (place / "a.csv").read_text().splitlines()[1:]] == after
    exported = soda(place, "export", "run", "night.onnx", "--json")
    assert (
        json.loads(exported.stdout)["largest_deviation"] <= 1e-5 and (place / "night.onnx").exists()
    )
    saved = soda(place, "apply", "--adaptor", "run", "--images", "night", "--save-images", "day")
    assert saved.returncode == 0 and len(list((place / "day").glob("*.png"))) == 40


def test_what_the_model_was_told_need_not_be_told_again(place) -> None:
    (place / "logits.py").write_text(
        "import numpy as np\nfrom model import predict as answers\n"
        "def predict(images):\n    return np.log(answers(images * 0.25 + 0.5) + 1e-9)\n"
        "def other(images):\n    return predict(images)\n"
    )
    told = ["--logits", "--mean", "0.5", "--std", "0.25"]
    adapt = ["adapt", "--model", "logits.py:predict", "--images", "night", *SMALL, "--out", "run"]
    assert soda(place, *adapt, *told).returncode == 0
    after = [
        line.split(",")[3]
        for line in (place / "run" / "predictions.csv").read_text().splitlines()[1:]
    ]
    apply = [
        "apply",
        "--adaptor",
        "run",
        "--images",
        "night",
        "--out",
        "a.csv",
        "--force",
        "--model",
    ]
    apply[2] = "run/adaptor.safetensors"  # the run around it is found
    for model, says in (
        ("logits.py:predict", ""),
        ("logits.py:other", "not the model the adaptor was learnt for"),
    ):
        applied = soda(place, *apply, model)
        assert (
            applied.returncode == 0
            and says in applied.stderr
            and ("not the model" in applied.stderr) == bool(says)
        )
        assert [
            line.split(",")[1] for line in (place / "a.csv").read_text().splitlines()[1:]
        ] == after


def test_json_prints_one_object_and_nothing_else(place) -> None:
    done = soda(place, *ADAPT, *SMALL, "--out", "run", "--json")
    summary = json.loads(done.stdout)
    assert (
        summary["queries"] == {"select": 40, "probe": 480, "evaluate": 40}
        and summary["stopped"] == "finished"
    )
    assert done.stderr == ""
    answers = json.loads(
        soda(
            place,
            "apply",
            "--adaptor",
            "run",
            "--model",
            "model.py:predict",
            "--images",
            "night",
            "--json",
        ).stdout
    )
    assert answers["queries"] == 40 and answers["answers"][0]["image"] == "00.png"


def test_a_dry_run_says_the_cost_and_spends_nothing(place) -> None:
    paper = [*ADAPT, "--method", "soda", "--dry-run"]
    done = soda(place, *paper, "--price", "1.5", "--json", SLOW="60")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["total"] == 40 * 902 and plan["money"] == pytest.approx(40 * 902 / 1000 * 1.5)
    text = soda(place, *paper, "--budget", "10", SLOW="60").stdout
    assert "nothing was asked" in text and "1 of 150" in text
    left = [
        path.name for path in Path(place).iterdir() if path.name != "__pycache__"
    ]  # Python's own
    assert sorted(left) == ["model.py", "night"]


def test_the_default_is_soda_e_and_says_what_a_budget_buys(place) -> None:
    plan = json.loads(
        soda(place, *ADAPT, "--dry-run", "--budget", "60", "--json", SLOW="60").stdout
    )
    assert plan["method"] == "soda-e" and plan["total"] <= plan["limit"] == 60 * 40
    assert plan["queries"]["judge"] == 20 and plan["queries"]["probe"] > 1000
    done = soda(place, *ADAPT, "--budget", "60", "--out", "run", "--json")
    summary = json.loads(done.stdout)
    assert summary["method"] == "soda-e" and sum(summary["queries"].values()) <= 60 * 40
    assert summary["reason"].endswith(".") and done.stderr == ""
    little = json.loads(soda(place, *ADAPT, "--budget", "3", "--out", "little", "--json").stdout)
    assert little["queries"] == {"select": 40} and "too little" in little["reason"]


def test_methods_lists_needs_and_costs(place) -> None:
    text = soda(place, "methods").stdout
    assert "soda-auto" in text and "902" in text
    assert {"deployed", "soda"} <= {
        row["name"] for row in json.loads(soda(place, "methods", "--json").stdout)
    }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([*ADAPT, "--out", "r", "--set", "qq=3"], "has no number 'qq'"),
        ([*ADAPT, "--out", "r", "--set", "q"], "NAME=VALUE"),
        ([*ADAPT, "--out", "r", "--method", "sodda"], "choose one of"),
        ([*ADAPT, "--out", "r", "--budget", "0.5"], "at least 1"),
        ([*ADAPT], "--out RUN"),
        (["adapt", "--model", "model.py:logits", "--images", "night", "--out", "r"], "--logits"),
        (
            ["adapt", "--model", "model.py:nothing", "--images", "night", "--out", "r"],
            "no function",
        ),
        (
            ["adapt", "--model", "weights.pth", "--images", "night", "--out", "r"],
            "export the model to ONNX",
        ),
        (["adapt", "--model", "none.onnx", "--images", "night", "--out", "r"], "does not exist"),
        (
            ["adapt", "--model", "model.py:predict", "--images", "nowhere", "--out", "r"],
            "does not exist",
        ),
        (
            ["apply", "--adaptor", "model.py", "--images", "night", "--save-images", "x"],
            "not an adaptor",
        ),
        (["export", "nowhere", "x.onnx"], "does not exist"),
    ],
)
def test_errors_are_one_line_with_a_remedy(place, words, says: str) -> None:
    done = soda(place, *words)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr


def test_a_forgotten_option_can_be_added_and_the_command_run_again(place) -> None:
    words = ["adapt", "--model", "model.py:logits", "--images", "night", *SMALL, "--out", "r"]
    failed = soda(place, *words)
    assert (
        failed.returncode == 2 and "--logits" in failed.stderr and "--resume" not in failed.stderr
    )
    assert soda(place, *words, "--logits").returncode == 0


def test_a_dry_run_looks_at_the_model(place) -> None:
    done = soda(place, "adapt", "--model", "none.onnx", "--images", "night", "--dry-run")
    assert done.returncode == 2 and "does not exist" in done.stderr


def test_logits_are_taken_when_stated(place) -> None:
    done = soda(
        place,
        "adapt",
        "--model",
        "model.py:logits",
        "--logits",
        "--images",
        "night",
        *SMALL,
        "--out",
        "r",
        "--json",
    )
    assert done.returncode == 0, done.stderr


def test_debug_shows_the_trace(place) -> None:
    assert "Traceback" in soda(place, "--debug", *ADAPT, "--out", "r", "--set", "qq=3").stderr


def test_every_command_explains_itself(place) -> None:
    for command in ([], ["adapt"], ["apply"], ["demo"], ["export"], ["methods"]):
        done = soda(place, *command, "--help")
        assert done.returncode == 0 and "usage: soda-tta" in done.stdout


def test_ctrl_c_stops_after_the_step_and_says_how_to_resume(place) -> None:
    words = [*ADAPT, *SMALL, "--set", "epochs=60", "--out", "run"]
    whole = soda(place, *words[:-1], "whole")
    process = subprocess.Popen(
        [*SODA, *words],
        cwd=place,
        env={**os.environ, "SLOW": "0.02"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = place / "run" / "working" / "lr-0.05" / "history.jsonl"
    deadline = time.monotonic() + 60
    while (
        not (journal.exists() and journal.read_text().count("\n") > 5)
        and time.monotonic() < deadline
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in out and "not known yet" in out
    (resume,) = [line for line in out.splitlines() if line.startswith("continue with: ")]
    assert resume.endswith("--resume")
    done = soda(place, *resume.removeprefix("continue with: soda-tta ").split())
    assert done.returncode == 0 and whole.returncode == 0
    for name in ("adaptor.safetensors", "predictions.csv", "history.jsonl"):
        assert (place / "run" / name).read_bytes() == (place / "whole" / name).read_bytes()


def test_python_runs_the_package_as_the_command() -> None:
    command = [sys.executable, "-m", "soda_tta", "methods", "soda"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "directions (q)" in told and "of 10,000 images, without a budget" in told
