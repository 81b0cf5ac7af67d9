"""The cells of the paper's ablations: one setting of a method varies; `grids.py` names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from soda_tta.bench.cell import Cell
from soda_tta.bench.experiments import STARTED, STARTS, ablation
from soda_tta.bench.scales import FIVE, PAIR, RATES, Scale

IMAGE_COUNTS = (50, 100, 500, 1000, 5000, 10_000)
THRESHOLDS = [0.1, 0.3, 0.5, 0.7, 0.9]
CURVE_POINTS = 30  # about as many measurements per convergence curve


def affordable(scale: Scale, *values: int) -> list[int]:
    """The paper's values; at the desk scale the first four, which cost a third."""
    return list(values if scale.paper_lr else values[:4])


def image_counts(scale: Scale) -> list[Cell]:
    """soda with more and fewer test images, up to twice those of the scale."""
    return [
        cell
        for count in IMAGE_COUNTS
        if count <= 2 * scale.images
        for cell in ablation(replace(scale, images=count, sets=("cifar10",)), "soda")
    ]


def selection(scale: Scale) -> list[Cell]:
    """tau, rho and alpha on gaussian noise; at the desk scale fewer values, and contrast too."""
    if scale.paper_lr:
        taus = [round(0.1 * step, 1) for step in range(1, 10)]
        rhos = THRESHOLDS
        corruptions: tuple[str, ...] = PAIR[:1]
    else:
        taus = THRESHOLDS[::2]
        rhos = THRESHOLDS[::2]
        corruptions = PAIR
    cifar10 = replace(scale, sets=("cifar10",))
    return ablation(cifar10, "soda", corruptions, tau=taus, rho=rhos, alpha=[1e-4, 1e-3, 1e-2])


def direction_scale(scale: Scale) -> list[Cell]:
    """sigma, the deviation of the directions.

    The estimate grows with sigma squared. At the desk scale sigma 1 also runs with smaller rates,
    down to the one that makes steps of the same size.
    """
    grid = ablation(scale, "soda", sigma=[0.1, 1.0])
    if not scale.paper_lr:
        grid += ablation(scale, "soda", sigma=[1.0], lr=[1e-3, RATES["soda"] / 100])
    return grid


def steps(scale: Scale) -> list[Cell]:
    """soda's queries split into more steps with fewer directions, or the reverse.

    Estimates from fewer directions are noisier; at the desk scale they also run at a smaller rate.
    """
    scales = {
        directions: replace(scale, epochs=scale.epochs * 6 // (directions + 1))
        for directions in (1, 2, 5, 8, 17)
    }
    grid: list[Cell] = []
    for directions, as_many_queries in scales.items():
        grid += ablation(as_many_queries, "soda", directions=[directions])
    if not scale.paper_lr:
        for directions in (1, 2):
            grid += ablation(scales[directions], "soda", directions=[directions], lr=[0.01])
    return grid


def optimisers(scale: Scale) -> list[Cell]:
    """SGD and Adam, which need different rates.

    At the desk scale, each has its own: chosen without labels, or that of the method.
    """
    chosen: dict[str, Any] = {} if scale.paper_lr else {"lr": ["auto"]}
    first_order: dict[str, Any] = {} if scale.paper_lr else {"lr": [RATES["soda-fo"]]}
    return [
        *ablation(scale, "soda", step=["sgd"]),
        *ablation(scale, "soda", step=["adam"], **chosen),
        *ablation(scale, "soda-r", step=["sgd"], **first_order),
        *ablation(scale, "soda-r", step=["adam"]),
    ]


def start(scale: Scale) -> list[Cell]:
    """Both starts, with ma-so for comparison: the paper's SODA-R surpasses it."""
    return starts(scale, STARTED, scale.corruptions if scale.paper_lr else FIVE)


def start_cifar100(scale: Scale) -> list[Cell]:
    """The same on CIFAR-100 for soda and soda-r."""
    return starts(replace(scale, sets=("cifar100",)), ("soda", "soda-r"), FIVE)


def starts(scale: Scale, methods: Sequence[str], corruptions: Sequence[str]) -> list[Cell]:
    """Methods from a random network and from unchanged images; and ma-so."""
    grid: list[Cell] = []
    for method in methods:
        grid += ablation(scale, method, corruptions, start=STARTS)
    return [*grid, *ablation(scale, "ma-so", corruptions)]


def blocks(scale: Scale) -> list[Cell]:
    """The number of residual blocks."""
    return both(scale, blocks=[0, 1, 2, 3])


def blocks_start(scale: Scale) -> list[Cell]:
    """The same from unchanged images.

    The desk scale has none and two: enough to separate the start's effect from that of the blocks.
    """
    counts = [0, 1, 2, 3] if scale.paper_lr else [0, 2]
    return both(scale, ("soda-r", "soda"), blocks=counts, start=[0.0])


def both(scale: Scale, methods: Sequence[str] = ("soda", "soda-r"), **choices: Any) -> list[Cell]:
    """The same ablation of two methods."""
    return [cell for method in methods for cell in ablation(scale, method, **choices)]


def regularisation(scale: Scale) -> list[Cell]:
    """Without and with the norm of the perturbation, at the paper's beta of each data set."""
    return [
        cell
        for data, beta in zip(scale.sets, (0.005, 0.01), strict=False)
        for cell in both(replace(scale, sets=(data,)), beta=[0.0, beta])
    ]


def convergence(scale: Scale, methods: Sequence[str], times: int = 1) -> list[Cell]:
    """Accuracy while learning on gaussian noise; at the desk scale on contrast too.

    `times` multiplies the epochs.
    """
    longer = replace(scale, epochs=times * scale.epochs)
    corruptions = PAIR[:1] if scale.paper_lr else PAIR
    interval = max(1, longer.epochs // CURVE_POINTS)
    return [
        cell for method in methods for cell in ablation(longer, method, corruptions, curve=interval)
    ]


def online_batch(scale: Scale) -> list[Cell]:
    """soda-o with other batch sizes.

    The smallest batch makes four times as many steps as the usual one. At the desk scale it
    therefore also runs at a smaller rate.
    """
    grid = ablation(scale, "soda-o", arrival=[32, 64, 128, 256])
    if not scale.paper_lr:
        grid += ablation(scale, "soda-o", arrival=[32], lr=[0.01])
    return grid


def online_queue(scale: Scale) -> list[Cell]:
    """soda-o with other queue lengths; a tenth at the desk scale, where only 500 images arrive."""
    divisor = 1 if scale.paper_lr else 10
    lengths = [length // divisor for length in (500, 1000, 2000, 3000)]
    return ablation(scale, "soda-o", queue=lengths)
