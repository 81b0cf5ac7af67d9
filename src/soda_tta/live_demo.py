"""The live demo: a model, a proxy in front of it, and traffic that drifts. Nothing to download.

A small digit classifier is trained in seconds and served by a process of its own. Another process
is the proxy. Clean digits become hazy, clean again, noisy, and hazy once more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box import load_box
from soda_tta.data import open_images
from soda_tta.errors import SodaError
from soda_tta.serve.keys import ADMIN_VARIABLE, CLIENT_VARIABLE
from soda_tta.serve.simulation import Simulation, parse_shifts
from soda_tta.zoo.digits import (
    CONDITIONS,
    MEAN,
    STD,
    haze,
    load_digits,
    noisy,
    train_and_export,
)

SHIFTS = "clean:600,hazy:1800,clean:400,noisy:1800,hazy:400"
RATE = 50.0  # images per second: 100 s in all
LEARN_BUDGET = 6  # queries of the learner per image: more than usual, so that it is soon done
BATCH = 5  # images per request
WINDOW = 200  # images per measured accuracy
ENDING = 15.0  # seconds for a process to end


@dataclass(frozen=True)
class LiveDemo:
    """A running demo.

    Parameters
    ----------
    upstream, proxy : str
        The addresses of the model, directly and through the proxy.
    simulation : Simulation
        Traffic to both; nothing is sent until it is run.
    """

    upstream: str
    proxy: str
    simulation: Simulation

    @property
    def dashboard(self) -> str:
        """The address of the proxy's page."""
        return self.proxy.partition("/v2/")[0] + "/"

    def learned(self) -> list[tuple[str, str]]:
        """The conditions that the proxy has found, in words, and what it does to each."""
        with urllib.request.urlopen(f"{self.dashboard}control/status", timeout=10) as response:
            status = json.load(response)
        return [
            (str(condition["words"]), str(condition["adaptor"]))
            for source in (status["live"] or {}).get("sources", [])
            for condition in source["conditions"]
        ]

    def summary(self) -> dict[str, Any]:
        """The results as plain JSON."""
        learned = [{"words": words, "adaptor": does} for words, does in self.learned()]
        return {"conditions": learned, **self.simulation.summary(WINDOW)}


@contextmanager
def live_demo(
    folder: Path, seed: int = 0, *, shifts: str = SHIFTS, rate: float | None = RATE
) -> Iterator[LiveDemo]:
    """Train a model, serve it, and start a proxy; both end with the block.

    Parameters
    ----------
    folder : Path
        Everything that the demo makes is written here.
    seed : int, default 0
        Another seed gives another model, other images and another order.
    shifts : str
        The schedule, of clean, hazy and noisy images.
    rate : float or None
        Images per second; None: as fast as they are answered.
    """
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits(seed)
    model = train_and_export(digits, folder / "model.onnx", seed)
    versions = (digits.test, haze(digits.test, seed), noisy(digits.test, seed))
    conditions = {
        name: open_images(np.rint(images * 255).astype(np.uint8))
        for name, images in zip(CONDITIONS, versions, strict=True)
    }
    facts: dict[str, Any] = {"mean": MEAN, "std": STD}
    stated = [f"--{name}={','.join(map(str, values))}" for name, values in facts.items()]
    learning = ["--learn-budget", str(LEARN_BUDGET), *stated]
    with (
        serving(["--model", str(model), "--freeze"], folder / "upstream.log") as upstream,
        serving(["--upstream", upstream, *learning], folder / "proxy.log") as proxy,
    ):
        simulation = Simulation(
            conditions,
            parse_shifts(shifts, CONDITIONS),
            load_box(proxy, **facts),
            load_box(upstream, **facts),
            labels=digits.test_labels,
            rate=rate,
            batch=BATCH,
            seed=seed,
        )
        yield LiveDemo(upstream, proxy, simulation)


@contextmanager
def serving(options: Sequence[str], log: Path) -> Iterator[str]:
    """`soda-tta serve` in a process of its own, on any free port; its address.

    Parameters
    ----------
    options : sequence of str
        Of the command.
    log : Path
        Where its standard error goes.
    """
    words = [sys.executable, "-m", "soda_tta", "serve", *options, "--port", "0", "--json"]
    keys = {CLIENT_VARIABLE, ADMIN_VARIABLE}  # they are for real proxies
    with log.open("wb") as file:
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            start_new_session=True,  # Ctrl-C ends the traffic first, and then this
            env={name: value for name, value in os.environ.items() if name not in keys},
        )
    try:
        yield address(process, log)
    finally:
        ended(process)


def address(process: subprocess.Popen[str], log: Path) -> str:
    """What the process announces once it serves."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        last = log.read_text(errors="replace").splitlines()[-1:]
        raise SodaError(f"soda-tta serve did not start: {''.join(last)} See {log}.")
    return str(json.loads(line)["http"])


def ended(process: subprocess.Popen[str]) -> None:
    """End the process: in order, or at once if that takes too long."""
    process.terminate()
    try:
        process.wait(ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
