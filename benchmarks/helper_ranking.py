"""Does a helper's preference among restorations hold for the model?

    python benchmarks/helper_ranking.py [--corruptions gaussian_noise ...] [--table]

Every single move of soda-e's bank and the image as it is, on CIFAR-10 at severity 5, for ResNet-20
with ResNet-32 as its helper. The helper scores each move by its mutual information on 256 images.
The model is asked about 512 others, of which the first 100 serve its own choice; labels measure the
accuracy of each move and choose nothing. Each chooser's regret is the accuracy of the best move
minus that of its own. "random" is the mean over all moves. "model, equal queries" spreads the 300
queries of a confirmation over all moves (ten images each). Writes results/helper_ranking.json.
"""

import argparse
import json
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from pages import markdown
from soda_tta import zoo
from soda_tta.adaptors import Bank
from soda_tta.adaptors.parts import moves
from soda_tta.bench.cell import Cell
from soda_tta.bench.measurement import cell_images
from soda_tta.bench.peer_grids import STANDARD
from soda_tta.engine.card import versions
from soda_tta.methods.helped.helper import find_helper
from soda_tta.objectives import mutual_information
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "results" / "helper_ranking.json"
MODEL, HELPER = "cifar10_resnet20", "cifar10_resnet32"
SCORED = 256  # images that the helper sees
ASKED = 512  # images that the model is asked about, to know each move's accuracy
CONFIRMED = 100  # of these, images on which the model confirms
SHORTLIST = 3  # moves that it compares with the image as it is


def measure(corruption: str) -> dict[str, Any]:
    """Rank correlation and regret on one corruption."""
    images = cell_images(Cell(method="deployed", corruption=corruption, images=SCORED + ASKED))
    labels = images.labels[SCORED:]
    bank = Bank.for_size(images.size).build()
    thetas = np.concatenate([np.zeros((1, bank.parameters.size)), moves()])
    box = zoo.deployed(MODEL, threads=1)
    helper = find_helper(HELPER, "the benchmark")
    seen = bank.candidates(images[slice(0, SCORED)], thetas)
    preference = np.array([mutual_information(helper.answers(each)) for each in seen])
    asked = bank.candidates(images[slice(SCORED, SCORED + ASKED)], thetas)
    rows = np.array([box(each) for each in asked])
    accuracy = 100 * (rows.argmax(axis=2) == labels).mean(axis=1)
    information = np.array([mutual_information(each) for each in rows])
    confirmed = np.array([mutual_information(each[:CONFIRMED]) for each in rows])
    few = SHORTLIST * CONFIRMED // len(thetas) + 1
    cheap = np.array([mutual_information(each[:few]) for each in rows])
    best = shortlist(preference)
    picks = {
        "helper alone": int(preference.argmax()),
        "helper, then model": best[int(confirmed[best].argmax())],
        "model, equal queries": int(cheap.argmax()),
        "model, 100 images per move": int(confirmed.argmax()),
    }
    regret = {name: float(accuracy.max() - accuracy[pick]) for name, pick in picks.items()}
    regret["random"] = float(accuracy.max() - accuracy[1:].mean())
    return {
        "as it is": round(float(accuracy[0]), 1),
        "best move": round(float(accuracy.max()), 1),
        "rank correlation, helper": round(float(spearmanr(preference, accuracy)[0]), 2),
        "rank correlation, model": round(float(spearmanr(information, accuracy)[0]), 2),
        "regret": {name: round(value, 1) for name, value in regret.items()},
    }


def shortlist(preference: Array) -> list[int]:
    """The image as it is, and the moves that the helper prefers."""
    order = [int(move) for move in np.argsort(-preference, kind="stable") if move]
    return [0, *order[:SHORTLIST]]


def table(results: dict[str, Any]) -> str:
    """One row per corruption, and the mean."""
    rows = results["rows"]
    names = list(next(iter(rows.values()))["regret"])
    facts = ("as it is", "best move", "rank correlation, helper", "rank correlation, model")
    lines = [["", *facts, *(f"regret: {name}" for name in names)]]
    for corruption, row in rows.items():
        figures = [f"{row[fact]:g}" for fact in facts]
        regrets = [f"{row['regret'][name]:.1f}" for name in names]
        lines.append([corruption.replace("_", " "), *figures, *regrets])
    means = [f"{mean(row[fact] for row in rows.values()):.2f}" for fact in facts]
    regrets = [f"{mean(row['regret'][name] for row in rows.values()):.1f}" for name in names]
    lines.append([f"mean of {len(rows)}", *means, *regrets])
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corruptions", nargs="+", default=list(STANDARD))
    parser.add_argument("--table", action="store_true", help="only print what is stored")
    options = parser.parse_args()
    card = {"model": MODEL, "helper": HELPER, "scored": SCORED, "asked": ASKED, "seed": 0}
    results = {"card": {**card, "versions": versions()}, "rows": {}}
    if OUT.exists():
        results["rows"] = json.loads(OUT.read_text())["rows"]
    for corruption in [] if options.table else options.corruptions:
        if corruption not in results["rows"]:
            results["rows"][corruption] = measure(corruption)
            OUT.write_text(json.dumps(results, indent=1) + "\n")
            print(corruption, results["rows"][corruption], flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
