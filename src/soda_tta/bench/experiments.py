"""The cells of the main tables and of our own experiments; `grids.py` gives them names."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from soda_tta.bench.cell import CLEAN, Cell
from soda_tta.bench.scales import FIVE, PAIR, RATES, Scale
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.methods import all_methods
from soda_tta.methods.loop_method import LEARNING_RATES

# These methods follow another protocol and have no row in the main table.
OWN_PROTOCOL = {"soda-auto", "soda-office-home", "soda-r-office-home", "beta26", "tta", "zero"}
SIX = ("deployed", "soda", "soda-r", "ma-so", "bn", "tent")  # instead of all, where time is short
RATED = (*PAIR, "spatter")  # on spatter, one of the rates does harm
ORDERED = ("deployed", "lame", "bn", "tent", "soda-e")
STARTED = ("soda", "soda-fo", "soda-r")
STARTS = (1.0, 0.0)  # a random network, as in the paper; one that leaves images unchanged


def cells(
    scale: Scale, methods: Iterable[str], corruptions: Iterable[str], data: str, **facts: Any
) -> list[Cell]:
    """Methods on the corruptions of one data set, with every seed of the scale."""
    facts = {"data": data, "model": f"{data}_resnet20", "images": scale.images, **facts}
    return [
        Cell(
            method=method,
            corruption=corruption,
            seed=seed,
            settings=scale.settings(method, data),
            **facts,
        )
        for corruption, method, seed in itertools.product(corruptions, methods, range(scale.seeds))
    ]


def ablation(
    scale: Scale,
    method: str,
    corruptions: Sequence[str] | None = None,
    curve: int = 0,
    **choices: Any,
) -> list[Cell]:
    """A method with every combination of the listed values of some of its settings.

    >>> from soda_tta.bench.scales import SCALES
    >>> [cell.settings for cell in ablation(SCALES["tiny"], "soda-r", ["fog"], beta=[0.0, 0.01])]
    [{'epochs': 3, 'beta': 0.0}, {'epochs': 3, 'beta': 0.01}]
    """
    combinations = [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]
    return [
        replace(cell, settings=scale.settings(method, data, **changes))
        for data in scale.sets
        for changes in combinations
        for cell in cells(scale, [method], corruptions or scale.corruptions, data, curve=curve)
    ]


def main_table_methods(leave_out: Sequence[str] = ()) -> list[str]:
    """The methods that have a row in the main table."""
    return [name for name in all_methods() if name not in OWN_PROTOCOL and name not in leave_out]


def main_table(scale: Scale) -> list[Cell]:
    """Every method on CIFAR-10-C.

    soda-r also runs from unchanged images, because its random start decides how it ends.
    """
    cifar10 = replace(scale, sets=("cifar10",))
    unchanged_start = ablation(cifar10, "soda-r", list(CORRUPTIONS), start=[0.0])
    return [*cells(scale, main_table_methods(), CORRUPTIONS, "cifar10"), *unchanged_start]


def cifar100(scale: Scale) -> list[Cell]:
    """Every method at the paper's scale; six at the desk scale."""
    methods = main_table_methods() if scale.paper_lr else SIX
    return cells(scale, methods, CORRUPTIONS, "cifar100")


def imagenet(scale: Scale) -> list[Cell]:
    """ImageNet-C with ResNet-50; at the desk scale with EfficientNet-Lite0.

    The desk scale has as many images and epochs as an hour allows: ResNet-50 would take forty
    minutes for each run of soda. Batches have 50 images; otherwise an epoch would be one step.
    The deeper network of soda-r is narrower: at its own width it costs twenty times as much as the
    model. It also runs from unchanged images, as in the main table.
    """
    if scale.paper_lr:
        # The paper does not have these three on ImageNet either. da-pgd takes 60 GB.
        methods = main_table_methods(leave_out=("dine", "beta", "soda-fo"))
        large = replace(scale, images=50_000)
        return cells(large, methods, CORRUPTIONS, "imagenet", model="imagenet_resnet50")
    small = replace(scale, images=min(scale.images, 200), epochs=min(scale.epochs, 15))
    changes: dict[str, dict[str, Any]] = {
        "soda": {"batch": 50},
        "soda-r": {"batch": 50, "width": 32},
        "ma-so": {"batch": 50},
    }
    rows = [
        replace(
            cell,
            data="imagenet-1000",
            settings={**cell.settings, **changes.get(cell.method, {})},
        )
        for cell in cells(small, SIX, PAIR, "imagenet", model="imagenet_efficientnet_lite0")
    ]
    unchanged_start = [
        replace(cell, settings={**cell.settings, "start": 0.0})
        for cell in rows
        if cell.method == "soda-r"
    ]
    return [*rows, *unchanged_start]


