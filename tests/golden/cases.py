"""Small runs whose outputs are pinned: python tests/golden/cases.py rewrites outputs.json.

A change of these numbers is a change of behaviour: say in the commit which one, and why.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np

from soda_tta import Stream, adapt
from soda_tta.engine.run import Run
from soda_tta.testing.data import make_black_box, make_images, make_white_box

OUTPUTS = Path(__file__).parent / "outputs.json"
FAST = {"epochs": 2, "batch": 32, "width": 4}
CASES = {
    "soda": {"method": "soda", **FAST},
    "soda under a budget": {"method": "soda", **FAST, "epochs": 3, "budget": 11.5},
    "soda with a penalty": {"method": "soda", **FAST, "beta": 0.01},
    "soda per image": {"method": "soda", **FAST, "search": "per-image"},
    "soda with evolution": {
        "method": "soda",
        "search": "evolution",
        "adaptor": "bank",
        "epochs": 2,
    },
    "soda-auto": {"method": "soda-auto", **FAST, "epochs": 3, "q": 2},
    "soda-e": {"method": "soda-e", "budget": 60},
    "soda-e without colour": {"method": "soda-e", "budget": 60, "without": "colour"},
    "soda-o": {"method": "soda-o", **FAST, "arrival": 32, "queue": 16},
    "soda-r": {"method": "soda-r", **FAST},
    "da-pgd": {"method": "da-pgd", "epochs": 2, "batch": 32},
    "dine": {"method": "dine", "epochs": 2, "finetune_epochs": 1, "batch": 32},
    "ma-so": {"method": "ma-so", "epochs": 2, "batch": 32},
}
WHITE = ("soda-r", "ma-so")


def run_case(name: str) -> dict:
    """What is pinned of one case."""
    box = make_white_box() if name in WHITE else make_black_box()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = summary(adapt(make_images(96), box, seed=5, **CASES[name]))
    if CASES[name].get("search") == "evolution":
        del found["parameters"]  # they follow the order of losses, which rounding may change
    return found


def summary(run: Run) -> dict:
    """A run in a few numbers."""
    return {
        "queries": run.ledger.queries,
        "stopped": run.stopped,
        "steps": len(run.history),
        "before": rounded(run.before.mean(axis=0)),
        "after": rounded(run.probabilities.mean(axis=0)),
        "losses": rounded([step.loss for step in run.history]),
        "parameters": rounded([np.abs(run.adaptor.parameters).sum()]),
        "adopted": None if run.verdict is None else run.verdict.adopt,
    }


def run_stream() -> dict:
    """A stream of three batches."""
    images = make_images(96)
    stream = Stream(make_black_box(), seed=3, queue=16, **FAST)
    batches = [stream(images[start : start + 32]) for start in (0, 32, 64)]
    return {
        "queries": stream.ledger.queries,
        "after": rounded(np.concatenate(batches).mean(axis=0)),
    }


def rounded(values) -> list[float]:
    return [round(float(value), 5) for value in values]


if __name__ == "__main__":
    outputs = {name: run_case(name) for name in CASES}
    outputs["stream"] = run_stream()
    OUTPUTS.write_text(json.dumps(outputs, indent=1) + "\n")
