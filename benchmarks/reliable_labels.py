"""How many images count as reliable for each tau and rho, and how many of their labels are correct.

    python benchmarks/reliable_labels.py [--out results/reliable_labels.json]

Uses the cells of `soda-tta bench run selection`: one query per image, no training. Needs CIFAR-10
and its ResNet-20 (SODA_TTA_DATA). Labels are used only to measure. The table is part of
docs/research/reproduction.md.
"""

import argparse
import json
from pathlib import Path

import torch

from pages import NOT_RUN, markdown
from soda_tta.bench.grids import find_grid
from soda_tta.bench.measurement import accuracy, cell_images
from soda_tta.engine.card import versions
from soda_tta.objectives.reliable import Reliable


def measure() -> list[dict]:
    """The number of reliable images and the accuracy of their pseudo-labels."""
    rows: dict[tuple[float, float], dict] = {}
    responses: dict[str, tuple] = {}
    for cell in find_grid("selection"):
        if cell.corruption not in responses:  # reliability does not depend on alpha
            data = cell_images(cell)
            responses[cell.corruption] = cell.box()(data[slice(0, len(data))]), data.labels
        probabilities, labels = responses[cell.corruption]
        tau = cell.settings["tau"]
        rho = cell.settings["rho"]
        reliable = Reliable(tau=tau, rho=rho)(probabilities).reliable
        row = rows.setdefault((tau, rho), {"tau": tau, "rho": rho, "by_corruption": {}})
        row["by_corruption"][cell.corruption] = {
            "reliable": int(reliable.sum()),
            "correct": accuracy(probabilities[reliable], labels[reliable]),
        }
    return list(rows.values())


def table(path: Path) -> str:
    """The stored counts as a Markdown table."""
    if not path.exists():
        return NOT_RUN
    rows = json.loads(path.read_text())["rows"]
    header = ["tau", "rho"]
    for corruption in rows[0]["by_corruption"]:
        name = corruption.replace("_", " ")
        header += [f"{name}: reliable", f"{name}: of these correct"]
    lines = [header]
    for row in rows:
        line = [f"{row['tau']:g}", f"{row['rho']:g}"]
        for counts in row["by_corruption"].values():
            line += [str(counts["reliable"]), f"{counts['correct']:.0f} %"]
        lines.append(line)
    return markdown(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/reliable_labels.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    card = {
        "data": "cifar10, severity 5, 500 images",
        "model": "cifar10_resnet20",
        "queries_per_image": 1,
        "versions": versions(),
    }
    options.out.write_text(json.dumps({"card": card, "rows": measure()}, indent=1) + "\n")
    print(table(options.out))


if __name__ == "__main__":
    main()
