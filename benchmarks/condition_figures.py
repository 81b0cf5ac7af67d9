"""The pictures of docs/concepts/conditions.md, from the digits of the demo: no download, no label.

    python benchmarks/condition_figures.py

It trains the model of the demo, adapts its mixed images and writes three pictures beside the page.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from soda_tta import Run, adapt, find_conditions
from soda_tta.box import OnnxBox
from soda_tta.conditions import Conditions
from soda_tta.conditions.mixture import fit
from soda_tta.conditions.sheet import draw_sheet
from soda_tta.conditions.statistics import NAMES, statistics
from soda_tta.data import open_images
from soda_tta.demo import MIXED_BUDGET, picture_grid
from soda_tta.plotting import figure_factory
from soda_tta.types import Array
from soda_tta.zoo.digits import load_digits, mixed, train_and_export

PAGE = Path(__file__).parents[1] / "docs" / "concepts"
SHOWN = ("contrast", "noise")  # the two statistics that are drawn
STRANGE = 3  # images of random black and white pixels, unlike all conditions
MOST = 6  # Gaussians of the drawn criterion


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    digits = load_digits(seed=0)
    images, _ = mixed(digits.test, seed=0)
    images = np.rint(images * 255).astype(np.uint8)
    source = open_images(images)
    found = find_conditions(images)
    draw_sheet(source, found).save(PAGE / "conditions-sheet.png", optimize=True)
    draw_statistics(found)
    with tempfile.TemporaryDirectory() as folder:
        box = OnnxBox(train_and_export(digits, Path(folder) / "model.onnx", seed=0))
        run = adapt(images, box, budget=MIXED_BUDGET)
    draw_adapted(run, source[:])
    print(run.verdict and run.verdict.sentence)


def draw_statistics(found: Conditions) -> None:
    """Two statistics of every image with its condition, and the criterion by the number."""
    random = np.random.default_rng(0)
    strange = (random.random((STRANGE, 3, 16, 16)) > 0.5).astype(np.float32)

    columns = [NAMES.index(name) for name in SHOWN]
    rows = found.router.standardised(found.statistics)
    unfamiliar = found.router.standardised(statistics(strange))
    assert not found.router(strange).familiar.any()
    with figure_factory() as new_figure:
        figure = new_figure(8.4, 3.4)
        left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))
        for number, words in enumerate(found.words):
            own = rows[found.of_each == number][:, columns]
            left.scatter(*own.T, s=6, alpha=0.5, label=words)
        left.scatter(*unfamiliar[:, columns].T, marker="x", color="black", label="unfamiliar")
        left.set(xlabel=f"{SHOWN[0]} (standardised)", ylabel=f"{SHOWN[1]} (standardised)")
        left.legend(loc="upper left", fontsize=8)
        counts = range(1, MOST + 1)
        right.plot(counts, [fit(rows, count).criterion(rows) for count in counts], marker="o")
        right.set(xlabel="number of Gaussians", ylabel="BIC: the smallest is the best")
        figure.savefig(PAGE / "conditions-statistics.png", dpi=110)


def draw_adapted(run: Run, images: Array) -> None:
    """Typical images of each condition, as they are and as the model gets them."""
    assert run.conditions is not None
    rows = []
    for result in run.conditions:
        originals = images[list(result.examples)]
        rows += [originals, result.adaptor(originals)]
    picture_grid(rows, zoom=3).save(PAGE / "conditions-adapted.png", optimize=True)


if __name__ == "__main__":
    main()
