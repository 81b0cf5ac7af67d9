"""The report command, the terminal output and shell completion, in separate processes."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from soda_tta import adapt
from soda_tta.cli import main
from soda_tta.cli.blocks import bar, histogram, sparkline

SODA = [sys.executable, "-c", "from soda_tta.cli import main; raise SystemExit(main())"]
SMALL = {"epochs": 3, "batch": 16, "width": 4, "lr": 0.05}
MODEL = """
import numpy as np
def predict(images):
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ np.random.default_rng(7).normal(size=(3, 4)))
    return e / e.sum(axis=1, keepdims=True)
"""


def soda(place: Path, *words: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*SODA, *words],
        cwd=place,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.fixture
def place(tmp_path, images, model) -> Path:
    """A folder with a run, its images and its labels."""
    np.save(tmp_path / "night.npy", images)
    run = adapt(images, model, method="soda", out=tmp_path / "run", **SMALL)
    labels = "".join(
        f"{name},{label}\n" for name, label in zip(run.names, model(images).argmax(1), strict=True)
    )
    (tmp_path / "labels.csv").write_text("file,label\n" + labels)
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


def test_the_report_is_written_into_the_run_directory(place) -> None:
    done = soda(place, "report", "run")
    assert done.returncode == 0 and done.stderr == ""
    assert "run/report.html" in done.stdout and "1,000 queries" in done.stdout
    assert "<svg" in (place / "run" / "report.html").read_text()


def test_json_contains_the_labels_images_and_price(place) -> None:
    words = [
        "--images",
        "night.npy",
        "--labels",
        "labels.csv",
        "--price",
        "2",
        "--out",
        "page.html",
        "--json",
    ]
    done = soda(place, "report", "run", *words)
    facts = json.loads(done.stdout)
    assert facts["page"] == "page.html" and facts["cost"] == pytest.approx(2.0)
    assert facts["accuracy"]["images"] == 50 and facts["accuracy"]["before"]["value"] == 1
    assert "<img" in (place / "page.html").read_text()


def test_several_runs_are_compared(place) -> None:
    shutil.copytree(place / "run", place / "other")
    done = soda(place, "report", "run", "other")
    assert done.returncode == 0 and "compared.html" in done.stdout
    assert "2 runs side by side" in (place / "compared.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "nowhere"], "run.json"),
        (["report", "run", "--labels", "model.py"], "model.py"),
        (["report", "run", "--images", "nowhere"], "does not exist"),
        (["report", "run", "--classes", "nowhere"], "cannot be read as class names"),
        (["report"], "required: RUN"),
        (["report", "run", "--price", "-3"], "price"),
        (["report", "run", "--out", "run"], "could not be written"),
        (["raport"], "invalid choice"),
    ],
)
def test_errors_are_one_line(place, monkeypatch, capsys, words: list[str], message: str) -> None:
    monkeypatch.chdir(place)
    try:
        code = main(words)
    except SystemExit as ended:  # argparse leaves by itself
        code = ended.code
    error = capsys.readouterr().err
    assert code == 2 and message in error
    assert error.count("\n") == 1 and error.startswith("soda-tta")


def test_an_internal_error_is_one_line_and_debug_shows_its_trace(
    place, monkeypatch, capsys
) -> None:
    facts = json.loads((place / "run" / "run.json").read_text())
    # this package never writes a number there
    (place / "run" / "run.json").write_text(json.dumps({**facts, "images": 7}))
    monkeypatch.chdir(place)
    assert main(["report", "run"]) == 70
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "--debug" in error
    for words in (["--debug", "report", "run"], ["report", "run", "--debug"]):
        with pytest.raises(AttributeError):
            main(words)


def in_terminal(command: list[str], place: Path, **environment: str) -> str:
    """The output of a command in a terminal of 100 columns."""
    process, end = pty.fork()
    if process == 0:
        os.chdir(place)
        os.environ.pop("NO_COLOR", None)
        os.environ.update({"TERM": "xterm-256color", "COLUMNS": "100", **environment})
        os.execvp(command[0], command)
    written = b""
    while True:
        try:
            piece = os.read(end, 65536)
        except OSError:  # on Linux, the other side has ended
            break
        if not piece:
            break
        written += piece
    os.close(end)
    os.waitpid(process, 0)
    return written.decode()


SHOW = "import sys; from soda_tta import Run; from soda_tta.cli.summary import print_summary; "
SHOW += "print_summary(Run.load('run'), images='night.npy', out='run', price=1.5)"


def test_the_summary_is_coloured_only_on_terminals_without_no_color(place) -> None:
    command = [sys.executable, "-c", SHOW]
    coloured = in_terminal(command, place)
    assert "\x1b[" in coloured and "█" in coloured
    assert "\x1b[33m" not in in_terminal(command, place, NO_COLOR="1")
    piped = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
    assert (
        "\x1b" not in piped
        and "1.50 in all at 1.5 a thousand" in piped
        and "estimated without labels" in piped
    )
    assert "soda-tta report run --images night.npy" in piped
    ascii_only = subprocess.run(
        command,
        cwd=place,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert b"###" in ascii_only.stdout


def test_a_run_is_displayed_live_on_a_terminal(place) -> None:
    words = [
        "adapt",
        "--method",
        "soda",
        "--model",
        "model.py:predict",
        "--images",
        "night.npy",
        "--out",
        "live",
    ]
    for name, value in {**SMALL, "epochs": 60}.items():
        words += ["--set", f"{name}={value}"]
    shown = in_terminal([*SODA, *words], place)
    assert (
        "learning" in shown
        and "queries" in shown
        and "mutual information" in shown
        and "epoch" in shown
    )
    assert (place / "live" / "run.json").exists()


def test_text_charts() -> None:
    assert sparkline([], 5) == "" and sparkline([3.0], 5) == "▄" and sparkline([0, 0], 5) == "▄▄"
    assert sparkline(range(100), 8) == "▁▂▃▄▅▆▇█" and sparkline([0, 1], 5, "ascii") == ".#"
    assert bar(0, 4) == "░░░░" and bar(1.7, 4) == "████" and bar(0.5, 4, None) == "##.."
    assert histogram([0.0, 1.0, 1.0], 4) == "▄  █" and histogram([], 3) == "   "


def typed(shell: list[str], script: str, keys: str) -> str:
    """The output after typing `keys` into an interactive shell that has sourced `script`."""
    process, end = pty.fork()
    if process == 0:
        os.environ.update({"TERM": "dumb", "PS1": "$ "})
        os.execvp(shell[0], shell)

    def until_quiet(seconds: float) -> str:
        written, deadline = b"", time.monotonic() + 10
        while time.monotonic() < deadline and select.select([end], [], [], seconds)[0]:
            try:
                written += os.read(end, 65536)
            except OSError:
                break
        return written.decode(errors="replace")

    until_quiet(1.0)
    os.write(end, f"source {script}; echo re''ady\n".encode())
    said, deadline = "", time.monotonic() + 20
    while "ready" not in said and time.monotonic() < deadline:
        said += until_quiet(0.3)
    for key in keys.split("\t"):
        os.write(end, f"{key}\t".encode())
        said = until_quiet(1.0)
    os.write(end, b"\x15exit\n")
    os.close(end)
    os.waitpid(process, 0)
    return said


@pytest.mark.parametrize("shell", [["bash", "--norc", "-i"], ["zsh", "-f", "-i"]])
def test_bash_and_zsh_complete(tmp_path, shell: list[str]) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    script = tmp_path / "script"
    script.write_text(soda(tmp_path, "completion", shell[0]).stdout)
    assert "table" in typed(shell, str(script), "soda-tta bench ta")
    assert "--format" in typed(shell, str(script), "soda-tta bench table --fo")
    assert "latex" in typed(shell, str(script), "soda-tta bench table --format l")
    (tmp_path / "page").mkdir()
    assert typed(shell, str(script), f"soda-tta report {tmp_path}/pa").endswith("/page/")


def test_fish_completes(tmp_path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = tmp_path / "script.fish"
    script.write_text(soda(tmp_path, "completion", "fish").stdout)
    for line, expected in (
        ("soda-tta exp", "export"),
        ("soda-tta bench table --format l", "latex"),
    ):
        done = subprocess.run(
            ["fish", "-c", f"source {script}; complete -C '{line}'"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert expected in done.stdout
