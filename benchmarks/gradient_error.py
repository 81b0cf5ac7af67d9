"""How far is the estimated gradient from the true one, and does splitting reliable from unreliable images help?

    python benchmarks/gradient_error.py [--out results/gradient_error.json]

The paper argues (its section 3.4) that the split tightens a bound on the expected error of the estimated gradient. On a
white box the error itself can be measured: ||estimate - gradient|| over many draws of directions, for objectives
without the split (cross-entropy on every pseudo-label, mutual information of every image) and with it (SODA's). What an
engineer wants of a gradient is that it points where the true labels would: the last columns give its cosine with the
gradient of their cross-entropy.
Needs the real CIFAR-10 images and ResNet-20 (SODA_TTA_DATA); labels are used to measure only.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch

from soda_tta import adapt, zoo
from soda_tta.box import Ledger
from soda_tta.data import Corrupted, load_dataset
from soda_tta.engine.run import versions
from soda_tta.engine.step import Task, loss_and_gradient
from soda_tta.methods import find_method
from soda_tta.objectives.equations import PseudoLabels, Soda
from soda_tta.objectives.reliable import Reliable, Selection

MODEL = "cifar10_resnet20"
CORRUPTIONS = ("gaussian_noise", "contrast")  # one noise, one tone
IMAGES = 128  # of one batch: the expectation here is over directions, not over batches
DIRECTIONS = 300  # 60 draws of the paper's q = 5, or 6 of q = 50
Q = (5, 50)
MU, SIGMA = 1e-3, 0.1  # as in the paper's recipe
LEARNED = dict(epochs=10, lr=0.01)  # where an adaptor is after a little learning (soda-fo)
OBJECTIVES = {
    "all pseudo-labels (no split)": PseudoLabels(),
    "information of all (no split)": Soda(alpha=0.0),
    "split, alpha 1e-4 (SODA)": Soda(alpha=1e-4),
    "split, alpha 1": Soda(alpha=1.0),
    "true labels": PseudoLabels(),
}


def cosine(first, second) -> float:
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def measure(images, labels, corruption: str, point: str) -> list[dict]:
    white, black = zoo.deployed(MODEL, "module"), zoo.deployed(MODEL, "onnx", threads=1)
    adaptor = find_method("soda").adaptor.build(seed=0)
    if point == "learned":
        adaptor = adapt(images, white, "soda-fo", **LEARNED).adaptor
    pixels, indices, theta = (
        images[slice(0, IMAGES)],
        np.arange(IMAGES),
        adaptor.parameters.astype(np.float64),
    )
    trusted = Reliable()(black(pixels))
    truth = Selection(labels, trusted.reliable)
    selections = dict.fromkeys(OBJECTIVES, trusted) | {
        "true labels": truth,
        "information of all (no split)": Selection(trusted.labels, np.zeros(IMAGES, bool)),
    }

    # one set of answers serves every objective, so that they differ in nothing but themselves
    drawn = SIGMA * np.random.default_rng(1).standard_normal((DIRECTIONS, theta.size))
    losses = {name: np.empty(DIRECTIONS + 1) for name in OBJECTIVES}
    for number, shift in enumerate([np.zeros(theta.size), *drawn]):
        rows = black(adaptor.candidates(pixels, (theta + MU * shift)[None])[0])
        for name, objective in OBJECTIVES.items():
            losses[name][number] = objective(
                rows, selections[name].labels, selections[name].reliable
            ).value

    answers = black(adaptor.candidates(pixels, theta[None])[0]).argmax(axis=1)
    right = 100 * float((answers == labels).mean())  # what the adaptor is worth at this point
    found, gradients = [], {}
    for name, objective in OBJECTIVES.items():
        task = Task(images, white, Ledger(), selections[name], objective, IMAGES, 0, 0)
        gradients[name] = loss_and_gradient(task, white, adaptor, theta, indices, 0)[1].astype(
            np.float64
        )
    wanted = gradients["true labels"]
    for name in OBJECTIVES:
        slopes, gradient = (losses[name][1:] - losses[name][0]) / MU, gradients[name]
        row = {"corruption": corruption, "point": point, "accuracy": right, "objective": name}
        row["reliable"] = int(trusted.reliable.sum())
        row |= {"norm": float(np.linalg.norm(gradient)), "cosine": cosine(gradient, wanted)}
        for q in Q:
            # sigma^2 times the gradient is what Eq. 1 estimates; here it is divided out
            estimates = [
                slopes[s : s + q] @ drawn[s : s + q] / q / SIGMA**2 for s in range(0, DIRECTIONS, q)
            ]
            errors = [float(np.linalg.norm(estimate - gradient)) for estimate in estimates]
            row[f"error_q{q}"] = float(np.mean(errors))
            row[f"deviation_q{q}"] = float(np.std(errors, ddof=1))
            row[f"relative_q{q}"] = row[f"error_q{q}"] / row["norm"]
            row[f"cosine_q{q}"] = float(
                np.mean([cosine(estimate, wanted) for estimate in estimates])
            )
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/gradient_error.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    clean = load_dataset("cifar10").subset(slice(0, IMAGES))
    print(
        "| corruption | adaptor | objective | gradient | error, q = 5 | relative | relative, q = 50 | cosine "
        "| of an estimate, q = 5 | q = 50 |\n|" + "---|" * 10
    )
    rows = []
    for corruption in CORRUPTIONS:
        images = Corrupted(clean, corruption, 5)
        for point in ("untrained", "learned"):
            for row in measure(images, clean.labels, corruption, point):
                rows.append(row)
                told = [
                    corruption,
                    f"{point}, {row['accuracy']:.0f} %",
                    row["objective"],
                    f"{row['norm']:.3f}",
                ]
                told += [f"{row[name]:.1f}" for name in ("error_q5", "relative_q5", "relative_q50")]
                told += [f"{row[name]:.3f}" for name in ("cosine", "cosine_q5", "cosine_q50")]
                print(f"| {' | '.join(told)} |", flush=True)
    d = find_method("soda").adaptor.build(seed=0).parameters.size
    card = {
        "model": MODEL,
        "box": zoo.deployed(MODEL).fingerprint(),
        "data": clean.fingerprint(),
        "images": IMAGES,
        "severity": 5,
        "directions": DIRECTIONS,
        "mu": MU,
        "sigma": SIGMA,
        "learned": LEARNED,
        "seed": 0,
        "parameters": d,
        "expected_relative": {q: float(np.sqrt((d + 1) / q)) for q in Q},
        "versions": versions(),
    }
    print(
        f"\nFor Gaussian directions the relative error is about sqrt((d + 1) / q): {card['expected_relative']}"
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"card": card, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
