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
asked = 0
def logits(images):
    return -60 * ((images.mean(axis=(2, 3))[:, None] - CENTRES) ** 2).sum(axis=2)
def predict(images):
    e = np.exp(logits(images))
    return e / e.sum(axis=1, keepdims=True)
def labels(images):
    return np.eye(8)[logits(images).argmax(axis=1)]
def breaks(images):
    global asked
    asked += len(images)
    if asked > 300:
        raise RuntimeError("out of memory")
    return predict(images)
"""


def write(folder: Path, seed: int, contrast: float) -> None:
    folder.mkdir()
    generator = np.random.default_rng(seed)
    for number in range(240):
        colour = np.array(
            [(number >> bit & 1) * 0.4 + 0.3 for bit in (2, 1, 0)]
        ) + 0.06 * generator.standard_normal(3)
        pixels = 0.5 + contrast * (colour - 0.5 + 0.1 * generator.standard_normal((8, 8, 3)))
        Image.fromarray(np.rint(np.clip(pixels, 0, 1) * 255).astype(np.uint8)).save(
            folder / f"{number:03}.png"
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("doctor")
    (path / "model.py").write_text(MODEL)
    for name, seed, contrast in (("night", 0, 0.25), ("day", 1, 1.0), ("today", 2, 1.0)):
        write(path / name, seed, contrast)
    return path


def doctor(place: Path, function: str, images: str, *words: str) -> subprocess.CompletedProcess:
    command = [*SODA, "doctor", "--model", f"model.py:{function}", "--images", images, *words]
    return subprocess.run(
        command, cwd=place, capture_output=True, text=True, env={**os.environ}, check=False
    )


def test_a_shifted_folder_gets_a_go_and_a_command_that_works(place) -> None:
    done = doctor(place, "predict", "night", "--clean", "day", "--price", "1.5", "--json")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    found = json.loads(done.stdout)
    assert found["advice"] == "go" and found["total"] <= found["limit"] == 960
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
    } <= {finding["name"] for finding in found["findings"]}
    assert all(
        {"name", "state", "sentence", "numbers", "remedy"} == set(finding)
        for finding in found["findings"]
    )
    words = shlex.split(found["command"])
    assert words[:2] == ["soda-tta", "adapt"] and "--clean" not in words and "--json" not in words
    dry = subprocess.run(
        [*SODA, *words[1:], "--dry-run"], cwd=place, capture_output=True, text=True, check=False
    )
    assert dry.returncode == 0, dry.stderr


def test_the_page_in_the_terminal_says_what_was_spent_and_what_to_do(place) -> None:
    done = doctor(place, "predict", "night", "--price=1.5")
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert (
        "240 of 240 images" in done.stdout
        and "of at most 480 queries (select 240, probe" in done.stdout
    )
    assert (
        "\ngo: " in done.stdout
        and "soda-tta adapt --model model.py:predict --images night --method" in done.stdout
    )
    assert "at 1.5 a thousand" in done.stdout and not any(
        line.endswith(" ") for line in done.stdout.splitlines()
    )


def test_images_that_are_not_shifted_are_not_worth_it(place) -> None:
    done = doctor(place, "predict", "today", "--clean", "day")
    assert done.returncode == 3 and "leave: The images are not shifted" in done.stdout
    assert "soda-tta adapt" not in done.stdout


def test_a_model_that_only_names_a_class_may_be_tried_and_is_to_be_asked_for_more(place) -> None:
    done = doctor(place, "labels", "night")
    assert (
        done.returncode == 0
        and "try: " in done.stdout
        and "probabilities of all classes" in done.stdout
    )
    assert "nothing finer can be seen" in done.stdout and "at most about" in done.stdout


def test_a_model_that_breaks_leaves_what_is_known(place) -> None:
    done = doctor(place, "breaks", "night", "--json")
    found = json.loads(done.stdout)
    assert (
        done.returncode == 5 and found["advice"] == "unknown" and "out of memory" in found["failed"]
    )
    assert found["estimate"] and found["command"] is None
    text = doctor(place, "breaks", "night")
    assert text.returncode == 5 and "incomplete: " in text.stdout and "balance" in text.stdout


def test_forgotten_logits_are_told_with_the_option(place) -> None:
    done = doctor(place, "logits", "night")
    assert done.returncode == 4 and "--logits" in done.stdout
    assert doctor(place, "logits", "night", "--logits").returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--clean", "nowhere"], "nowhere"),
        (["--sample", "0"], "at least 1"),
        (["--price", "-1"], "no price"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_errors_are_one_line_with_a_remedy(place, words, says: str) -> None:
    done = doctor(place, "predict", "night", *words)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr


def test_it_explains_itself_and_its_exit_codes(place) -> None:
    done = subprocess.run(
        [*SODA, "doctor", "--help"], cwd=place, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "exit codes" in done.stdout
