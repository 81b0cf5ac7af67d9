"""Ctrl-C: a run stops after its step and continues with --resume as if nothing had happened."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from soda_tta.cli.interrupt import Interrupt

from .conftest import ADAPT, APPLY, SMALL, SODA, Soda, unique


def test_ctrl_c_stops_after_the_step_and_prints_how_to_continue(soda: Soda, place: Path) -> None:
    words = [*ADAPT, *SMALL, "--set", "epochs=60", "--out", "run"]
    whole = soda(*words[:-1], "whole")
    assert whole.code == 0, whole.err
    process = subprocess.Popen(
        [*SODA, *(word.format(model=unique("model", place)) for word in words)],
        cwd=place,
        env={**os.environ, "SLOW": "0.02"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for_lines(place / "run" / "working" / "lr-0.05" / "history.jsonl", 5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in out and "not known yet" in out
    (line,) = [line for line in out.splitlines() if line.startswith("continue with: ")]
    command = shlex.split(line.removeprefix("continue with: soda-tta "))
    assert command[-1] == "--resume"
    done = soda(*command)
    assert done.code == 0, done.err
    for name in ("adaptor.safetensors", "predictions.csv", "history.jsonl"):
        assert (place / "run" / name).read_bytes() == (place / "whole" / name).read_bytes()


def wait_for_lines(path: Path, count: int) -> None:
    """Wait until a file has more than so many lines."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().count("\n") > count:
            return
        time.sleep(0.01)


class StopAtOnce(Interrupt):
    """A user who pressed Ctrl-C before the first step."""

    def __call__(self) -> bool:
        return True


@pytest.mark.parametrize("method", ["soda", "soda-e", "soda-o"])
def test_a_run_stopped_in_its_first_pass_prints_json_and_continues(
    soda: Soda, place: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    words = [*ADAPT, "--method", method, "--request-size", "10", "--out", "run", "--json"]
    if method != "soda-e":
        words += shlex.split("--set epochs=1 --set width=4 --set batch=20")
    else:
        words += ["--budget", "20"]
    with monkeypatch.context() as stopped:
        stopped.setattr("soda_tta.cli.adapt.Interrupt", StopAtOnce)
        done = soda(*words)
    facts = json.loads(done.out)
    assert done.code == 130 and facts["stopped"] == "interrupted"
    assert facts["queries"] == {"select": 10}
    assert soda("report", "run").code == 0
    command = shlex.split(facts["continue_with"])
    assert command[0] == "soda-tta" and command[-1] == "--resume"
    done = soda(*command[1:])
    assert done.code == 0, done.err
    assert json.loads(done.out)["queries"]["select"] == 40


def test_a_person_reads_how_to_continue_a_run_stopped_in_its_first_pass(
    soda: Soda, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soda_tta.cli.adapt.Interrupt", StopAtOnce)
    done = soda(*ADAPT, *SMALL, "--request-size", "10", "--out", "run", "--labels", "labels.csv")
    assert done.code == 2  # no such file
    labels = "".join(f"{number:02}.png,0\n" for number in range(40))
    (place / "labels.csv").write_text("file,label\n" + labels)
    done = soda(*ADAPT, *SMALL, "--request-size", "10", "--out", "run", "--labels", "labels.csv")
    assert done.code == 130
    assert "Stopped during the first pass." in done.out and "nan" not in done.out.split()
    assert done.out.rstrip().endswith("--resume")


def test_apply_keeps_what_was_answered_before_ctrl_c(
    soda: Soda, model: Any, place: Path, finished_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*APPLY, "--request-size", "10", "--out", "a.csv"]
    with monkeypatch.context() as stopped:
        stopped.setattr("soda_tta.cli.apply.Interrupt", StopAtOnce)
        done = soda(*words)
    assert done.code == 130 and "What was answered so far is kept" in done.err
    assert soda(*words, "--resume").code == 0 and model.queries == 40


def test_the_second_signal_stops_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Interrupt() as interrupt:
        assert not interrupt()
        signal.raise_signal(signal.SIGTERM)
        assert interrupt()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err.count("stopping after this step") == 1
