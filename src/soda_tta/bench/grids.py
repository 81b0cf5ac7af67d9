"""The built-in grids by name: the paper's experiments and ours, each at every scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from soda_tta.bench import ablations, experiments, peer_grids
from soda_tta.bench.ablations import affordable
from soda_tta.bench.cell import ORDERS, Cell
from soda_tta.bench.experiments import ablation, cells
from soda_tta.bench.grid_files import grid_from_toml
from soda_tta.bench.scales import FIVE, SCALES, Scale
from soda_tta.errors import MethodError

Grid = tuple[str, Callable[[Scale], list[Cell]]]  # what it measures, and its cells
GRIDS: dict[str, Grid] = {
    "cifar10": (
        "every method on the 19 corruptions of CIFAR-10-C (the main table)",
        experiments.main_table,
    ),
    "cifar100": (
        "CIFAR-100-C: deployed, soda, soda-r, ma-so, bn, tent; every method at paper scale",
        experiments.cifar100,
    ),
    "imagenet": (
        "ImageNet-C: gaussian noise and contrast; all 19 corruptions at paper scale",
        experiments.imagenet,
    ),
    "small": (
        "a sample of the main table: four methods, five corruptions",
        lambda scale: cells(
            replace(scale, seeds=1), ("deployed", "soda", "soda-fo", "bn"), FIVE, "cifar10"
        ),
    ),
    "yardstick": (
        "soda at the paper's 900 queries per image, 1,000 images",
        experiments.yardstick,
    ),
    "rates": (
        "soda, soda-fo, soda-o and da-zoo-input at the rates that lr=auto chooses from",
        experiments.rates,
    ),
    "rates-kept": (
        "soda-r and ma-so, which keep the paper's rate, at other rates, gaussian noise",
        experiments.kept_rates,
    ),
    "rates-cifar100": (
        "soda on CIFAR-100 at the desk scale's rate, that of CIFAR-10, and at a smaller one",
        experiments.other_rates,
    ),
    "full-scale": (
        "soda at the paper's size: gaussian noise, 10,000 images, 150 epochs, 9 million queries",
        lambda scale: [Cell(method="soda", images=10_000, curve=15)],
    ),
    "queries": (
        "number of directions q, and the true gradient",
        lambda scale: [
            *ablation(scale, "soda", directions=affordable(scale, 2, 5, 10, 20, 50)),
            *ablation(scale, "soda-fo"),
        ],
    ),
    "steps": (
        "soda's queries as few directions in many steps, or the reverse",
        ablations.steps,
    ),
    "blocks": ("residual blocks, soda and soda-r", ablations.blocks),
    "blocks-start": ("residual blocks, starting from unchanged images", ablations.blocks_start),
    "deeper": (
        "does soda-r's network need more images or more steps? With soda-fo, gaussian noise",
        experiments.deeper,
    ),
    "deeper-contrast": (
        "the same on contrast, where it is furthest behind, with more of both",
        experiments.deeper_contrast,
    ),
    "start": (
        "soda, soda-fo, soda-r from random networks, as in the paper, and from unchanged images",
        ablations.start,
    ),
    "start-cifar100": (
        "soda and soda-r on CIFAR-100 from random networks and from unchanged images",
        ablations.start_cifar100,
    ),
    "points": ("number of test images", ablations.image_counts),
    "online-epochs": (
        "soda-o: epochs per batch of 256",
        lambda scale: ablation(
            scale, "soda-o", arrival=[256], epochs=affordable(scale, 5, 10, 30, 50, 100, 150)
        ),
    ),
    "online-batch": ("soda-o: images per batch", ablations.online_batch),
    "online-queue": (
        "soda-o: images in the queue; a tenth as many at the desk scale, where about 500 arrive",
        ablations.online_queue,
    ),
    "selection": ("tau x rho x alpha", ablations.selection),
    "alpha": (
        "does the cross-entropy term matter?",
        lambda scale: ablation(scale, "soda", alpha=[0.0, 1e-4, 1e-2, 1.0]),
    ),
    "sigma": (
        "directions as in the released code, or as in the paper",
        ablations.direction_scale,
    ),
    "released": (
        "labels in their place, or misaligned as in the released code",
        lambda scale: ablation(scale, "soda", alpha=[1e-4, 1.0], aligned=[True, False]),
    ),
    "average": (
        "answer for the adapted image, or the mean of the answers before and after",
        lambda scale: ablations.both(
            replace(scale, sets=("cifar10",)),
            ("soda", "soda-r", "da-pl"),
            average=[False, True],
        ),
    ),
    "regularisation": ("perturbation norm on and off", ablations.regularisation),
    "optimisers": ("SGD and Adam", ablations.optimisers),
    "dropout": (
        "dropout on and off, both with two residual blocks",
        lambda scale: ablations.both(scale, blocks=[2], dropout=[0.0, 0.5]),
    ),
    "order": (
        "LAME, batch norm, Tent and soda-e on images in the given order, and sorted by class",
        lambda scale: [
            cell
            for order in ORDERS
            for cell in cells(scale, experiments.ORDERED, FIVE, "cifar10", order=order)
        ],
    ),
    "peers": (
        "DINE and BETA after each stage, BETA with the adversarial term its paper intends, both "
        "from networks trained on other images; at the desk scale also DINE with five times the "
        "epochs, and with four times the images",
        experiments.peers,
    ),
    "peers-cifar10": (
        "beta26 with its controls, test-time augmentation and soda-e with a helper: ResNet-20 with "
        "ResNet-32, and the reverse; sorted images and small batches",
        peer_grids.cifar10,
    ),
    "peers-imagenet": (
        "the same on ImageNet: int8 MobileNetV2 with EfficientNet-Lite0; at the paper scale also "
        "ResNet-50",
        peer_grids.imagenet,
    ),
    "convergence": (
        "accuracy while learning: soda, soda-fo, soda-r",
        lambda scale: ablations.convergence(scale, ("soda", "soda-fo", "soda-r")),
    ),
    "convergence-300": (
        "the same for twice the epochs, soda",
        lambda scale: ablations.convergence(scale, ("soda",), times=2),
    ),
    "office-home": (
        "the paper's Office-Home protocol on PACS, photographs to sketches and cartoons",
        experiments.office_home,
    ),
}


def find_grid(name: str, scale: str = "desk") -> list[Cell]:
    """The cells of a grid.

    Parameters
    ----------
    name : a built-in grid (`soda-tta bench list`), or the path of a .toml file.
    scale : "paper", "desk" (default) or "tiny"; a file has its own sizes.

    Examples
    --------
    >>> len(find_grid("yardstick"))
    25
    """
    if scale not in SCALES:
        raise MethodError(f"there is no scale {scale!r}; choose one of {', '.join(SCALES)}.")
    if name.endswith(".toml"):
        return grid_from_toml(Path(name))
    if name not in GRIDS:
        raise MethodError(
            f"there is no grid {name!r}; choose one of {', '.join(GRIDS)}, or a .toml file."
        )
    return list({cell.key: cell for cell in GRIDS[name][1](SCALES[scale])}.values())
