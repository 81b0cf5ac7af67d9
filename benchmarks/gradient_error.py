"""How far is the estimated gradient from the true one, and does the reliable split help?

    python benchmarks/gradient_error.py [--out results/gradient_error.json]

The paper argues (section 3.4) that splitting reliable from unreliable images tightens a bound on
the expected error of the estimated gradient. On a white box the error itself can be measured:
||estimate - gradient|| over many draws of directions, for objectives without the split
(cross-entropy on every pseudo-label, mutual information of every image) and with it (SODA's).
A useful gradient points where the true labels would point: the last columns give its cosine with
the gradient of their cross-entropy.

Needs the real CIFAR-10 images and ResNet-20 (SODA_TTA_DATA). Labels are used only to measure. The
table is part of docs/research/reproduction.md.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import torch

from pages import NOT_RUN, markdown
from soda_tta import adapt, zoo
from soda_tta.box import Meter
from soda_tta.data import Corrupted, load_dataset
from soda_tta.engine.card import versions
from soda_tta.engine.step import Batch, Task, loss_and_gradient
from soda_tta.methods import find_method
from soda_tta.objectives.equations import PseudoLabels, Soda
from soda_tta.objectives.reliable import Reliable, Selection

MODEL = "cifar10_resnet20"
CORRUPTIONS = ("gaussian_noise", "contrast")  # one noise, one tone
IMAGES = 128  # one batch: the expectation is over directions, not over batches
DIRECTIONS = 300  # 60 estimates with the paper's q = 5, or 6 with q = 50
Q = (5, 50)  # directions per estimate: the paper's, and ten times as many
MU = 1e-3  # the paper's
SIGMA = 0.1  # as in the released code
TRAINING = dict(epochs=10, lr=0.01)  # soda-fo: an adaptor after a little training
NO_SPLIT = "information of all (no split)"
TRUE_LABELS = "true labels"
OBJECTIVES = {
    "all pseudo-labels (no split)": PseudoLabels(),
    NO_SPLIT: Soda(alpha=0.0),
    "split, alpha 1e-4 (SODA)": Soda(alpha=1e-4),
    "split, alpha 1": Soda(alpha=1.0),
    TRUE_LABELS: PseudoLabels(),
}


def cosine(first, second) -> float:
    """The cosine of the angle between two vectors."""
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def selections_for(probabilities, labels) -> dict[str, Selection]:
    """By objective: the labels it uses and which images count as reliable."""
    reliable = Reliable()(probabilities)
    selections = dict.fromkeys(OBJECTIVES, reliable)
    selections[TRUE_LABELS] = Selection(labels, reliable.reliable)
    selections[NO_SPLIT] = Selection(reliable.labels, np.zeros(IMAGES, bool))
    return selections


def losses_along(directions, adaptor, theta, pixels, box, selections) -> dict[str, np.ndarray]:
    """Each objective at theta, then at every direction; one response serves all objectives."""
    losses = {name: np.empty(len(directions) + 1) for name in OBJECTIVES}
    for index, shift in enumerate([np.zeros(theta.size), *directions]):
        probabilities = box(adaptor.candidates(pixels, (theta + MU * shift)[None])[0])
        for name, objective in OBJECTIVES.items():
            selection = selections[name]
            loss = objective(probabilities, selection.labels, selection.reliable)
            losses[name][index] = loss.value
    return losses


def error_of_estimates(losses, directions, gradient, wanted) -> dict[str, float]:
    """Errors and cosines of the estimates from q directions, for each q."""
    facts = {}
    slopes = (losses[1:] - losses[0]) / MU
    norm = float(np.linalg.norm(gradient))
    for q in Q:
        # Eq. 1 estimates sigma^2 times the gradient; the factor is divided out here
        estimates = [
            slopes[s : s + q] @ directions[s : s + q] / q / SIGMA**2
            for s in range(0, DIRECTIONS, q)
        ]
        errors = [float(np.linalg.norm(estimate - gradient)) for estimate in estimates]
        facts[f"error_q{q}"] = float(np.mean(errors))
        facts[f"deviation_q{q}"] = float(np.std(errors, ddof=1))
        facts[f"relative_q{q}"] = facts[f"error_q{q}"] / norm
        facts[f"cosine_q{q}"] = float(np.mean([cosine(each, wanted) for each in estimates]))
    return facts


def measure(images, labels, corruption: str, point: str) -> list[dict]:
    """One row per objective, at an untrained or a trained adaptor."""
    white = zoo.deployed(MODEL, "module")
    black = zoo.deployed(MODEL, "onnx", threads=1)
    adaptor = find_method("soda").adaptor.build(seed=0)
    if point == "learned":
        adaptor = adapt(images, white, method="soda-fo", **TRAINING).adaptor
    pixels = images[slice(0, IMAGES)]
    theta = adaptor.parameters.astype(np.float64)
    selections = selections_for(black(pixels), labels)
    directions = SIGMA * np.random.default_rng(1).standard_normal((DIRECTIONS, theta.size))
    losses = losses_along(directions, adaptor, theta, pixels, black, selections)
    gradients = {}
    for name, objective in OBJECTIVES.items():
        task = Task(
            images=images,
            meter=Meter(white),
            selection=selections[name],
            objective=objective,
            batch=IMAGES,
            seed=0,
            reserve=0,
        )
        batch = Batch(task, white, adaptor, np.arange(IMAGES), noise=0)
        gradient = loss_and_gradient(batch, theta)[1]
        gradients[name] = gradient.astype(np.float64)
    predictions = black(adaptor.candidates(pixels, theta[None])[0]).argmax(axis=1)
    rows = []
    for name in OBJECTIVES:
        row = {
            "corruption": corruption,
            "point": point,
            "accuracy": 100 * float((predictions == labels).mean()),
            "objective": name,
            "reliable": int(selections[TRUE_LABELS].reliable.sum()),
            "norm": float(np.linalg.norm(gradients[name])),
            "cosine": cosine(gradients[name], gradients[TRUE_LABELS]),
        }
        row |= error_of_estimates(losses[name], directions, gradients[name], gradients[TRUE_LABELS])
        rows.append(row)
    return rows


def table(path: Path) -> str:
    """The stored rows as a Markdown table."""
    if not path.exists():
        return NOT_RUN
    header = ["corruption", "adaptor", "objective", "gradient", "error, q = 5", "error / gradient"]
    header += ["error / gradient, q = 50", "cosine of the gradient"]
    lines = [[*header, "cosine of an estimate, q = 5", "cosine of an estimate, q = 50"]]
    for row in json.loads(path.read_text())["rows"]:
        line = [row["corruption"].replace("_", " "), f"{row['point']}, {row['accuracy']:.0f} %"]
        line += [row["objective"], f"{row['norm']:.3g}", f"{row['error_q5']:.3g}"]
        line += [f"{row[name]:.1f}" for name in ("relative_q5", "relative_q50")]
        line += [f"{row[name]:.3f}" for name in ("cosine", "cosine_q5", "cosine_q50")]
        lines.append(line)
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/gradient_error.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    clean = load_dataset("cifar10").subset(slice(0, IMAGES))
    rows = []
    for corruption in CORRUPTIONS:
        images = Corrupted(clean, corruption, 5)
        for point in ("untrained", "learned"):
            rows += measure(images, clean.labels, corruption, point)
            print(f"measured {corruption}, {point}", flush=True)
    parameters = find_method("soda").adaptor.build(seed=0).parameters.size
    card = {
        "model": MODEL,
        "box": zoo.deployed(MODEL).fingerprint(),
        "data": clean.fingerprint(),
        "images": IMAGES,
        "severity": 5,
        "directions": DIRECTIONS,
        "mu": MU,
        "sigma": SIGMA,
        "learned": TRAINING,
        "seed": 0,
        "parameters": parameters,
        # what Gaussian directions give: sqrt((d + 1) / q)
        "expected_relative": {q: float(np.sqrt((parameters + 1) / q)) for q in Q},
        "versions": versions(),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"card": card, "rows": rows}, indent=1) + "\n")
    print(table(options.out))
    print(f"\nGaussian directions give a relative error of about {card['expected_relative']}")


if __name__ == "__main__":
    main()
