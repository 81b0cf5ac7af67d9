"""The terminal: colours, a live display, and charts made of characters."""

import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from soda_tta.cli.display import Display
from soda_tta.display.blocks import bar, histogram, sparkline
from soda_tta.engine.events import Waiting

from .conftest import ADAPT, SODA, unique

SUMMARY = (
    "from soda_tta import Run; from soda_tta.cli.summary import print_summary; "
    "print_summary(Run.load('run'), images='night', out='run', price=1.5)"
)


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


def test_the_summary_is_coloured_only_on_terminals_without_no_color(
    place: Path, finished_run: None
) -> None:
    command = [sys.executable, "-c", SUMMARY]
    coloured = in_terminal(command, place)
    assert "\x1b[" in coloured and "█" in coloured
    assert "\x1b[33m" not in in_terminal(command, place, NO_COLOR="1")
    piped = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
    assert "\x1b" not in piped
    assert "0.84 in total at 1.5 per 1,000 queries" in piped
    assert "estimated without labels" in piped
    assert "soda-tta report run --images night" in piped
    ascii_only = subprocess.run(
        command,
        cwd=place,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert b"not enough to estimate" in ascii_only.stdout


def test_a_run_is_displayed_live_on_a_terminal(place: Path) -> None:
    words = [word.format(model=unique("model", place)) for word in ADAPT]
    words += shlex.split("--method soda --set epochs=60 --set batch=16 --set width=4 --out live")
    shown = in_terminal([*SODA, *words], place)
    for text in ("learning", "queries", "mutual information", "epoch"):
        assert text in shown
    assert (place / "live" / "run.json").exists()


@pytest.mark.parametrize(
    ("values", "width", "encoding", "expected"),
    [
        ([], 5, "utf-8", ""),
        ([3.0], 5, "utf-8", "▄"),
        ([0, 0], 5, "utf-8", "▄▄"),
        (range(100), 8, "utf-8", "▁▂▃▄▅▆▇█"),
        ([0, 1], 5, "ascii", ".#"),
    ],
)
def test_a_sparkline_is_as_high_as_the_values(values, width, encoding, expected: str) -> None:
    assert sparkline(values, width, encoding) == expected


def test_a_bar_is_a_share_of_its_width() -> None:
    assert bar(0, 4) == "░░░░"
    assert bar(1.7, 4) == "████"
    assert bar(0.5, 4, None) == "##.."


def test_a_histogram_leaves_empty_bins_empty() -> None:
    assert histogram([0.0, 1.0, 1.0], 4) == "▄  █"
    assert histogram([], 3) == "   "


def test_a_wait_is_displayed_with_its_reason() -> None:
    display = Display(quiet=True)
    display(Waiting(7.0, "http://host answered 429: slow down"))
    assert display.below == "waiting 7 s: http://host answered 429: slow down"
