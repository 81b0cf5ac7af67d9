"""A small real run, and what is needed to make others."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta import Run, adapt
from soda_tta.adaptors import Identity
from soda_tta.box import Ledger
from soda_tta.judging.verdict import Verdict
from soda_tta.types import Array

SMALL = {"epochs": 3, "batch": 16, "width": 4, "lr": 0.05}


@pytest.fixture
def run(images: Array, model: Any) -> Run:
    return adapt(images, model, method="soda", **SMALL)


@pytest.fixture
def folder(images: Array, model: Any, tmp_path: Path) -> Path:
    """The directory of a finished run on 50 images."""
    adapt(images, model, method="soda", out=tmp_path / "night", **SMALL)
    return tmp_path / "night"


def answered(
    before: Array,
    after: Array | None,
    names: list[str] | None = None,
    verdict: Verdict | None = None,
) -> Run:
    """A run that only holds answers."""
    count = len(before)
    ledger = Ledger()
    ledger.spend(2 * count, "select")
    return Run(
        before=before,
        after=after,
        adaptor=Identity(),
        ledger=ledger,
        history=[],
        stopped="finished",
        reason="All is done.",
        card={
            "method": "lame",
            "settings": {},
            "seed": 0,
            "budget": None,
            "images": {"count": count, "size": [8, 8]},
        },
        names=names or [str(index) for index in range(count)],
        seconds=1.0,
        verdict=verdict,
    )


def judged(adopt: bool, sentence: str = "It was judged.") -> Verdict:
    """A verdict; its numbers, whichever it has, do not matter here."""
    settings = {part.name: 0.5 for part in fields(Verdict)}
    return Verdict(**{**settings, "adopt": adopt, "sentence": sentence, "images": 50})  # type: ignore[arg-type]


def rows(*classes: int, of: int = 3, sure: float = 0.8) -> Array:
    """Probabilities that give these classes, each with the same confidence."""
    probabilities = np.full((len(classes), of), (1 - sure) / max(1, of - 1), np.float32)
    probabilities[np.arange(len(classes)), classes] = sure
    return probabilities
