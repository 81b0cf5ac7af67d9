"""The demo: a real black-box model, a real shift, nothing to download.

A small digit classifier is trained in seconds, exported to ONNX and from then on queried only
through ONNX Runtime. Haze covers its test images, and two methods adapt it. Then clean, hazy and
noisy images lie in one folder, and soda-e finds and adapts each condition.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.box import OnnxBox
from soda_tta.data import open_images
from soda_tta.engine.adapt import adapt
from soda_tta.engine.events import Listener
from soda_tta.engine.run import Run
from soda_tta.types import Array
from soda_tta.zoo.digits import (
    CONDITIONS,
    CONTRAST,
    GRAIN,
    NOISE,
    VEIL,
    Digits,
    hazy_digits,
    load_digits,
    mixed,
)

BUDGET = 10  # queries per image for soda-e
MIXED_BUDGET = 15  # the same for the mixed images, of which each condition has a third
# The paper's settings, except that the set has a tenth of its size: 30 epochs of 4 steps in place
# of 6,000 steps need a larger learning rate.
PAPER: dict[str, Any] = {"epochs": 30, "lr": 2e-2}


@dataclass(frozen=True)
class Demo:
    """The results of the demo.

    Parameters
    ----------
    clean : float
        Accuracy on clean images, as a share of 1.
    before : float
        Accuracy on hazy images without adaptation, as a share of 1.
    results : dict
        By the name of the method, the default method first.
    picture : Path
        Clean, hazy and adapted digits.
    report : Path
        The report page of soda-e.
    mixed : MixedDemo
        Clean, hazy and noisy digits in one folder.
    """

    clean: float
    before: float
    results: dict[str, Adapted]
    picture: Path
    report: Path
    mixed: MixedDemo

    def summary(self) -> dict[str, Any]:
        """The results as plain JSON."""
        first, *_ = self.results.values()
        return {
            "clean": round(self.clean, 4),
            "before": round(self.before, 4),
            "images": len(first.run.before),
            "haze": {"veil": VEIL, "contrast": CONTRAST, "grain": GRAIN},
            "methods": {name: result.summary() for name, result in self.results.items()},
            "picture": str(self.picture),
            "report": str(self.report),
            "mixed": self.mixed.summary(),
        }


@dataclass(frozen=True)
class MixedDemo:
    """The results on mixed images. Accuracies are shares of 1.

    Parameters
    ----------
    accuracies : dict
        By what is measured ("clean", "hazy", "noisy", "all"): the accuracy as they are, with one
        adaptor for all images, and with one for each condition.
    single, run : Run
        With one adaptor for all images, and with one for each condition.
    report : Path
        The report page of `run`.
    """

    accuracies: dict[str, tuple[float, float, float]]
    single: Run
    run: Run
    report: Path

    def summary(self) -> dict[str, Any]:
        """The results as plain JSON."""
        names = ("before", "one_adaptor", "one_per_condition")
        return {
            "noise": NOISE,
            "accuracy": {
                what: {name: round(share, 4) for name, share in zip(names, shares, strict=True)}
                for what, shares in self.accuracies.items()
            },
            "queries_per_image": round(self.run.queries_per_image, 2),
            "seconds": round(self.run.seconds, 2),
            "conditions": self.run.summary()["mixed"],
            "report": str(self.report),
        }


@dataclass(frozen=True)
class Adapted:
    """The result of one method.

    Parameters
    ----------
    accuracy : float
        On the adapted images, as a share of 1.
    run : Run
    seconds : float
        Duration of the adaptation.
    """

    accuracy: float
    run: Run
    seconds: float

    def summary(self) -> dict[str, Any]:
        """The result as plain JSON."""
        return {
            "after": round(self.accuracy, 4),
            "queries_per_image": round(self.run.queries_per_image, 2),
            "seconds": round(self.seconds, 2),
            "settings": self.run.card.settings,
            "description": self.run.adaptor.describe(),
        }


def run_demo(folder: Path, seed: int = 0, listener: Listener | None = None) -> Demo:
    """Train and deploy a model, add haze, adapt with soda-e and with the paper's soda.

    Then adapt clean, hazy and noisy images in one folder with soda-e.

    Parameters
    ----------
    folder : Path
        Everything that the demo makes is written here.
    seed : int, default 0
        Another seed gives another model, other test images and other noise.
    listener : callable, optional
        Receives the events of both runs.
    """
    model, images = hazy_digits(folder, seed)
    digits = load_digits(seed)
    box = OnnxBox(model)
    hazy = open_images(images)[slice(None)]
    labels = digits.test_labels

    def adapted(method: str, run_folder: Path, **options: Any) -> Adapted:
        start = time.perf_counter()
        run = adapt(hazy, box, method=method, seed=seed, listener=listener, **options)
        seconds = time.perf_counter() - start
        run.save(run_folder)
        return Adapted(accuracy(run.probabilities, labels), run, seconds)

    results = {
        "soda-e": adapted("soda-e", folder / "run", budget=BUDGET),
        "soda": adapted("soda", folder / "run-paper", **PAPER),
    }
    run = results["soda-e"].run
    picture = folder / "digits.png"
    picture_grid([digits.test[:12], hazy[:12], run.adaptor(hazy[:12])]).save(picture)
    report = folder / "report.html"
    run.report(report, images=hazy)
    return Demo(
        clean=accuracy(box(digits.test), labels),
        before=accuracy(run.before, labels),
        results=results,
        picture=picture,
        report=report,
        mixed=run_mixed(folder, digits, box, seed, listener),
    )


def run_mixed(
    folder: Path, digits: Digits, box: OnnxBox, seed: int, listener: Listener | None
) -> MixedDemo:
    """Adapt clean, hazy and noisy images in one folder, with one adaptor and with one for each.

    Parameters
    ----------
    folder, seed, listener : as in `run_demo`
    digits : Digits
        Those that the model was trained on and is tested with.
    box : OnnxBox
        The deployed model.
    """
    images, conditions = mixed(digits.test, seed)
    images = np.rint(images * 255).astype(np.uint8)
    np.save(folder / "mixed.npy", images)
    options: dict[str, Any] = {"budget": MIXED_BUDGET, "seed": seed, "listener": listener}
    single = adapt(images, box, conditions=1, **options)
    run = adapt(images, box, **options)
    run.save(folder / "run-mixed")
    accuracies = {}
    for what in (*CONDITIONS, "all"):
        own = np.full(len(images), True)
        if what != "all":
            own = conditions == CONDITIONS.index(what)
        before, one, each = (
            accuracy(rows[own], digits.test_labels[own])
            for rows in (run.before, single.probabilities, run.probabilities)
        )
        accuracies[what] = (before, one, each)
    report = folder / "conditions.html"
    run.report(report, images=images)
    return MixedDemo(accuracies, single, run, report)


def accuracy(probabilities: Array, labels: Array) -> float:
    """The share of correct predictions.

    Parameters
    ----------
    probabilities : array of shape (n, classes)
    labels : integer array of shape (n,)

    Examples
    --------
    >>> accuracy(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1]))
    0.5
    """
    return float((probabilities.argmax(axis=1) == labels).mean())


def picture_grid(rows: list[Array], zoom: int = 4, gap: int = 2) -> Image.Image:
    """Rows of images as one picture.

    Parameters
    ----------
    rows : list of float32 arrays of shape (n, 3, height, width), in [0, 1]
    zoom : int, default 4
        Each pixel becomes a square of this side.
    gap : int, default 2
        White pixels around each image, before zooming.
    """
    padding = ((gap, gap), (gap, gap), (0, 0))
    lines = []
    for row in rows:
        tiles = [np.rint(image.transpose(1, 2, 0) * 255).astype(np.uint8) for image in row]
        padded = [np.pad(tile, padding, constant_values=255) for tile in tiles]
        lines.append(np.concatenate(padded, axis=1))
    grid = np.concatenate(lines)
    height, width = grid.shape[:2]
    return Image.fromarray(grid).resize((width * zoom, height * zoom), Image.Resampling.NEAREST)
