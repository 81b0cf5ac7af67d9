"""The parameters of the restoration bank: what each means, how it is said in words, and which moves are worth trying.

No corruption is named here: a part is a thing one may do to an image.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.types import Array

SCALED = ("motion", "blur", "cosine shrinkage")  # families whose strengths grow with the grain
FACTORS = ("contrast", "gamma", "saturation")  # their parameters are logarithms
SILENT = 0.05  # of a typical amount: less is not worth a word
TOWARDS, AWAY = " {strength:.2g} by {:.2f}", " {strength:.2g} by -{:.2f}"


@dataclass(frozen=True)
class Part:
    """One parameter; zero leaves the image alone. `moves`: typical values, the first steps of a search."""

    name: str
    family: str
    strength: float
    moves: tuple[float, ...]
    more: str  # what a positive value does; {} is the amount
    less: str  # what a negative value does

    def words(self, value: float, grain: float = 1.0) -> str:
        factor = self.name in FACTORS
        strength = self.strength * (grain if self.family in SCALED else 1)
        text = self.more if value > 0 else self.less
        return text.format(math.exp(value) if factor else abs(value), strength=strength)


def mixed(family: str, strength: float, *moves: float) -> Part:
    return Part(f"{family} {strength:g}", family, strength, moves, family + TOWARDS, family + AWAY)


def radial(family: str, radius: float, *moves: float) -> Part:
    return Part(
        f"radius {radius:g}",
        family,
        radius,
        moves,
        "smooth radius" + TOWARDS,
        "sharpen radius" + TOWARDS,
    )


def motion(radius: float, *moves: float) -> Part:
    return Part(
        f"motion {radius:g}",
        "motion",
        radius,
        moves,
        "blur along motion" + TOWARDS,
        "undo motion" + TOWARDS,
    )


# Versions of the image that are mixed in: 0 is none of it, 1 all of it. Strengths are in the pixel range [0, 1].
MIXED = (
    Part("median", "median", 3, (0.8,), "median {:.2f}", "median -{:.2f}"),
    mixed("non-local means", 0.1, 0.8),
    mixed("non-local means", 0.18, 0.8),
    mixed("cosine shrinkage", 0.15, 0.8),
    mixed("cosine shrinkage", 0.3, 0.8),
    motion(1.5, -1.2),
    motion(2.5, -1.2),
    radial("blur", 2.5, -0.7),
    radial("blur", 8, -0.5, 0.4),
)
# One kernel after the mixing: a sum of Gaussians of these radii in pixels, minus the image.
KERNELS = (
    radial("kernel", 0.5, 0.7, -0.7),
    radial("kernel", 0.8, 0.5, -0.5),
    radial("kernel", 1.2, 0.5, -0.7),
)
TONE = (
    Part(
        "standard contrast",
        "contrast",
        1,
        (0.5, 1.0),
        "standard contrast {:.2f}",
        "standard contrast -{:.2f}",
    ),
    Part("contrast", "contrast", 1, (0.25, -0.25), "contrast x{:.2f}", "contrast x{:.2f}"),
    Part("brightness", "brightness", 1, (0.1, -0.1), "brighter by {:.2f}", "darker by {:.2f}"),
    Part("gamma", "brightness", 1, (0.3, -0.3), "gamma {:.2f}", "gamma {:.2f}"),
    Part("saturation", "colour", 1, (0.3, -0.4), "saturation x{:.2f}", "saturation x{:.2f}"),
    Part("red", "colour", 1, (0.06, -0.06), "red +{:.2f}", "red -{:.2f}"),
    Part("green", "colour", 1, (), "green +{:.2f}", "green -{:.2f}"),
    Part("blue", "colour", 1, (0.06, -0.06), "blue +{:.2f}", "blue -{:.2f}"),
)
PARTS = (*MIXED, *KERNELS, *TONE)


def in_words(parameters: Array, grain: float = 1.0) -> str:
    """What a bank with these parameters does, in its order of work; silent about what hardly counts."""
    said = [
        part.words(float(value), grain)
        for part, value in zip(PARTS, parameters, strict=True)
        if abs(value) > SILENT / scale(part)
    ]
    return ", ".join(said) or "leaves the image as it is"


def scale(part: Part) -> float:
    """A typical value, turned into about 1: a search moves in these units."""
    return 1 / max((abs(move) for move in part.moves), default=0.06)


def moves(without: tuple[str, ...] = ()) -> Array:
    """The first steps of a search: one part each, at a typical value (m, d); none of the families left alone."""
    families = {part.family for part in PARTS}
    if unknown := sorted(set(without) - families):
        raise MethodError(
            f"the bank has no family {', '.join(unknown)}; it has {', '.join(sorted(families))}."
        )
    rows = [
        (i, value)
        for i, part in enumerate(PARTS)
        if part.family not in without
        for value in part.moves
    ]
    if len(rows) < 3:
        raise MethodError(f"without {', '.join(without)} too little of the bank is left to search.")
    steps = np.zeros((len(rows), len(PARTS)))
    for row, (index, value) in enumerate(rows):
        steps[row, index] = value
    return steps


def units() -> Array:
    """A typical size of each parameter: what a search should take for one step."""
    return np.array([1 / scale(part) for part in PARTS])
