"""The demo: a real black box, a real shift, nothing to download.

scikit-learn's digits as small colour images; a small network trained in seconds, exported to ONNX and from then
on used only through ONNX Runtime; haze over the test half.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.box import Input, OnnxBox
from soda_tta.data import open_images
from soda_tta.engine.adapt import adapt
from soda_tta.engine.events import Listener
from soda_tta.engine.run import Run
from soda_tta.errors import SodaError
from soda_tta.protocols.onnx_files import export_onnx
from soda_tta.types import Array

SIZE = 16  # pixels; the digits come at 8 x 8
VEIL, CONTRAST, GRAIN = 0.6, 0.2, 0.05  # haze: veil + contrast * image + noise of deviation grain
TRAINING_EPOCHS = 12
BUDGET = 10  # queries an image for soda-e
# The paper's settings but for a set a tenth of its size: 30 epochs of 4 steps, not 6,000 steps, call for a larger lr.
PAPER: dict[str, Any] = {"epochs": 30, "lr": 2e-2}
NORMALISATION = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}


@dataclass(frozen=True)
class Digits:
    """Images float32 NCHW in [0, 1] with labels, in two halves."""

    train: Array
    train_labels: Array
    test: Array
    test_labels: Array


@dataclass(frozen=True)
class Demo:
    """What the demo found; accuracies are shares of 1."""

    clean: float
    before: float
    results: dict[str, Adapted]  # by method, the default first
    picture: Path
    report: Path

    def summary(self) -> dict[str, Any]:
        first, *_ = self.results.values()
        return {
            "clean": round(self.clean, 4),
            "before": round(self.before, 4),
            "images": len(first.run.before),
            "haze": {"veil": VEIL, "contrast": CONTRAST, "grain": GRAIN},
            "methods": {name: result.summary() for name, result in self.results.items()},
            "picture": str(self.picture),
            "report": str(self.report),
        }


@dataclass(frozen=True)
class Adapted:
    """One method's part in it."""

    accuracy: float
    run: Run
    seconds: float

    def summary(self) -> dict[str, Any]:
        return {
            "after": round(self.accuracy, 4),
            "queries_per_image": round(self.run.queries_per_image, 2),
            "seconds": round(self.seconds, 2),
            "settings": self.run.card.settings,
            "does": self.run.adaptor.describe(),
        }


def run_demo(folder: Path, seed: int = 0, listener: Listener | None = None) -> Demo:
    """Train, deploy, haze, adapt by soda-e and by the paper's soda; leaves all that it makes in `folder`."""
    model, images = hazy_digits(folder, seed)
    digits, box = load_digits(seed), OnnxBox(model)
    hazy = open_images(images)[slice(None)]
    results = {}
    for method, budget, settings in (("soda-e", BUDGET, {}), ("soda", None, PAPER)):
        began = time.perf_counter()
        run = adapt(
            hazy, box, method=method, budget=budget, seed=seed, listener=listener, **settings
        )
        results[method] = Adapted(
            accuracy(run.probabilities, digits.test_labels), run, time.perf_counter() - began
        )
        run.save(folder / "run" if method == "soda-e" else folder / "run-paper")
    run = results["soda-e"].run
    picture, report = folder / "digits.png", folder / "report.html"
    picture_grid([digits.test[:12], hazy[:12], run.adaptor(hazy[:12])]).save(picture)
    run.report(report, images=hazy)
    before = accuracy(run.before, digits.test_labels)
    return Demo(accuracy(box(digits.test), digits.test_labels), before, results, picture, report)


def hazy_digits(folder: str | Path, seed: int = 0) -> tuple[Path, Path]:
    """The deployed model (`model.onnx`) and its hazy test images (`hazy.npy`, bytes as a camera would store them)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits(seed)
    model = train_and_export(digits, folder / "model.onnx", seed)
    np.save(folder / "hazy.npy", np.rint(haze(digits.test, seed) * 255).astype(np.uint8))
    return model, folder / "hazy.npy"


def load_digits(seed: int) -> Digits:
    """scikit-learn's 1,797 digits, enlarged and coloured; half of them, chosen by the seed, are the test set."""
    try:
        from sklearn.datasets import load_digits as sklearn_digits
    except ImportError as error:
        raise SodaError("the demo needs scikit-learn: pip install 'soda-tta[demo]'.") from error
    raw, labels = sklearn_digits(return_X_y=True)
    small = (raw.reshape(-1, 8, 8) / 16 * 255).astype(np.uint8)
    large = np.stack(
        [
            np.asarray(Image.fromarray(digit).resize((SIZE, SIZE), Image.Resampling.BILINEAR))
            for digit in small
        ]
    )
    images = np.repeat(large[:, None].astype(np.float32) / 255, 3, axis=1)
    order = np.random.default_rng(seed).permutation(len(images))
    train, test = np.split(order, [len(order) // 2])
    return Digits(images[train], labels[train], images[test], labels[test])


def haze(images: Array, seed: int) -> Array:
    """A bright veil, little contrast, some noise."""
    noise = np.random.default_rng([seed, 1]).standard_normal(images.shape, np.float32)
    return np.clip(VEIL + CONTRAST * images + GRAIN * noise, 0, 1).astype(np.float32)


def train_and_export(digits: Digits, path: Path, seed: int) -> Path:
    """A small convolutional network trained on the clean half, written as an ONNX file that returns probabilities."""
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(
            *(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(32 * (SIZE // 4) ** 2, 10)),
        )
        images = torch.from_numpy(Input(**NORMALISATION).prepare(digits.train))  # type: ignore[arg-type]
        labels = torch.from_numpy(digits.train_labels).long()
        optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
        for _ in range(TRAINING_EPOCHS):
            for batch in torch.split(torch.randperm(len(images)), 64):
                optimiser.zero_grad()
                nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
    model = nn.Sequential(network, nn.Softmax(dim=1))
    shape = (3, SIZE, SIZE)
    export_onnx(
        model,
        path,
        example=(2, *shape),
        check=(3, *shape),
        output="probabilities",
        facts=NORMALISATION,
    )
    return path


def accuracy(probabilities: Array, labels: Array) -> float:
    return float((probabilities.argmax(axis=1) == labels).mean())


def picture_grid(rows: list[Array], zoom: int = 4, gap: int = 2) -> Image.Image:
    """Rows of images as one picture, each pixel enlarged."""
    tiles = [
        [np.rint(image.transpose(1, 2, 0) * 255).astype(np.uint8) for image in row] for row in rows
    ]
    padded = [
        [np.pad(tile, ((gap, gap), (gap, gap), (0, 0)), constant_values=255) for tile in row]
        for row in tiles
    ]
    grid = np.concatenate([np.concatenate(row, axis=1) for row in padded])
    return Image.fromarray(grid).resize(
        (grid.shape[1] * zoom, grid.shape[0] * zoom), Image.Resampling.NEAREST
    )
