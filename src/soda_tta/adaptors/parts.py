"""The parameters of the restoration bank: their meaning, their description and typical values.

No corruption is named here: a part is something one can do to an image.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from soda_tta.errors import MethodError
from soda_tta.types import Array

SCALED = (
    "motion",
    "blur",
    "cosine shrinkage",
    "coarse shrinkage",
    "inverse",
)  # families whose strengths grow with the grain
REPAIRS = ("wrong pixels", "coarse pixels")  # families that find nothing to do in most images
FACTORS = ("contrast", "gamma", "saturation", "zoom")  # their parameters are logarithms
SILENT = 0.05  # of a typical amount: less is not worth mentioning
WITHOUT_MOVES = 0.06  # typical value of a part that no search starts with
# How descriptions state the strength of a part.
RADIUS, THRESHOLD = "radius {strength:.2g}", "threshold {strength:.2g}"
NOISE = "{strength:.2g} x noise"  # a threshold as a multiple of the noise of each image
MOTION = {"name": "motion", "more": "add motion blur", "less": "undo motion blur"}


@dataclass(frozen=True)
class Part:
    """One parameter of the bank; zero leaves the image unchanged.

    Parameters
    ----------
    name : str
        Unique; stored in files.
    family : str
        Parts of a family can be left out together.
    strength : float
        Radius in pixels, or threshold in the pixel range [0, 1], at grain 1.
    moves : tuple of float
        Typical values: the first steps of a search.
    more : str
        What a positive value does. `{amount}`, `{percent}` and `{strength}` are filled in.
    less : str
        What a negative value does.
    """

    name: str
    family: str
    strength: float
    moves: tuple[float, ...]
    more: str
    less: str

    def describe(self, value: float, grain: float = 1.0) -> str:
        """What the part does at this value.

        Parameters
        ----------
        value : float
            The parameter, not zero.
        grain : float, default 1
            See `Bank`.
        """
        strength = self.strength
        if self.family in SCALED:
            strength = self.strength * grain
        amount = math.exp(value) if self.name in FACTORS else abs(value)
        text = self.more if value > 0 else self.less
        return text.format(amount=amount, percent=100 * abs(value), strength=strength)


def mixed(family: str, amount: str, strength: float, *moves: float, effect: str = "") -> Part:
    """A version of the image that is mixed in; `amount` states its strength in descriptions."""
    text = f"{effect or family} ({amount}) "
    return Part(
        name=f"{family} {strength:g}",
        family=family,
        strength=strength,
        moves=moves,
        more=text + "{percent:.0f}%",
        less=text + "-{percent:.0f}%",
    )


def repair(name: str, effect: str) -> Part:
    """A version without a defect that the image shows by itself: a search tries all of it."""
    return Part(
        name=name,
        family=name,
        strength=1,
        moves=(1.0,),
        more=effect + " {percent:.0f}%",
        less=effect + " -{percent:.0f}%",
    )


def radial(
    family: str,
    radius: float,
    *moves: float,
    name: str = "radius",
    more: str = "smooth",
    less: str = "sharpen",
) -> Part:
    """A blur of a radius in pixels, mixed in or subtracted."""
    amount = f" ({RADIUS}) {{percent:.0f}}%"
    return Part(
        name=f"{name} {radius:g}",
        family=family,
        strength=radius,
        moves=moves,
        more=more + amount,
        less=less + amount,
    )


def tone(name: str, family: str, moves: tuple[float, ...], more: str, less: str = "") -> Part:
    """A change of brightness, contrast or colour; without `less` both signs read alike."""
    return Part(name=name, family=family, strength=1, moves=moves, more=more, less=less or more)


# Versions of the image that are mixed in: 0 is none of it, 1 all of it.
MIXED = (
    repair("wrong pixels", "replace wrong pixels"),
    repair("coarse pixels", "smooth coarse pixels"),
    Part(
        name="median",
        family="median",
        strength=3,
        moves=(0.8,),
        more="median filter {percent:.0f}%",
        less="median filter -{percent:.0f}%",
    ),
    mixed("cosine shrinkage", THRESHOLD, 0.15, 0.8),
    mixed("cosine shrinkage", THRESHOLD, 0.3, 0.8),
    mixed("adaptive shrinkage", NOISE, 1.5, 0.8),
    mixed("adaptive shrinkage", NOISE, 2.5, 0.8),
    radial("motion", 1.5, -1.2, **MOTION),
    radial("motion", 2.5, -1.2, **MOTION),
    mixed("coarse shrinkage", THRESHOLD, 0.15, 0.8),
    mixed("inverse", RADIUS, 0.8, 0.8, effect="undo blur"),
    mixed("inverse", RADIUS, 1.0, 0.9, effect="undo blur"),
    mixed("inverse", RADIUS, 1.5, 0.9, effect="undo blur"),
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
    tone(
        "standard contrast",
        "contrast",
        (0.5, 1.0),
        "standard contrast {percent:.0f}%",
        "standard contrast -{percent:.0f}%",
    ),
    tone("contrast", "contrast", (0.25, -0.25), "contrast x{amount:.2f}"),
    tone(
        "brightness",
        "brightness",
        (0.1, -0.1),
        "brighter by {amount:.2f}",
        "darker by {amount:.2f}",
    ),
    tone("gamma", "brightness", (0.3, -0.3), "gamma {amount:.2f}"),
    tone("saturation", "colour", (0.3, -0.4), "saturation x{amount:.2f}"),
    tone("red", "colour", (0.06, -0.06), "red +{amount:.2f}", "red -{amount:.2f}"),
    tone("green", "colour", (), "green +{amount:.2f}", "green -{amount:.2f}"),
    tone("blue", "colour", (0.06, -0.06), "blue +{amount:.2f}", "blue -{amount:.2f}"),
)
GEOMETRY = (
    Part(
        name="zoom",
        family="geometry",
        strength=1,
        moves=(-0.13, 0.13),
        more="zoom in x{amount:.2f}",
        less="zoom out x{amount:.2f}",
    ),
)
PARTS = (*MIXED, *KERNELS, *TONE, *GEOMETRY)


def describe_parts(parameters: Array, grain: float = 1.0) -> str:
    """What a bank with these parameters does, in its order of work, without negligible parts.

    Parameters
    ----------
    parameters : array of shape (len(PARTS),)
    grain : float, default 1
        See `Bank`.

    Examples
    --------
    >>> parameters = np.zeros(len(PARTS))
    >>> parameters[0] = 0.8
    >>> describe_parts(parameters)
    'replace wrong pixels 80%'
    """
    descriptions = [
        part.describe(float(value), grain)
        for part, value in zip(PARTS, parameters, strict=True)
        if abs(value) > SILENT / scale(part)
    ]
    return ", ".join(descriptions) or "leaves the image unchanged"


def scale(part: Part) -> float:
    """The factor that turns a typical value into about 1: a search moves in these units."""
    return 1 / max((abs(move) for move in part.moves), default=WITHOUT_MOVES)


def moves(without: tuple[str, ...] = ()) -> Array:
    """The first steps of a search: each changes one part to a typical value.

    Parameters
    ----------
    without : tuple of str, default none
        Families of parts to leave out, such as "colour".

    Returns
    -------
    array of shape (m, len(PARTS))

    Examples
    --------
    >>> len(moves()) > len(moves(without=("colour",)))
    True
    """
    families = {part.family for part in PARTS}
    if unknown := sorted(set(without) - families):
        raise MethodError(
            f"the bank has no family {', '.join(unknown)}; it has {', '.join(sorted(families))}."
        )
    entries = [
        (index, value)
        for index, part in enumerate(PARTS)
        if part.family not in without
        for value in part.moves
    ]
    if len(entries) < 3:
        raise MethodError(
            f"without {', '.join(without)}, too little of the bank is left to search; "
            "leave out fewer families."
        )
    steps = np.zeros((len(entries), len(PARTS)))
    for row, (index, value) in enumerate(entries):
        steps[row, index] = value
    return steps


def units() -> Array:
    """A typical size of each parameter: what a search should take as one step."""
    return np.array([1 / scale(part) for part in PARTS])
