"""The cells of benchmarks/economy.py, part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from economy_curve import BUDGETS
from soda_tta.bench import Cell
from soda_tta.data.corruptions import CORRUPTIONS

FIVE = (  # where the paper's SODA was run with its whole budget
    "gaussian_noise",
    "defocus_blur",
    "contrast",
    "pixelate",
    "jpeg_compression",
)
SIX = ("gaussian_noise", "impulse_noise", "defocus_blur", "fog", "contrast", "jpeg_compression")
CURVE = (*FIVE, "fog")  # corruptions of the accuracy curve
TONES = ("saturate", "snow", "brightness", "spatter")  # where tone should matter
NOISES = ("gaussian_noise", "impulse_noise")
ALL = 10_000  # every image of a CIFAR test set
FEW = 200  # the fewest images that are measured
LITE0 = "imagenet_efficientnet_lite0"

# The paper's SODA with each search. No learning rate was chosen with labels: 0.03 is soda's rate at
# desk scale (lowest loss), and estimates of the same size use the same rate. The other rates have
# the lowest loss on shot noise, which is not reported (part "rates").
SEARCHES: dict[str, dict[str, Any]] = {
    "soda": {"lr": 0.03},
    "per-image": {"search": "per-image", "lr": 0.03},
    "orthogonal": {"orthogonal": True, "lr": 0.03},
    "central": {"central": True, "lr": 0.03},
    "subspace": {"subspace": 64, "lr": 0.1},
    "evolution": {"search": "evolution", "diagonal": True, "sigma": 0.03},
}
ABLATIONS: tuple[dict[str, Any], ...] = (
    {},
    {"without": "median"},
    {"without": "non-local means"},
    {"without": "cosine shrinkage"},
    {"without": "median,non-local means,cosine shrinkage"},
    {"without": "motion"},
    {"without": "kernel,blur"},
    {"without": "contrast,brightness,colour"},
    {"caution": 0.0},
)


def cifar(
    data: str,
    method: str,
    images: int = ALL,
    corruptions: Sequence[str] = tuple(CORRUPTIONS),
    **facts: Any,
) -> list[Cell]:
    """One cell per corruption of a CIFAR set."""
    model = facts.pop("model", f"{data}_resnet20")
    return [
        Cell(method=method, data=data, model=model, corruption=corruption, images=images, **facts)
        for corruption in corruptions
    ]


def imagenet(corruptions: Sequence[str], settings: dict[str, Any] | None = None) -> list[Cell]:
    """One cell of soda-e per corruption of 1,000 ImageNet images."""
    return [
        Cell(
            method="soda-e",
            data="imagenet-1000",
            model=LITE0,
            corruption=corruption,
            images=1000,
            budget=10,
            settings=settings or {},
        )
        for corruption in corruptions
    ]


def searched(
    search: str, corruptions: Sequence[str], images: int, budget: float, **settings: Any
) -> list[Cell]:
    """The paper's SODA with another search; accuracy is measured every six queries per image."""
    return cifar(
        "cifar10",
        "soda",
        images,
        corruptions,
        budget=budget,
        curve=3 if search == "per-image" else 1,
        settings={**SEARCHES[search], **settings},
    )


def cifar10_cells() -> list[Cell]:
    return [
        *cifar("cifar10", "soda-e", budget=5),
        *cifar("cifar10", "soda-e", budget=3),
        *cifar("cifar10", "bn"),
    ]


def cifar100_cells() -> list[Cell]:
    return [*cifar("cifar100", "soda-e", budget=4), *cifar("cifar100", "bn")]


def few_images_cells() -> list[Cell]:
    return cifar("cifar10", "soda-e", FEW, budget=30)


def clean_cells() -> list[Cell]:
    return [
        *cifar("cifar10", "soda-e", corruptions=["clean"], budget=3),
        *cifar("cifar100", "soda-e", corruptions=["clean"], budget=4),
        *imagenet(["clean"]),
    ]


def architecture_cells() -> list[Cell]:
    return [
        *cifar("cifar10", "soda-e", 2000, model="cifar10_resnet32", budget=9),
        *cifar("cifar10", "bn", 2000, model="cifar10_resnet32"),
    ]


def pacs_cells() -> list[Cell]:
    return [
        Cell(
            method="soda-e",
            data=f"pacs/{domain}",
            model="pacs_photo_lite0",
            corruption="clean",
            images=210,
            budget=30,
        )
        for domain in ("art_painting", "cartoon", "sketch")
    ]


def white_box_cells() -> list[Cell]:
    return [
        *cifar("cifar10", "soda-e", 1000, FIVE, budget=15),
        *cifar("cifar10", "bn", 1000, FIVE),
        *cifar("cifar10", "tent", 1000, FIVE),
        *cifar("cifar10", "ma-so", 1000, FIVE, settings={"epochs": 30}),
    ]


def ablation_cells() -> list[Cell]:
    return [
        cell
        for settings in ABLATIONS
        for cell in cifar("cifar10", "soda-e", 1000, SIX, budget=15, settings=settings)
    ]


def elsewhere_cells() -> list[Cell]:
    """The parts that made no difference on the six corruptions, where they should make one."""
    no_tone = {"without": "contrast,brightness,colour"}
    return [
        *cifar("cifar10", "soda-e", 1000, TONES, budget=15),
        *cifar("cifar10", "soda-e", 1000, TONES, budget=15, settings=no_tone),
        *imagenet(NOISES),
        *imagenet(NOISES, {"without": "non-local means"}),
        *cifar("cifar10", "soda-e", FEW, budget=30),
        *cifar("cifar10", "soda-e", FEW, budget=30, settings={"caution": 0.0}),
    ]


def rate_cells() -> list[Cell]:
    return [
        cell
        for search in ("soda", "per-image", "subspace")
        for lr in (0.01, 0.03, 0.1, 0.3)
        for cell in searched(search, ["shot_noise"], images=500, budget=30, lr=lr)
    ]


def curve_cells() -> list[Cell]:
    cells = []
    for budget in BUDGETS[1:]:
        cells += cifar("cifar10", "soda-e", 1000, CURVE, budget=budget)
    for search in SEARCHES:
        cells += searched(search, CURVE, images=1000, budget=30)
    return cells


PARTS: dict[str, Callable[[], list[Cell]]] = {
    "cifar10": cifar10_cells,
    "cifar100": cifar100_cells,
    "few": few_images_cells,
    "clean": clean_cells,
    "architecture": architecture_cells,
    "imagenet": lambda: imagenet(SIX),
    "pacs": pacs_cells,
    "white": white_box_cells,
    "ablation": ablation_cells,
    "elsewhere": elsewhere_cells,
    "rates": rate_cells,
    "curve": curve_cells,
}
