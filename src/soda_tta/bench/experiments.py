"""Which cells an experiment is made of, at a given scale; `grids.py` names the experiments."""

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

OWN_PROTOCOL = {"soda-auto", "soda-office-home", "soda-r-office-home"}  # not rows of the main table
SIX = ("deployed", "soda", "soda-r", "ma-so", "bn", "tent")  # where time is short
RATED = (*PAIR, "spatter")
ORDERED = ("deployed", "lame", "bn", "tent", "soda-e")
COUNTS = (50, 100, 500, 1000, 5000, 10_000)
STARTED, STARTS = ("soda", "soda-fo", "soda-r"), (1.0, 0.0)
ODD = [0.1, 0.3, 0.5, 0.7, 0.9]


def cells(
    scale: Scale, names: Iterable[str], corruptions: Iterable[str], data: str, **facts: Any
) -> list[Cell]:
    """Methods on the corruptions of one data set, with every seed of the scale."""
    facts = {"data": data, "model": f"{data}_resnet20", "images": scale.images, **facts}
    return [
        Cell(method=name, corruption=c, seed=seed, settings=scale.settings(name, data), **facts)
        for c, name, seed in itertools.product(corruptions, names, range(scale.seeds))
    ]


def ablation(
    scale: Scale,
    method: str,
    corruptions: Sequence[str] | None = None,
    curve: int = 0,
    **choices: Any,
) -> list[Cell]:
    """A method with every combination of some of its settings."""
    changed = [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]
    return [
        replace(cell, settings=scale.settings(method, data, **more))
        for data in scale.sets
        for more in changed
        for cell in cells(scale, [method], corruptions or scale.corruptions, data, curve=curve)
    ]


def main_table(scale: Scale) -> list[Cell]:
    """Every method; soda-r once more from the images as they are, because its random start decides how it ends."""
    once_more = ablation(
        replace(scale, sets=("cifar10",)), "soda-r", list(CORRUPTIONS), start=[0.0]
    )
    return [*cells(scale, in_main_table(), CORRUPTIONS, "cifar10"), *once_more]


def in_main_table(but: Sequence[str] = ()) -> list[str]:
    return [name for name in all_methods() if name not in OWN_PROTOCOL and name not in but]


def cifar100(scale: Scale) -> list[Cell]:
    """Every method in the paper's size; on a desk, six."""
    return cells(scale, in_main_table() if scale.own_lr else SIX, CORRUPTIONS, "cifar100")


def imagenet(scale: Scale) -> list[Cell]:
    """Desk: as many images and epochs as an hour allows; batches of 50, or there would be one step an epoch.

    The deeper network of soda-r is narrower there: at its width it costs twenty times what the model does; it is run
    from the images as they are, too, as in the main table. ResNet-50 would take forty minutes for each run of soda.
    """
    if scale.own_lr:
        names = in_main_table(
            but=("dine", "beta", "soda-fo")
        )  # nor has the paper these there; da-pgd takes 60 GB
        return cells(
            replace(scale, images=50_000), names, CORRUPTIONS, "imagenet", model="imagenet_resnet50"
        )
    small = replace(scale, images=min(scale.images, 200), epochs=min(scale.epochs, 15))
    rows = cells(small, SIX, PAIR, "imagenet", model="imagenet_efficientnet_lite0")
    steps: dict[str, Any] = {"batch": 50}
    more = {"soda": steps, "soda-r": {**steps, "width": 32}, "ma-so": steps}
    rows = [
        replace(c, data="imagenet-1000", settings={**c.settings, **more.get(c.method, {})})
        for c in rows
    ]
    return [
        *rows,
        *(replace(c, settings={**c.settings, "start": 0.0}) for c in rows if c.method == "soda-r"),
    ]


