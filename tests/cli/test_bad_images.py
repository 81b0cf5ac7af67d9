"""One unreadable file does not stop everything: --on-bad-image."""

import json
from pathlib import Path
from typing import Any

from .conftest import ADAPT, APPLY, SMALL, Soda, column

SKIP = ["--on-bad-image", "skip"]


def test_an_unreadable_file_is_left_out_by_every_command(
    soda: Soda, place: Path, model: Any
) -> None:
    (place / "night" / "05.png").write_bytes(b"")
    done = soda(*ADAPT, *SMALL, "--out", "run")
    assert done.code == 2 and model.queries == 0
    assert "05.png cannot be read" in done.err and "with --on-bad-image skip" in done.err
    done = soda(*ADAPT, *SMALL, *SKIP, "--out", "run")
    assert done.code == 0 and "39; 1 unreadable left out" in done.out
    assert "1 of 40 files cannot be read and are left out: 05.png" in done.err
    assert json.loads((place / "run" / "run.json").read_text())["images"]["skipped"] == ["05.png"]
    assert soda(*APPLY, *SKIP, "--out", "a.csv").code == 0
    assert column(place / "a.csv", "class") == column(place / "run" / "predictions.csv", "after")
    assert soda("report", "run").code == 0
    assert "<img" in (place / "run" / "report.html").read_text()
