"""Simulated traffic: schedules, what is sent when, and what was measured."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta.cli import main
from soda_tta.data import open_images
from soda_tta.errors import SodaError
from soda_tta.report.simulation_page import write_simulation_page
from soda_tta.serve.limits import Limits
from soda_tta.serve.simulation import Phase, Simulation, parse_shifts

NAMES = ("clean", "fog", "snow")


def numbered(count: int, offset: int = 0) -> Any:
    """Images whose first pixel tells which one it is, and of which condition."""
    pixels = np.zeros((count, 8, 8, 3), np.uint8)
    pixels[:, 0, 0, 0] = np.arange(count) + offset
    return open_images(pixels)


class Recorder:
    """A model that remembers what it got, and predicts the parity of the image's number."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __call__(self, images: Any) -> Any:
        numbers = np.rint(images[:, 0, 0, 0] * 255).astype(int)
        self.batches.append(numbers.tolist())
        return np.eye(2)[numbers % 2]


def test_a_schedule_is_read() -> None:
    phases = parse_shifts("clean:5, fog+snow:7", NAMES)
    assert phases == (Phase(("clean",), 5), Phase(("fog", "snow"), 7))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mist:5", "'mist' is not a condition; choose from clean"),
        ("fog+mist:5", "'mist' is not a condition"),
        ("fog", "write CONDITION:IMAGES"),
        ("fog:0", "write CONDITION:IMAGES"),
        ("fog:-3", "write CONDITION:IMAGES"),
        ("clean:5,", "is not a condition"),
    ],
)
def test_a_schedule_that_is_not_valid(text: str, problem: str) -> None:
    with pytest.raises(SodaError, match=problem.replace("+", r"\+")):
        parse_shifts(text, NAMES)


def test_every_image_is_sent_once_before_any_comes_again_and_mixes_mix() -> None:
    model = Recorder()
    conditions = {"clean": numbered(10), "fog": numbered(10, 100)}
    phases = parse_shifts("clean:10,fog:10,clean+fog:40", NAMES)
    simulation = Simulation(conditions, phases, model, batch=4)
    simulation.run()
    assert [len(batch) for batch in model.batches] == [4] * 15
    sent = np.concatenate(model.batches)
    assert sorted(sent[:10]) == list(range(10)) and sorted(sent[10:20]) == list(range(100, 110))
    assert 8 < (sent[20:] >= 100).sum() < 32
    assert sorted(sent[20:30] % 100) == list(range(10))


def test_windows_do_not_contain_two_phases_and_compare_with_the_model() -> None:
    labels = np.arange(20) % 2
    conditions = {"clean": numbered(20), "fog": numbered(20, 101)}  # 101: every answer is wrong
    phases = parse_shifts("clean:10,fog:10", NAMES)
    direct = Recorder()

    def proxy(images: Any) -> Any:
        return np.eye(2)[labels[np.rint(images[:, 0, 0, 0] * 255).astype(int) % 101]]

    simulation = Simulation(conditions, phases, proxy, direct, labels=labels, batch=3)
    simulation.run()
    windows = simulation.windows(8)
    assert [(each.start, each.images) for each in windows] == [(0, 8), (8, 2), (10, 8), (18, 2)]
    assert [each.proxy for each in windows] == [1, 1, 1, 1]
    assert [each.direct for each in windows] == [1, 1, 0, 0]
    assert [each.changed for each in simulation.by_phase()] == [0, 1]
    summary = json.loads(json.dumps(simulation.summary(8)))
    assert summary["phases"][1]["condition"] == "fog" and len(summary["windows"]) == 4


def test_the_rate_is_kept_and_stopping_keeps_what_was_measured(tmp_path: Path) -> None:
    simulation = Simulation(
        {"clean": numbered(9)}, [Phase(("clean",), 1000)], Recorder(), rate=200, batch=2
    )
    began = time.monotonic()
    simulation.run(stop=lambda: simulation.sent >= 20)
    assert time.monotonic() - began > 0.085  # the tenth request is due after 18 / 200 s
    (window,) = simulation.windows(50)
    assert window.images == 20 and window.proxy is None and window.changed is None
    text = write_simulation_page(simulation, tmp_path / "page.html", 10).read_text()
    assert "20 of 1,000 images" in text and "labels are not known" in text


