"""Experiments by name, each at two scales: the paper's, and one that two cores finish; and grids from TOML files."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import Cell
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.errors import RecipeError
from soda_tta.recipes import Procedure, methods

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAIR = ("gaussian_noise", "contrast")  # ablations are shown on one noise and one tone corruption
SHARES = [0.5, 0.7, 0.9]
FIVE = ("gaussian_noise", "defocus_blur", "contrast", "pixelate", "jpeg_compression")


@dataclass(frozen=True)
class Scale:
    """How large. With fewer images there are fewer steps, so a desk run chooses its learning rate, without labels."""

    images: int
    epochs: int
    seeds: int
    lr: str | None  # None: the paper's own

    def numbers(self, method: str, **more: Any) -> dict[str, Any]:
        """What to change in a method for this scale."""
        known = methods()[method].numbers()
        changes: dict[str, Any] = {"epochs": self.epochs} if known["epochs"] > 10 else {}
        if self.lr is not None and method in ZEROTH_ORDER and "lr" not in more:
            changes["lr"] = self.lr
        return {**changes, **more}


ZEROTH_ORDER = {"soda", "da-pl", "da-direct"}  # their lr may be chosen; a stream cannot be run twice
SCALES = {"paper": Scale(10_000, 150, 3, None), "desk": Scale(500, 30, 1, "auto"), "tiny": Scale(128, 3, 1, "auto")}


# The paper's numbers that belong to a data set and not to the method.
OF_THE_DATA: dict[tuple[str, str], dict[str, Any]] = {
    ("cifar100", "soda"): {"q": 10},
    ("cifar100", "soda-r"): {"beta": 0.01},
}


def main_table(scale: Scale, data: str, names: list[str]) -> list[Cell]:
    model, size = f"{data}_resnet20", scale.images
    numbers = {name: scale.numbers(name, **OF_THE_DATA.get((data, name), {})) for name in names}
    return [
        Cell(method=m, data=data, model=model, corruption=c, images=size, seed=s, numbers=numbers[m])
        for c, m, s in itertools.product(CORRUPTIONS, names, range(scale.seeds))
    ]


def ablation(
    method: str, scale: Scale, corruptions: tuple[str, ...] = PAIR, curve: int = 0, **choices: list[Any]
) -> list[Cell]:
    """A method with every combination of some numbers."""
    combinations = [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]
    return [
        Cell(
            method=method, corruption=c, images=scale.images, seed=s, numbers=scale.numbers(method, **more), curve=curve
        )
        for more, c, s in itertools.product(combinations, corruptions, range(scale.seeds))
    ]


def points(scale: Scale) -> list[Cell]:
    counts = [count for count in (50, 100, 500, 1000, 5000, 10_000) if count <= scale.images]
    numbers = scale.numbers("soda")
    return [Cell(method="soda", corruption=c, images=n, numbers=numbers) for c in PAIR for n in counts]


def yardstick(scale: Scale) -> list[Cell]:
    """The paper's own budget on 1,000 images, with its lr and with the one chosen without labels."""
    del scale  # the budget is the point
    cells = [Cell(method="soda", corruption=c, images=1000, curve=15) for c in FIVE]
    return cells + [Cell(method="soda-auto", corruption=c, images=1000, curve=15) for c in FIVE]


GRIDS: dict[str, tuple[str, Callable[[Scale], list[Cell]]]] = {
    "cifar10": (
        "every method on the 19 corruptions of CIFAR-10-C (the main table)",
        lambda s: main_table(s, "cifar10", [name for name in methods() if name != "soda-auto"]),
    ),
    "cifar100": (
        "CIFAR-100-C: deployed, soda, soda-r, ma-so, bn, tent",
        lambda s: main_table(s, "cifar100", ["deployed", "soda", "soda-r", "ma-so", "bn", "tent"]),
    ),
    "small": (
        "a taste of the main table: four methods, five corruptions (make bench)",
        lambda s: [
            Cell(method=m, corruption=c, images=s.images, numbers=s.numbers(m))
            for c, m in itertools.product(FIVE, ("deployed", "soda", "soda-fo", "bn"))
        ],
    ),
    "yardstick": ("soda at the paper's 900 queries an image, 1,000 images", yardstick),
    "queries": ("number of directions q", lambda s: ablation("soda", s, q=[2, 5, 10, 20, 50])),
    "blocks": (
        "residual blocks, soda and soda-r",
        lambda s: [
            *ablation("soda", s, blocks=[0, 1, 2, 3]),
            *ablation("soda-r", s, blocks=[0, 1, 2, 3]),
        ],
    ),
    "points": ("number of test images", points),
    "selection": (
        "tau x rho x alpha",
        lambda s: ablation("soda", s, PAIR[:1], tau=SHARES, rho=SHARES, alpha=[1e-4, 1e-2, 1.0]),
    ),
    "alpha": ("does the cross-entropy term matter?", lambda s: ablation("soda", s, alpha=[0.0, 1e-4, 1e-2, 1.0])),
    "sigma": ("directions as in the released code or as printed", lambda s: ablation("soda", s, sigma=[0.1, 1.0])),
    "regularisation": (
        "perturbation norm on and off",
        lambda s: [
            *ablation("soda", s, beta=[0.0, 0.005]),
            *ablation("soda-r", s, beta=[0.0, 0.005]),
        ],
    ),
    "optimisers": (
        "SGD and Adam",
        lambda s: [
            *ablation("soda", s, step=["sgd", "adam"]),
            *ablation("soda-r", s, step=["sgd", "adam"]),
        ],
    ),
    "dropout": ("dropout on and off, soda-r", lambda s: ablation("soda-r", s, dropout=[0.0, 0.5])),
    "convergence": ("accuracy against queries", lambda s: ablation("soda", s, FIVE, curve=max(1, s.epochs // 10))),
}


def find_grid(name: str, scale: str = "desk") -> list[Cell]:
    """The cells of a built-in grid, or of a TOML file."""
    if scale not in SCALES:
        raise RecipeError(f"there is no scale {scale!r}; choose one of {', '.join(SCALES)}.")
    if name.endswith(".toml"):
        return grid_from_toml(Path(name))
    if name not in GRIDS:
        raise RecipeError(f"there is no grid {name!r}; choose one of {', '.join(GRIDS)}, or a .toml file.")
    return GRIDS[name][1](SCALES[scale])


def grid_from_toml(path: Path) -> list[Cell]:
    """Every combination of what each [[cells]] table lists: a value may be one or a list; `numbers` is a table.

    [[cells]]
    method = ["soda", "deployed"]
    corruption = ["fog", "contrast"]
    images = 200
    numbers = { epochs = 10, lr = 0.02 }
    """
    try:
        tables = tomllib.loads(path.read_text())["cells"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise RecipeError(f"{path} is no grid: it needs [[cells]] tables ({type(error).__name__}: {error}).") from error
    cells = []
    for table in tables:
        numbers = table.pop("numbers", {})
        if any(isinstance(value, list) for value in numbers.values()):
            raise RecipeError(f"{path}: a list inside numbers is not taken; write one [[cells]] table a value.")
        lists = {name: value if isinstance(value, list) else [value] for name, value in table.items()}
        for values in itertools.product(*lists.values()):
            facts = dict(zip(lists, values, strict=True))
            known = methods().get(facts.get("method", ""))
            fitting = {} if isinstance(known, Procedure) or known is None or not known.epochs else numbers
            cells.append(Cell.from_facts({**facts, "numbers": fitting}))
    return cells
