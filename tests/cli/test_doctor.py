"""`soda-tta doctor` as a user runs it, in its own process."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

SODA = [sys.executable, "-c", "from soda_tta.cli import main; raise SystemExit(main())"]
MODEL = """
import numpy as np
CENTRES = np.array([[x, y, z] for x in (0.3, 0.7) for y in (0.3, 0.7) for z in (0.3, 0.7)])
queries = 0
def logits(images):
    return -60 * ((images.mean(axis=(2, 3))[:, None] - CENTRES) ** 2).sum(axis=2)
def predict(images):
    e = np.exp(logits(images))
    return e / e.sum(axis=1, keepdims=True)
def labels(images):
    return np.eye(8)[logits(images).argmax(axis=1)]
def breaks(images):
    global queries
    queries += len(images)
    if queries > 300:
        raise RuntimeError("out of memory")
    return predict(images)
"""


def write_images(folder: Path, seed: int, contrast: float) -> None:
    """240 images of eight colours, with noise and a contrast."""
    folder.mkdir()
    generator = np.random.default_rng(seed)
    for number in range(240):
        centre = np.array([(number >> bit & 1) * 0.4 + 0.3 for bit in (2, 1, 0)])
        colour = centre + 0.06 * generator.standard_normal(3)
        pixels = 0.5 + contrast * (colour - 0.5 + 0.1 * generator.standard_normal((8, 8, 3)))
        values = np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)
        Image.fromarray(values).save(folder / f"{number:03}.png")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("doctor")
    (path / "model.py").write_text(MODEL)
    for name, seed, contrast in (("night", 0, 0.25), ("day", 1, 1.0), ("today", 2, 1.0)):
        write_images(path / name, seed, contrast)
    return path


def doctor(place: Path, function: str, images: str, *words: str) -> subprocess.CompletedProcess:
    """The command; the convention is as stated, see tests/conventions for the search."""
    model = ["--model", f"model.py:{function}", "--images", images, "--input", "stated"]
    command = [*SODA, "doctor", *model, *words]
    return subprocess.run(
        command, cwd=place, capture_output=True, text=True, env={**os.environ}, check=False
    )


def test_shifted_images_get_a_go_and_a_command_that_works(place) -> None:
    done = doctor(place, "predict", "night", "--clean", "day", "--price", "1.5", "--json")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    facts = json.loads(done.stdout)
    assert facts["advice"] == "go" and facts["total_queries"] <= facts["query_limit"] == 960
    assert {
        "sum",
        "digits",
        "completeness",
        "saturation",
        "shift",
        "balance",
        "trial",
        "rounding",
        "cost",
    } <= {finding["name"] for finding in facts["findings"]}
    keys = {"name", "state", "sentence", "measurements", "remedy"}
    assert all(set(finding) == keys for finding in facts["findings"])
    words = shlex.split(facts["command"])
    assert words[:2] == ["soda-tta", "adapt"] and "--clean" not in words and "--json" not in words
    dry = subprocess.run(
        [*SODA, *words[1:], "--dry-run"], cwd=place, capture_output=True, text=True, check=False
    )
    assert dry.returncode == 0, dry.stderr


def test_the_text_shows_the_queries_and_the_next_command(place) -> None:
    done = doctor(place, "predict", "night", "--price=1.5")
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert done.stdout.startswith("go: ")  # the advice first, the details after it
    for text in (
        "240 of 240 images",
        "of at most 480 queries (select 240, probe",
        "\nIs adapting worth it?",
        "\nfor      trial",
        "\nok       digits",
        "soda-tta adapt --model model.py:predict --images night --method",
    ):
        assert text in done.stdout, text
    assert "at 1.5 per 1,000 queries" in " ".join(done.stdout.split())
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_images_that_are_not_shifted_are_left_alone(place) -> None:
    done = doctor(place, "predict", "today", "--clean", "day")
    assert done.returncode == 3 and "leave: The images are not shifted" in done.stdout
    assert "soda-tta adapt" not in done.stdout


def test_a_model_that_returns_classes_only_may_be_tried(place) -> None:
    done = doctor(place, "labels", "night")
    text = " ".join(done.stdout.split())  # without line breaks
    assert done.returncode == 0 and "try: " in text
    assert "probabilities of all classes" in text and "the model returns nothing finer" in text
    assert "Not enough to estimate" in text or "At most" in text
    assert "(--clean DIR)" in text and "clean=" not in text


def test_a_failing_model_leaves_the_findings_so_far(place) -> None:
    done = doctor(place, "breaks", "night", "--json")
    facts = json.loads(done.stdout)
    assert done.returncode == 5 and facts["advice"] == "unknown"
    assert "out of memory" in facts["failure"]
    assert facts["command"] is None
    text = doctor(place, "breaks", "night")
    assert text.returncode == 5 and "incomplete: " in text.stdout and "balance" in text.stdout


def test_logits_are_reported_with_the_option_to_use(place) -> None:
    done = doctor(place, "logits", "night")
    assert done.returncode == 4 and "--logits" in done.stdout
    assert doctor(place, "logits", "night", "--logits").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--clean", "nowhere"], "nowhere"),
        (["--sample", "0"], "at least 1"),
        (["--price", "-1"], "price"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_errors_are_one_line_with_a_remedy(place, words, message: str) -> None:
    done = doctor(place, "predict", "night", *words)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_the_help_explains_the_exit_codes(place) -> None:
    done = subprocess.run(
        [*SODA, "doctor", "--help"], cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "exit codes" in done.stdout