def office_home(scale: Scale) -> list[Cell]:
    """The paper's Office-Home protocol on PACS, from photographs to sketches and cartoons.

    An epoch over the 210 images has four steps. The desk scale makes 60 steps, as on CIFAR, at a
    rate that keeps lr x steps of the paper's 1,080 steps (60 epochs, 4,365 images).
    """
    settings: dict[str, Any] = {"batch": 53}
    narrower: dict[str, Any] = {}
    if not scale.paper_lr:
        epochs = min(scale.epochs, 15)
        settings |= {"epochs": epochs, "warmup": max(1, epochs // 6), "lr": 0.02}
        narrower = {"width": 16}
    changes = {
        "deployed": {},
        "soda-office-home": settings,
        "soda-r-office-home": settings | narrower,
    }
    return [
        Cell(
            method=method,
            data=f"pacs/{domain}",
            model="pacs_photo_lite0",
            corruption=CLEAN,
            images=min(scale.images, 210),
            seed=seed,
            settings=changes[method],
        )
        for domain, method, seed in itertools.product(
            ("sketch", "cartoon"), changes, range(scale.seeds)
        )
    ]


def yardstick(scale: Scale) -> list[Cell]:
    """soda with the paper's own budget on 1,000 images, at its rate and at every larger one.

    The loss at the end chooses the rate.
    """
    del scale  # the paper's budget is the point of this experiment
    changes: list[dict[str, Any]] = [{}, *({"lr": lr} for lr in LEARNING_RATES[1:])]
    return [
        Cell(method="soda", corruption=corruption, images=1000, curve=15, settings=settings)
        for settings, corruption in itertools.product(changes, FIVE)
    ]


def rates(scale: Scale) -> list[Cell]:
    """lr=auto, and every rate it chooses from; the rates of the desk scale come from these runs."""
    choices = list(LEARNING_RATES[::-1])
    grid = ablation(scale, "soda", RATED, lr=["auto"])
    for method in ("soda", "soda-fo"):
        grid += ablation(scale, method, RATED, curve=1, lr=choices)
    for method in ("soda-o", "da-zoo-input"):
        grid += ablation(scale, method, RATED, lr=choices)
    return grid


def kept_rates(scale: Scale) -> list[Cell]:
    """Other rates for the methods that keep the paper's rate at every scale."""
    return [
        *ablation(scale, "soda-r", PAIR[:1], lr=[0.01, 0.003, 0.001, 0.0003]),
        *ablation(scale, "ma-so", PAIR[:1], lr=[0.01, 0.001]),
    ]


def other_rates(scale: Scale) -> list[Cell]:
    """soda on CIFAR-100, where the desk scale uses the rate of CIFAR-10, also at a smaller rate."""
    rates = [RATES["soda"], 0.01]
    return ablation(replace(scale, sets=("cifar100",)), "soda", RATED, lr=rates)


def peers(scale: Scale) -> list[Cell]:
    """DINE and BETA after each stage and from other initial networks.

    In the paper they start from ImageNet's ResNet-50. It gets the images at 64 pixels, because at
    32 its last feature map would have one pixel. At the desk scale only DINE does so, in twenty
    minutes per run; BETA, with two networks, would take three times as long. The desk scale, which
    has little data to learn from, adds DINE with more epochs and with more images.
    """
    from_imagenet: dict[str, Any] = {"target": ["imagenet_resnet50"], "size": [64]}
    grid = [
        *ablation(scale, "deployed"),
        *ablation(scale, "dine"),
        *ablation(scale, "dine", finetune_epochs=[0]),
        *ablation(scale, "beta", adversarial=[0.0, 0.1]),
        *ablation(scale, "beta", adversarial=[0.0], finetune_epochs=[0]),
    ]
    other_networks = ("cifar100_resnet20", "cifar10_resnet20")
    for data, network in zip(scale.sets, other_networks, strict=False):
        for method in ("dine", "beta"):
            grid += ablation(replace(scale, sets=(data,)), method, target=[network])
    grid += ablation(scale, "dine", **from_imagenet)
    if scale.paper_lr:
        return [*grid, *ablation(scale, "beta", **from_imagenet)]
    longer: dict[str, Any] = {
        stage: [5 * epochs] for stage, epochs in scale.settings("dine").items()
    }
    return [
        *grid,
        *ablation(scale, "dine", **longer),
        *ablation(replace(scale, images=4 * scale.images), "dine"),
    ]


def deeper(scale: Scale) -> list[Cell]:
    """soda-r's deeper network on gaussian noise.

    The desk scale adds four times the images in as many steps, four times the steps, and both.
    """
    sizes = [scale]
    if not scale.paper_lr:
        fewer_epochs = max(1, round(scale.epochs / 4))
        sizes.append(replace(scale, images=4 * scale.images, epochs=fewer_epochs))
        sizes.append(replace(scale, epochs=4 * scale.epochs))
        sizes.append(replace(scale, images=4 * scale.images))
    return deeper_networks(sizes, PAIR[:1])


def deeper_contrast(scale: Scale) -> list[Cell]:
    """The same on contrast, where soda-r is furthest behind.

    The desk scale adds four times the images, and with them four times the steps.
    """
    sizes = [scale] if scale.paper_lr else [scale, replace(scale, images=4 * scale.images)]
    return deeper_networks(sizes, PAIR[1:])


def deeper_networks(sizes: Sequence[Scale], corruptions: Sequence[str]) -> list[Cell]:
    """soda-r and, for comparison, soda-fo at several sizes."""
    return [
        cell
        for size in sizes
        for method in ("soda-fo", "soda-r")
        for cell in ablation(size, method, corruptions)
    ]
