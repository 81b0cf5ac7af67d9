"""`soda-tta doctor` as a user runs it."""

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soda_tta.cli import main

from .conftest import SODA, Done

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
        queries = 0  # the next examination starts afresh
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


Doctor = Callable[..., Done]


@pytest.fixture
def doctor(place: Path, monkeypatch, capsys) -> Doctor:
    """Examines images of `place` with a function of the model, in this process."""
    monkeypatch.chdir(place)

    def run(function: str, images: str, *words: str) -> Done:
        try:
            code = main(words_of(function, images, *words))
        except SystemExit as ended:  # argparse exits by itself
            code = int(ended.code or 0)
        return Done(code, *capsys.readouterr())

    return run


def words_of(function: str, images: str, *words: str) -> list[str]:
    """The command; the convention is as stated, see tests/conventions for the search."""
    model = ["--model", f"model.py:{function}", "--images", images, "--input", "stated"]
    return ["doctor", *model, *words]


def test_shifted_images_get_a_go_and_a_command_that_works(place, monkeypatch) -> None:
    words = words_of("predict", "night", "--clean", "day", "--price", "1.5", "--json")
    done = subprocess.run(  # the other tests do without a process of their own
        [*SODA, *words], cwd=place, capture_output=True, text=True, check=False
    )
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
    monkeypatch.chdir(place)
    assert main([*words[1:], "--dry-run"]) == 0


def test_the_text_shows_the_queries_and_the_next_command(doctor: Doctor) -> None:
    done = doctor("predict", "night", "--price=1.5")
    assert done.code == 0 and "\x1b" not in done.out
    assert done.out.startswith("go: ")  # the advice first, the details after it
    for text in (
        "240 of 240 images",
        "of at most 480 queries (select 240, probe",
        "\nIs adapting worth it?",
        "\nfor      trial",
        "\nok       digits",
        "soda-tta adapt --model model.py:predict --images night --method",
    ):
        assert text in done.out, text
    assert "at 1.5 per 1,000 queries" in " ".join(done.out.split())
    assert not any(line.endswith(" ") for line in done.out.splitlines())


def test_images_that_are_not_shifted_are_left_alone(doctor: Doctor) -> None:
    done = doctor("predict", "today", "--clean", "day")
    assert done.code == 3 and "leave: The images are not shifted" in done.out
    assert "soda-tta adapt" not in done.out


def test_a_model_that_returns_classes_only_may_be_tried(doctor: Doctor) -> None:
    done = doctor("labels", "night")
    text = " ".join(done.out.split())  # without line breaks
    assert done.code == 0 and "try: " in text
    assert "probabilities of all classes" in text and "the model returns nothing finer" in text
    assert "Not enough to estimate" in text or "At most" in text
    assert "(--clean DIR)" in text and "clean=" not in text


def test_a_failing_model_leaves_the_findings_so_far(doctor: Doctor) -> None:
    done = doctor("breaks", "night", "--json")
    facts = json.loads(done.out)
    assert done.code == 5 and facts["advice"] == "unknown"
    assert "out of memory" in facts["failure"]
    assert facts["command"] is None
    text = doctor("breaks", "night")
    assert text.code == 5 and "incomplete: " in text.out and "balance" in text.out


def test_logits_are_reported_with_the_option_to_use(doctor: Doctor) -> None:
    done = doctor("logits", "night")
    assert done.code == 4 and "--logits" in done.out
    assert doctor("logits", "night", "--logits").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--clean", "nowhere"], "nowhere"),
        (["--sample", "0"], "at least 1"),
        (["--price", "-1"], "price"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_errors_are_one_line_with_a_remedy(doctor, words, message: str) -> None:
    done = doctor("predict", "night", *words)
    assert done.code == 2 and message in done.err and "Traceback" not in done.err


def test_the_help_explains_the_exit_codes(capsys) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["doctor", "--help"])
    assert "exit codes" in capsys.readouterr().out
