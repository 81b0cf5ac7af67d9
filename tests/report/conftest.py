"""A small real run, and functions that make runs with chosen predictions."""

from __future__ import annotations

import re
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta import Run, adapt
from soda_tta.adaptors import Identity
from soda_tta.box import Ledger
from soda_tta.engine.card import Card
from soda_tta.judging.verdict import Verdict
from soda_tta.types import Array

SMALL = {"epochs": 3, "batch": 16, "width": 4, "lr": 0.05}
EVIL = (
    "<script>alert('evil')</script>\"'><img src=http://evil.example/x onerror=alert(1)>$a_b$&amp;"
)


@pytest.fixture
def run(images: Array, model: Any) -> Run:
    return adapt(images, model, method="soda", **SMALL)


@pytest.fixture
def folder(images: Array, model: Any, tmp_path: Path) -> Path:
    """The directory of a finished run on 50 images."""
    adapt(images, model, method="soda", out=tmp_path / "night", **SMALL)
    return tmp_path / "night"


def make_run(
    before: Array,
    after: Array | None,
    names: list[str] | None = None,
    verdict: Verdict | None = None,
) -> Run:
    """A run with these probabilities and nothing learned."""
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
        reason="All steps are done.",
        card=Card(
            method="lame",
            settings={},
            seed=0,
            budget=None,
            images={"count": count, "size": [8, 8]},
            box={},
            versions={},
            plan={},
        ),
        names=names or [str(index) for index in range(count)],
        seconds=1.0,
        verdict=verdict,
    )


def make_verdict(adopt: bool, sentence: str = "This is the verdict.") -> Verdict:
    """A verdict whose numbers do not matter."""
    values: dict[str, Any] = {part.name: 0.5 for part in fields(Verdict)}
    return Verdict(**{**values, "adopt": adopt, "sentence": sentence, "images": 50})


def rows(*classes: int, of: int = 3, confidence: float = 0.8) -> Array:
    """Probabilities that predict these classes, each with the same confidence."""
    probabilities = np.full((len(classes), of), (1 - confidence) / max(1, of - 1), np.float32)
    probabilities[np.arange(len(classes)), classes] = confidence
    return probabilities


class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def check_self_contained(html: str) -> None:
    """Nothing is loaded, nothing is executed, and the page is small enough to send."""
    assert len(html.encode()) < 2_000_000
    for tag, attributes in Tags(html).found:
        assert tag not in ("script", "iframe", "object", "embed", "base", "form"), tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "srcset", "action"):
                assert value is None or value.startswith(("data:", "#")), (tag, value)
    assert "url(http" not in html and "@import" not in html
    assert "nan" not in re.sub(r"[\w/+]*base64[^\"]*", "", html).lower().split()
