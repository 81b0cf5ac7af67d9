"""soda-e against the white boxes and the paper's SODA: same images, same box, same ledger, severity 5.

    python benchmarks/economy.py run cifar10 --jobs 2      # parts: see PARTS; killed, it goes on where it was
    python benchmarks/economy.py table                     # every table of docs/economy.md, from results/economy

No number of soda-e was chosen on what is reported here: see docs/economy.md for what it was developed on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.bench import Cell, Store, run_grid
from soda_tta.data.corruptions import CORRUPTIONS

FIVE = ("gaussian_noise", "defocus_blur", "contrast", "pixelate", "jpeg_compression")  # where the yardstick was run
SIX = ("gaussian_noise", "impulse_noise", "defocus_blur", "fog", "contrast", "jpeg_compression")
DEVELOPED = ("shot_noise", "motion_blur", "frost", "contrast", "jpeg_compression", "brightness")
ALL = 10_000  # every image of the CIFAR test sets
LITE = "imagenet_efficientnet_lite0"
RESULTS = Path(__file__).parent.parent / "results" / "economy"


def cifar(data: str, method: str, images: int = ALL, corruptions: Any = CORRUPTIONS, **facts: Any) -> list[Cell]:
    model = facts.pop("model", f"{data}_resnet20")
    return [Cell(method=method, data=data, model=model, corruption=c, images=images, **facts) for c in corruptions]


PARTS: dict[str, Callable[[], list[Cell]]] = {
    "cifar10": lambda: [
        *cifar("cifar10", "soda-e", budget=3),
        *cifar("cifar10", "bn"),
        *cifar("cifar10", "tent"),
    ],
    "cifar100": lambda: [*cifar("cifar100", "soda-e", budget=4), *cifar("cifar100", "bn"), *cifar("cifar100", "tent")],
    "few": lambda: cifar("cifar10", "soda-e", images=200, budget=30),
    "clean": lambda: [
        *cifar("cifar10", "soda-e", corruptions=["clean"], budget=3),
        *cifar("cifar100", "soda-e", corruptions=["clean"], budget=4),
        Cell(method="soda-e", data="imagenet-1000", model=LITE, corruption="clean", images=1000, budget=15),
    ],
    "architecture": lambda: [
        *cifar("cifar10", "soda-e", images=2000, model="cifar10_resnet32", budget=9),
        *cifar("cifar10", "bn", images=2000, model="cifar10_resnet32"),
    ],
    "imagenet": lambda: [
        Cell(method="soda-e", data="imagenet-1000", model=LITE, corruption=c, images=1000, budget=15) for c in SIX
    ],
    "white": lambda: [
        *cifar("cifar10", "ma-so", images=1000, corruptions=FIVE, numbers={"epochs": 30}),
        *cifar("cifar10", "soda-e", images=1000, corruptions=FIVE, budget=15),
    ],
    "curve": lambda: [
        *(c for q in (3, 5, 10, 30, 100) for c in cifar("cifar10", "soda-e", images=1000, corruptions=SIX, budget=q)),
        *(
            c
            for q in (30, 100)
            for c in cifar("cifar10", "soda", images=1000, corruptions=SIX, budget=q, numbers={"lr": 0.03})
        ),
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("part", choices=PARTS)
    run.add_argument("--jobs", type=int, default=2)
    for command in (run, commands.add_parser("table")):
        command.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    store = Store(options.out)
    if options.command == "run":
        run_grid(PARTS[options.part](), store, jobs=options.jobs, report=say)
    else:
        print(json.dumps(summary(store), indent=2))


def say(cell: Cell, result: dict[str, Any]) -> None:
    print(
        f"{cell.data} {cell.corruption:<18} {cell.method:<8} {result['before']:5.1f} -> {result['after']:5.1f} "
        f"at {result['queries_an_image']:6.2f} queries an image, {result['seconds']:.0f} s",
        flush=True,
    )


def summary(store: Store) -> dict[str, Any]:
    """Mean accuracy and queries of each part and method."""
    found: dict[str, Any] = {}
    for name, cells in ((name, part()) for name, part in PARTS.items()):
        for method in dict.fromkeys(cell.method for cell in cells):
            results = [store.results[cell.key]["result"] for cell in cells if cell.method == method and cell in store]
            if results:
                found[f"{name} {method}"] = {
                    "cells": len(results),
                    "before": round(float(np.mean([each["before"] for each in results])), 2),
                    "after": round(float(np.mean([each["after"] for each in results])), 2),
                    "queries_an_image": round(float(np.mean([each["queries_an_image"] for each in results])), 2),
                }
    return found


if __name__ == "__main__":
    main()
