"""The experiments of the paper and ours by name, each at every scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from soda_tta.bench.cell import ORDERS, Cell
from soda_tta.bench.experiments import (
    COUNTS,
    ORDERED,
    ablation,
    affordable,
    blocks,
    blocks_start,
    cells,
    cifar100,
    convergence,
    deeper,
    deeper_contrast,
    directions,
    imagenet,
    kept_rates,
    main_table,
    office_home,
    online,
    online_batch,
    optimisers,
    other_rates,
    other_start,
    peers,
    rates,
    regularisation,
    selection,
    start,
    steps,
    yardstick,
)
from soda_tta.bench.grid_files import grid_from_toml
from soda_tta.bench.scales import FIVE, SCALES, Scale
from soda_tta.errors import MethodError

Grid = tuple[str, Callable[[Scale], list[Cell]]]
GRIDS: dict[str, Grid] = {
    "cifar10": ("every method on the 19 corruptions of CIFAR-10-C (the main table)", main_table),
    "cifar100": (
        "CIFAR-100-C: deployed, soda, soda-r, ma-so, bn, tent on a desk, every method in the paper's size",
        cifar100,
    ),
    "imagenet": (
        "ImageNet-C: gaussian noise and contrast on a desk, all 19 in the paper's size",
        imagenet,
    ),
    "small": (
        "a taste of the main table: four methods, five corruptions (make bench)",
        lambda s: cells(
            replace(s, seeds=1), ("deployed", "soda", "soda-fo", "bn"), FIVE, "cifar10"
        ),
    ),
    "yardstick": ("soda at the paper's 900 queries an image, 1,000 images", yardstick),
    "rates": (
        "soda, soda-fo, soda-o and da-zoo-input at the rates that lr=auto chooses from",
        rates,
    ),
    "rates-kept": (
        "soda-r and ma-so, which keep the paper's rate, at others, gaussian noise",
        kept_rates,
    ),
    "rates-cifar100": (
        "soda on CIFAR-100 at the rate of CIFAR-10, which a desk has there, and at a smaller",
        other_rates,
    ),
    "full-scale": (
        "soda in the paper's size: gaussian noise, 10,000 images, 150 epochs, 9 million queries",
        lambda s: [Cell(method="soda", images=10_000, curve=15)],
    ),
    "queries": (
        "number of directions q, and the true gradient",
        lambda s: [
            *ablation(s, "soda", q=affordable(s, 2, 5, 10, 20, 50)),
            *ablation(s, "soda-fo"),
        ],
    ),
    "steps": ("soda's queries as few directions in many steps, or the reverse", steps),
    "blocks": ("residual blocks, soda and soda-r", blocks),
    "blocks-start": ("the same from the images as they are", blocks_start),
    "deeper": (
        "does soda-r's network want more images or more steps? Beside soda-fo, gaussian noise",
        deeper,
    ),
    "deeper-contrast": (
        "the same on contrast, where it is furthest behind, with more of both",
        deeper_contrast,
    ),
    "start": (
        "soda, soda-fo and soda-r from random networks, as in the paper, and from images as they are",
        start,
    ),
    "start-cifar100": (
        "soda and soda-r on CIFAR-100 from random networks and from images as they are",
        other_start,
    ),
    "points": (
        "number of test images",
        lambda s: [
            cell
            for count in COUNTS
            if count <= 2 * s.images
            for cell in ablation(replace(s, images=count, sets=("cifar10",)), "soda")
        ],
    ),
    "online-epochs": (
        "soda-o: epochs a batch of 256",
        lambda s: online(s, arrival=[256], epochs=affordable(s, 5, 10, 30, 50, 100, 150)),
    ),
    "online-batch": ("soda-o: images a batch", online_batch),
    "online-queue": (
        "soda-o: images in the queue; a tenth as many on a desk, where hardly more than 500 arrive",
        lambda s: online(
            s, queue=[size if s.own_lr else size // 10 for size in (500, 1000, 2000, 3000)]
        ),
    ),
    "selection": ("tau x rho x alpha", selection),
    "alpha": (
        "does the cross-entropy term matter?",
        lambda s: ablation(s, "soda", alpha=[0.0, 1e-4, 1e-2, 1.0]),
    ),
    "sigma": ("directions as in the released code or as printed", directions),
    "released": (
        "labels in their place, or misaligned as in the released code",
        lambda s: ablation(s, "soda", alpha=[1e-4, 1.0], aligned=[True, False]),
    ),
    "average": (
        "answer with the adapted image, or with the mean of both answers",
        lambda s: [
            cell
            for method in ("soda", "soda-r", "da-pl")
            for cell in ablation(replace(s, sets=("cifar10",)), method, average=[False, True])
        ],
    ),
    "regularisation": ("perturbation norm on and off", regularisation),
    "optimisers": ("SGD and Adam", optimisers),
    "dropout": (
        "dropout on and off, both with two residual blocks",
        lambda s: [
            cell
            for method in ("soda", "soda-r")
            for cell in ablation(s, method, blocks=[2], dropout=[0.0, 0.5])
        ],
    ),
    "order": (
        "LAME, batch norm, Tent and soda-e on images as they come, and class by class",
        lambda s: [
            cell for order in ORDERS for cell in cells(s, ORDERED, FIVE, "cifar10", order=order)
        ],
    ),
    "peers": (
        "DINE and BETA after each of their stages, BETA with the adversarial term its paper means, both from networks "
        "trained on other images; on a desk also DINE with five times the epochs, and with four times the images",
        peers,
    ),
    "convergence": (
        "accuracy while learning: soda, soda-fo, soda-r",
        lambda s: convergence(s, ("soda", "soda-fo", "soda-r")),
    ),
    "convergence-300": (
        "the same for twice the epochs, soda",
        lambda s: convergence(s, ("soda",), times=2),
    ),
    "office-home": (
        "the paper's Office-Home protocol on PACS, photographs to sketches and cartoons",
        office_home,
    ),
}


def find_grid(name: str, scale: str = "desk") -> list[Cell]:
    """The cells of a built-in grid, or of a TOML file."""
    if scale not in SCALES:
        raise MethodError(f"there is no scale {scale!r}; choose one of {', '.join(SCALES)}.")
    if name.endswith(".toml"):
        return grid_from_toml(Path(name))
    if name not in GRIDS:
        raise MethodError(
            f"there is no grid {name!r}; choose one of {', '.join(GRIDS)}, or a .toml file."
        )
    return list({cell.key: cell for cell in GRIDS[name][1](SCALES[scale])}.values())
