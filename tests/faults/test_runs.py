"""Whole runs on a bad network, and runs that are killed: the bill is right and so is the result.

The long forms carry the marker `real`: more seeds, and processes that are really killed.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from soda_tta import adapt, load_box
from soda_tta.errors import SodaError

pytestmark = pytest.mark.filterwarnings("ignore")
BUDGET = 30


class Killed(BaseException):
    """Ends the process, as far as the run can tell: nothing catches it."""


def run_with_faults(server, images, expected, tmp_path, seed: int) -> None:
    """A run is started and resumed until it ends; nothing is ever wrong or unpaid."""
    server.misbehave(seed, requests=400, share=0.05)
    box = load_box(server.url, retries=2)
    for attempt in range(20):
        with suppress(SodaError):
            out = tmp_path / "run"
            run = adapt(images, box, budget=BUDGET, out=out, resume=attempt > 0)
            break
    else:
        pytest.fail("the run does not come to an end")
    assert server.computed <= run.ledger.total <= BUDGET * len(images)
    np.testing.assert_allclose(run.before, expected, atol=1e-6)


SHORT = 1  # one of them runs every time, the others in the long form


@pytest.mark.parametrize(
    "seed", [SHORT, *(pytest.param(seed, marks=pytest.mark.real) for seed in range(2, 60))]
)
def test_on_a_bad_network_no_row_is_wrong_and_the_bill_is_within_the_budget(
    server, images, expected, waits, tmp_path, seed: int
) -> None:
    run_with_faults(server, images, expected, tmp_path, seed)


def comparable(folder) -> dict:
    card = json.loads((folder / "run.json").read_text())
    for name in ("seconds", "queries_per_image", "calls"):
        card.pop(name)
    card["queries"].pop("lost", None)
    return card


def assert_same_run(whole, other) -> None:
    for name in ("answers.safetensors", "history.jsonl", "predictions.csv"):
        assert (whole / name).read_bytes() == (other / name).read_bytes(), name
    assert comparable(whole) == comparable(other)


KILLS = [
    ("soda-e", 0.6),
    ("soda", 0.3),
    *(
        pytest.param(method, share, marks=pytest.mark.real)
        for method in ("soda-e", "soda")
        for share in (0.02, 0.1, 0.45, 0.8, 0.9, 0.97, 0.99)
    ),
]


@pytest.mark.parametrize(("method", "share"), KILLS)  # share of the requests before the kill
def test_a_run_with_a_budget_that_is_killed_makes_the_same_search(
    server, images, tmp_path, method: str, share: float
) -> None:
    settings = {"method": method, "budget": BUDGET}
    if method == "soda":
        settings |= {"epochs": 9, "batch": 40, "width": 2, "lr": 0.05}
    box = load_box(server.url, workers=4)
    adapt(images, box, out=tmp_path / "whole", **settings)
    needed = server.computed
    last = share * len(server.requests)
    server.computed = 0
    server.requests = []
    inner = box.box.box
    send = inner.answer

    def answer(request):
        rows = send(request)
        if len(server.requests) > last:
            raise Killed  # the responses in flight are lost with the process
        return rows

    inner.answer = answer
    with pytest.raises(Killed):
        adapt(images, box, out=tmp_path / "run", **settings)
    inner.answer = send
    resumed = adapt(images, box, out=tmp_path / "run", resume=True, **settings)
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    assert needed <= server.computed <= resumed.ledger.total <= BUDGET * len(images)
    assert resumed.ledger.lost <= 64  # what was in flight


SCRIPT = """
import sys, warnings, numpy as np
from soda_tta import adapt, load_box
warnings.simplefilter("ignore")
url, images, out, resume = sys.argv[1:]
box = load_box(url, workers=4)
adapt(np.load(images), box, budget=30, out=out, resume=resume == "resume")
"""


@pytest.mark.real
@pytest.mark.parametrize("seed", range(12))
def test_a_process_with_a_budget_that_is_killed_makes_the_same_search(
    server, images, tmp_path, seed: int
) -> None:
    np.save(tmp_path / "images.npy", images)

    def start(out: str, resume: str) -> subprocess.Popen:
        words = [server.url, str(tmp_path / "images.npy"), str(tmp_path / out), resume]
        environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        return subprocess.Popen([sys.executable, "-c", SCRIPT, *words], env=environment)

    assert start("whole", "new").wait() == 0
    needed = server.computed
    requests = len(server.requests)
    server.computed = 0
    server.requests = []
    last = np.random.default_rng(seed).integers(1, requests)
    process = start("run", "new")
    while process.poll() is None and len(server.requests) < last:
        time.sleep(0.0005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert start("run", "resume").wait() == 0
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    billed = sum(json.loads((tmp_path / "run" / "run.json").read_text())["queries"].values())
    assert needed <= server.computed <= billed <= needed + 64
