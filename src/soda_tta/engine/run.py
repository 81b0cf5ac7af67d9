"""A run: what came out, what it cost, and everything needed to say how."""

from __future__ import annotations

import csv
import json
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from soda_tta.adaptors import Adaptor
from soda_tta.box import Ledger
from soda_tta.engine.events import Step
from soda_tta.errors import RunError
from soda_tta.judging.verdict import Verdict
from soda_tta.storage.atomic import replacing, write_bytes, write_text
from soda_tta.storage.journal import step_from_json
from soda_tta.types import Array

FORMAT = 1  # of the files in a run directory


@dataclass(repr=False)
class Run:
    """The result of `adapt`."""

    before: Array  # probabilities of the images as they are
    after: Array | None  # of the adapted images; None if the run was interrupted before it answered
    adaptor: Adaptor
    ledger: Ledger
    history: list[Step]
    stopped: str  # finished, budget, interrupted
    reason: str  # the same as a sentence
    card: dict[str, Any]  # the protocol card: every number that is needed to repeat this
    names: list[str]
    seconds: float
    notices: list[str] = field(default_factory=list)
    verdict: Verdict | None = None  # None: the method gives none
    unreached: int = 0  # images that keep their unadapted answer: the budget ran out before them

    @property
    def probabilities(self) -> Array:
        """The answers to use: of the adapted images, or as they were if nothing was adapted."""
        return self.before if self.after is None else self.after

    @property
    def predictions(self) -> Array:
        classes: Array = self.probabilities.argmax(axis=1)
        return classes

    @property
    def changed(self) -> int:
        """How many images are now given another class."""
        return int((self.predictions != self.before.argmax(axis=1)).sum())

    @property
    def queries_per_image(self) -> float:
        return self.ledger.total / len(self.before)

    def __repr__(self) -> str:
        return f"<{self.card['method']} on {len(self.before):,} images: {self.stopped}, {self.ledger!r}>"

    def summary(self) -> dict[str, Any]:
        """`run.json`: the protocol card and the outcome, as plain JSON."""
        return {
            **self.card,
            "stopped": self.stopped,
            "reason": self.reason,
            "queries": self.ledger.by_purpose(),
            "queries_per_image": self.queries_per_image,
            "changed_answers": None if self.after is None else self.changed,
            "mean_confidence": {
                "before": float(self.before.max(axis=1).mean()),
                "after": None if self.after is None else float(self.after.max(axis=1).mean()),
            },
            "seconds": round(self.seconds, 3),
            "notices": self.notices,
            "verdict": None if self.verdict is None else self.verdict.facts(),
            "unreached_images": self.unreached,
        }

    def save(self, folder: str | Path) -> Path:
        """Write `adaptor.safetensors`, `answers.safetensors`, `history.jsonl`, `predictions.csv`, then `run.json`."""
        folder = Path(folder)
        self.adaptor.save(folder / "adaptor.safetensors")
        answers = (
            {"before": self.before}
            if self.after is None
            else {"before": self.before, "after": self.after}
        )
        rows = {
            name: np.ascontiguousarray(probabilities) for name, probabilities in answers.items()
        }
        write_bytes(folder / "answers.safetensors", save(rows))
        write_text(
            folder / "history.jsonl",
            "".join(json.dumps(asdict(step)) + "\n" for step in self.history),
        )
        with (
            replacing(folder / "predictions.csv") as temporary,
            temporary.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file,
        ):
            write_predictions(file, self.names, self.before, self.after)
        write_text(folder / "run.json", json.dumps(self.summary(), indent=2) + "\n")
        return folder

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one self-contained HTML page; `images`, `labels`, `classes` and `price` are those of `write_report`."""
        from soda_tta.report import write_report

        return write_report(self, path, **options).path

    @staticmethod
    def load(folder: str | Path) -> Run:
        """Read a saved run back."""
        folder = Path(folder)
        facts = read_card(folder)
        if facts.get("stopped") is None:
            raise RunError(f"{folder} holds a run that has not ended; continue it with --resume.")
        try:
            answers = load_file(folder / "answers.safetensors")
            lines = (folder / "history.jsonl").read_text().splitlines()
            with (folder / "predictions.csv").open(
                newline="", encoding="utf-8", errors="surrogateescape"
            ) as file:
                names = [row["image"] for row in csv.DictReader(file)]
        except (OSError, SafetensorError, KeyError) as error:
            raise RunError(f"{folder} is incomplete: {error}") from error
        ledger = Ledger()
        ledger.queries = dict(facts["queries"])
        return Run(
            before=answers["before"],
            after=answers.get("after"),
            adaptor=Adaptor.load(folder / "adaptor.safetensors"),
            ledger=ledger,
            history=[step_from_json(line) for line in lines],
            stopped=facts["stopped"],
            reason=facts["reason"],
            card={name: value for name, value in facts.items() if name in CARD},
            names=names,
            seconds=facts["seconds"],
            notices=facts["notices"],
            verdict=None if facts.get("verdict") is None else Verdict(**facts["verdict"]),
            unreached=facts.get("unreached_images", 0),
        )


CARD = (
    "format",
    "soda_tta",
    "method",
    "settings",
    "seed",
    "budget",
    "images",
    "box",
    "versions",
    "plan",
    "chosen_lr",
    "command",
    "reliable",
)


def read_card(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{folder} holds no run (no run.json).") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise RunError(
            f"{path} was written by another version of this package; it is not read to avoid misreading it."
        )
    return facts


def write_predictions(file: Any, names: list[str], before: Array, after: Array | None) -> None:
    """One row an image; the places of a run that was stopped before it answered stay empty."""
    writer = csv.writer(file)
    writer.writerow(
        ["image", "before", "before_confidence", "after", "after_confidence", "changed"]
    )
    for index, (name, old) in enumerate(zip(names, before, strict=True)):
        first = int(old.argmax())
        row = [name, first, f"{old[first]:.6f}"]
        if after is not None:
            second = int(after[index].argmax())
            row += [second, f"{after[index][second]:.6f}", int(first != second)]
        writer.writerow(row)


def versions() -> dict[str, str]:
    """What computed this."""
    found = {"python": platform.python_version()}
    for package in ("numpy", "torch", "onnxruntime"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