def office_home(scale: Scale) -> list[Cell]:
    """Their protocol on PACS, from photographs to sketches and cartoons, four steps an epoch with its 210 images.

    On a desk 60 steps, as on CIFAR, at a rate that keeps lr x steps of the paper's 1,080 (60 epochs, 4,365 images).
    """
    settings: dict[str, Any] = {"batch": 53}
    if not scale.own_lr:
        epochs = min(scale.epochs, 15)
        settings |= {"epochs": epochs, "warmup": max(1, epochs // 6), "lr": 0.02}
    of = {
        "soda-office-home": settings,
        "soda-r-office-home": settings | ({} if scale.own_lr else {"width": 16}),
    }
    facts: dict[str, Any] = {
        "model": "pacs_photo_lite0",
        "corruption": CLEAN,
        "images": min(scale.images, 210),
    }
    return [
        Cell(method=m, data=f"pacs/{domain}", seed=s, settings=of.get(m, {}), **facts)
        for domain, m, s in itertools.product(
            ("sketch", "cartoon"), ("deployed", *of), range(scale.seeds)
        )
    ]


def yardstick(scale: Scale) -> list[Cell]:
    """The paper's own budget on 1,000 images, at its lr and at every larger one; the loss at the end chooses."""
    del scale  # the budget is the point
    return [
        Cell(
            method="soda",
            corruption=c,
            images=1000,
            curve=15,
            settings={} if lr is None else {"lr": lr},
        )
        for lr, c in itertools.product(
            (None, *LEARNING_RATES[1:]), FIVE
        )  # the first is the paper's
    ]


def selection(scale: Scale) -> list[Cell]:
    """Gaussian noise in the paper; on a desk fewer values, and contrast, too."""
    tau = [round(0.1 * step, 1) for step in range(1, 10)] if scale.own_lr else ODD[::2]
    rho, one = ODD if scale.own_lr else ODD[::2], replace(scale, sets=("cifar10",))
    return ablation(
        one, "soda", PAIR[:1] if scale.own_lr else PAIR, tau=tau, rho=rho, alpha=[1e-4, 1e-3, 1e-2]
    )


def directions(scale: Scale) -> list[Cell]:
    """The estimate grows with sigma squared: on a desk sigma 1 is shown with smaller rates, too, down to the one that
    makes steps of the same size."""
    if scale.own_lr:
        return ablation(scale, "soda", sigma=[0.1, 1.0])
    smaller = ablation(scale, "soda", sigma=[1.0], lr=[1e-3, RATES["soda"] / 100])
    return [*ablation(scale, "soda", sigma=[0.1, 1.0]), *smaller]


def rates(scale: Scale) -> list[Cell]:
    """What the rate of a small scale is chosen from, and what lr=auto makes of it; on spatter, too, where one harms."""
    every = list(LEARNING_RATES[::-1])
    told = [
        cell
        for name in ("soda", "soda-fo")
        for cell in ablation(scale, name, RATED, curve=1, lr=every)
    ]
    told += [
        cell
        for name in ("soda-o", "da-zoo-input")
        for cell in ablation(scale, name, RATED, lr=every)
    ]
    return [*ablation(scale, "soda", RATED, lr=["auto"]), *told]


def kept_rates(scale: Scale) -> list[Cell]:
    """The methods that keep the paper's rate at every scale, at others."""
    others = {"soda-r": [0.01, 0.003, 0.001, 0.0003], "ma-so": [0.01, 0.001]}
    return [
        cell for name, some in others.items() for cell in ablation(scale, name, PAIR[:1], lr=some)
    ]


def other_rates(scale: Scale) -> list[Cell]:
    """soda on CIFAR-100, where a desk takes the rate of CIFAR-10, at that and at a smaller one."""
    return ablation(replace(scale, sets=("cifar100",)), "soda", RATED, lr=[RATES["soda"], 0.01])


def steps(scale: Scale) -> list[Cell]:
    """soda's queries split otherwise than into five directions a step: into more steps, or into fewer.

    Estimates from fewer directions are noisier; on a desk those are shown at a smaller rate, too.
    """
    several = {q: replace(scale, epochs=scale.epochs * 6 // (q + 1)) for q in (1, 2, 5, 8, 17)}
    split = [cell for q, as_many in several.items() for cell in ablation(as_many, "soda", q=[q])]
    smaller = (
        []
        if scale.own_lr
        else [c for q in (1, 2) for c in ablation(several[q], "soda", q=[q], lr=[0.01])]
    )
    return [*split, *smaller]


def optimisers(scale: Scale) -> list[Cell]:
    """A rate of one says nothing of the other's: on a desk each has its own, chosen without labels or the method's."""
    own: dict[str, Any] = {} if scale.own_lr else {"lr": ["auto"]}
    rate: dict[str, Any] = {} if scale.own_lr else {"lr": [RATES["soda-fo"]]}
    return [
        *ablation(scale, "soda", step=["sgd"]),
        *ablation(scale, "soda", step=["adam"], **own),
        *ablation(scale, "soda-r", step=["sgd"], **rate),
        *ablation(scale, "soda-r", step=["adam"]),
    ]


def peers(scale: Scale) -> list[Cell]:
    """Their stages and beginnings; on a desk, where they have little to learn from, DINE with more of it.

    In the paper they begin from ImageNet's ResNet-50. It sees the images at 64 pixels, for 32 would leave it a map of
    one; on a desk DINE alone does, in twenty minutes a run. BETA, with two networks, would take three times that.
    """
    imagenet: dict[str, Any] = {"target": ["imagenet_resnet50"], "size": [64]}
    stages = [
        *ablation(scale, "deployed"),
        *ablation(scale, "dine"),
        *ablation(scale, "dine", finetune_epochs=[0]),
        *ablation(scale, "beta", adversarial=[0.0, 0.1]),
        *ablation(scale, "beta", adversarial=[0.0], finetune_epochs=[0]),
        *(
            cell
            for data, other in zip(
                scale.sets, ("cifar100_resnet20", "cifar10_resnet20"), strict=False
            )
            for name in ("dine", "beta")
            for cell in ablation(replace(scale, sets=(data,)), name, target=[other])
        ),
        *ablation(scale, "dine", **imagenet),
    ]
    if scale.own_lr:
        return [*stages, *ablation(scale, "beta", **imagenet)]
    longer: dict[str, Any] = {
        stage: [5 * epochs] for stage, epochs in scale.settings("dine").items()
    }
    return [
        *stages,
        *ablation(scale, "dine", **longer),
        *ablation(replace(scale, images=4 * scale.images), "dine"),
    ]


def deeper(scale: Scale) -> list[Cell]:
    """Gaussian noise; on a desk also four times the images in as many steps, four times the steps, and both."""
    sizes = [scale]
    if not scale.own_lr:
        sizes.append(
            replace(scale, images=4 * scale.images, epochs=max(1, round(scale.epochs / 4)))
        )
        sizes.append(replace(scale, epochs=4 * scale.epochs))
        sizes.append(replace(scale, images=4 * scale.images))
    return [
        cell
        for size in sizes
        for name in ("soda-fo", "soda-r")
        for cell in ablation(size, name, PAIR[:1])
    ]


def deeper_contrast(scale: Scale) -> list[Cell]:
    """Contrast, where it is furthest behind; on a desk also with four times the images, and so the steps."""
    sizes = [scale] if scale.own_lr else [scale, replace(scale, images=4 * scale.images)]
    return [
        cell
        for size in sizes
        for name in ("soda-fo", "soda-r")
        for cell in ablation(size, name, PAIR[1:])
    ]


def start(scale: Scale) -> list[Cell]:
    """Beside the model adapted from inside, which the paper's SODA-R passes."""
    where = scale.corruptions if scale.own_lr else FIVE
    begun = [cell for name in STARTED for cell in ablation(scale, name, where, start=STARTS)]
    return [*begun, *ablation(scale, "ma-so", where)]


def other_start(scale: Scale) -> list[Cell]:
    """soda and soda-r on CIFAR-100 from both starts, beside the model adapted from inside."""
    one = replace(scale, sets=("cifar100",))
    begun = [
        cell for name in ("soda", "soda-r") for cell in ablation(one, name, FIVE, start=STARTS)
    ]
    return [*begun, *ablation(one, "ma-so", FIVE)]


def blocks(scale: Scale) -> list[Cell]:
    return [
        cell for name in ("soda", "soda-r") for cell in ablation(scale, name, blocks=[0, 1, 2, 3])
    ]


def blocks_start(scale: Scale) -> list[Cell]:
    """The same from the images as they are; on a desk none and two, which tell the start from the blocks."""
    few = [0, 1, 2, 3] if scale.own_lr else [0, 2]
    return [
        cell
        for name in ("soda-r", "soda")
        for cell in ablation(scale, name, blocks=few, start=[0.0])
    ]


def regularisation(scale: Scale) -> list[Cell]:
    return [
        cell
        for data, beta in zip(scale.sets, (0.005, 0.01), strict=False)
        for method in ("soda", "soda-r")
        for cell in ablation(replace(scale, sets=(data,)), method, beta=[0.0, beta])
    ]


def convergence(scale: Scale, names: Sequence[str], times: int = 1) -> list[Cell]:
    """Gaussian noise, on a desk contrast, too; measured about thirty times on the way."""
    longer, where = replace(scale, epochs=times * scale.epochs), PAIR[:1] if scale.own_lr else PAIR
    return [
        c
        for name in names
        for c in ablation(longer, name, where, curve=max(1, longer.epochs // 30))
    ]


def affordable(scale: Scale, *values: int) -> list[int]:
    """What an experiment repeats so many times: the paper's settings, on a desk the first four, which cost a third."""
    return list(values if scale.own_lr else values[:4])


def online(scale: Scale, **choices: Any) -> list[Cell]:
    return ablation(scale, "soda-o", **choices)


def online_batch(scale: Scale) -> list[Cell]:
    """On a desk the smallest batch also at a smaller rate: it makes four times the steps of the usual one."""
    sizes = online(scale, arrival=[32, 64, 128, 256])
    return sizes if scale.own_lr else [*sizes, *online(scale, arrival=[32], lr=[0.01])]