def test_a_failure_keeps_complete_pairs_of_answers() -> None:
    def fails(images: Any) -> Any:
        if simulation.sent >= 4:
            raise SodaError("gone")
        return Recorder()(images)

    simulation = Simulation(
        {"clean": numbered(9)}, [Phase(("clean",), 9)], Recorder(), fails, batch=2
    )
    with pytest.raises(SodaError, match="gone"):
        simulation.run()
    assert [each.changed for each in simulation.windows(9)] == [0] and simulation.sent == 4


@pytest.mark.parametrize("wrong", [{"rate": 0}, {"rate": -1}, {"batch": 0}])
def test_numbers_that_are_not_valid(wrong: dict[str, Any]) -> None:
    with pytest.raises(SodaError, match="are not valid"):
        Simulation({"clean": numbered(3)}, [Phase(("clean",), 3)], Recorder(), **wrong)


@pytest.fixture
def labelled(tmp_path: Path, images: Any) -> str:
    path = tmp_path / "set.npz"
    pixels = np.rint(images * 255).astype(np.uint8).transpose(0, 2, 3, 1)
    pixels = pixels.repeat(2, axis=1).repeat(2, axis=2)  # corruptions need 16 pixels
    np.savez(path, images=pixels, labels=np.arange(len(pixels)) % 4)
    return str(path)


def test_the_command_measures_a_running_proxy(
    proxied, direct, labelled: str, tmp_path: Path, capsys
) -> None:
    page = tmp_path / "live.html"
    words = ["simulate", "--proxy", proxied().url, "--direct", direct.url, "--images", labelled]
    words += ["--mean", "0.5", "--std", "0.25", "--rate", "0", "--batch", "8"]
    words += ["--shifts", "clean:24,contrast+clean:16", "--window", "16", "--page", str(page)]
    assert main([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["images"] for each in facts["windows"]] == [16, 8, 16]
    assert facts["images"] == 40 and facts["page"] == str(page)
    for each in facts["windows"]:  # this proxy changes nothing
        assert each["proxy"] == each["direct"] and each["changed"] == 0
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "contrast+clean" in printed and "40 images in" in printed and str(page) in printed
    text = page.read_text()
    assert "with the proxy" in text and "<svg" in text and "http://" not in text.split("<svg")[0]


def test_the_command_shows_what_was_measured_before_the_proxy_failed(
    proxied, labelled: str, capsys, monkeypatch
) -> None:
    proxy = proxied()
    run = Simulation.run

    def until_it_is_gone(self: Simulation, **options: Any) -> None:
        def advance(images: int) -> None:
            if self.sent == 16:
                proxy.proxy.set_limits(Limits(body_bytes=10))

        run(self, **{**options, "advance": advance})

    monkeypatch.setattr(Simulation, "run", until_it_is_gone)
    words = ["simulate", "--proxy", proxy.url, "--images", labelled, "--rate", "0"]
    assert main([*words, "--batch", "8"]) == 2
    done = capsys.readouterr()
    assert "16 of 50 images" in done.out and "413" in done.err


def test_ctrl_c_shows_what_was_measured(proxied, labelled: str, capsys, monkeypatch) -> None:
    run = Simulation.run

    def interrupted(self: Simulation, **options: Any) -> None:
        def advance(images: int) -> None:
            if self.sent == 16:
                os.kill(os.getpid(), signal.SIGINT)

        run(self, **{**options, "advance": advance})

    monkeypatch.setattr(Simulation, "run", interrupted)
    words = ["simulate", "--proxy", proxied().url, "--images", labelled, "--rate", "0"]
    assert main([*words, "--batch", "8", "--json"]) == 130
    facts = json.loads(capsys.readouterr().out)
    assert facts["images"] == 16 and facts["planned"] == 50


def test_options_of_the_command_that_make_no_sense(proxied, labelled: str, capsys) -> None:
    words = ["simulate", "--proxy", proxied().url, "--images", labelled]
    assert main([*words, "--rate", "-1"]) == 2
    assert "--rate -1 is not valid" in capsys.readouterr().err
    assert main([*words, "--shifts", "mist:5"]) == 2
    assert "'mist' is not a condition" in capsys.readouterr().err
