"""The input conventions that image classifiers are trained with: the candidates of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from soda_tta.box import Input
from soda_tta.box.facts import INPUT_FACTS, NORMALISATION
from soda_tta.errors import BoxError
from soda_tta.types import Array

Facts = Mapping[str, Any]
OWN = "statistics of the images"
STATED = "as stated"
BYTES = "bytes"  # a model that takes them normalises them itself
FLOATS = ("float32", "float16")

# Mean and std in the order R, G, B. The order of the table decides between conventions that hardly
# differ: the more usual one is named, and the user's own before all others.
NORMALISATIONS: dict[str, Facts] = {
    "0 to 1": {"pixel_range": 1.0, "mean": 0.0, "std": 1.0},
    "-1 to 1": {"pixel_range": 1.0, "mean": 0.5, "std": 0.5},
    "0 to 255": {"pixel_range": 255.0, "mean": 0.0, "std": 1.0},
    "ImageNet": {
        "pixel_range": 1.0,
        "mean": (0.485, 0.456, 0.406),
        "std": (0.229, 0.224, 0.225),
    },
    "Caffe": {"pixel_range": 255.0, "mean": (123.68, 116.779, 103.939), "std": 1.0},
    "(x - 127) / 128": {"pixel_range": 255.0, "mean": 127.0, "std": 128.0},
    "CIFAR": {
        "pixel_range": 1.0,
        "mean": (0.4914, 0.4822, 0.4465),
        "std": (0.2023, 0.1994, 0.2010),
    },
}
GREY_NORMALISATIONS: dict[str, Facts] = {
    "0 to 1": NORMALISATIONS["0 to 1"],
    "-1 to 1": NORMALISATIONS["-1 to 1"],
    "0 to 255": NORMALISATIONS["0 to 255"],
    "MNIST": {"pixel_range": 1.0, "mean": 0.1307, "std": 0.3081},
}
NEAR_CONTRAST = 1.4  # ratio of two standard deviations
NEAR_BRIGHTNESS = 0.1  # difference of two means, in units of [0, 1]
COLOUR_ORDERS = ("RGB", "BGR")
CROPS = {"stretched": None, "centre crop": 1.0, "centre crop of 0.875": 0.875}
TURNS = {"upright": 0, "turned by 90": 90, "turned by 180": 180, "turned by 270": 270}
MIRRORS = {"not mirrored": False, "mirrored": True}


@dataclass(frozen=True)
class Candidate:
    """One way to send images: a name for people, and the facts to state."""

    name: str
    facts: Facts = field(hash=False)


def pixel_candidates(
    input: Input,
    fixed: frozenset[str],
    layouts: Sequence[str],
    images: Array,
    own: Mapping[str, Facts] | None = None,
    stated: bool = False,
) -> list[Candidate]:
    """All ways to send the pixels that are still open: normalisation, channel order and layout.

    Parameters
    ----------
    input : Input
        What is known about the model.
    fixed : frozenset of str
        The names of facts that are known already.
    layouts : sequence of str
        The layouts that the model accepts.
    images : array of shape (n, 3, height, width)
        Some images, for their own statistics.
    own : mapping, optional
        Further normalisations by name: `pixel_range`, `mean` and `std` in the order R, G, B.
    stated : bool, default False
        Whether what is known is a candidate, too, although it is open.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.zeros((1, 3, 4, 4), np.float32)
    >>> bytes_only = pixel_candidates(Input(dtype="uint8"), frozenset(), ["NHWC"], images)
    >>> [candidate.name for candidate in bytes_only]
    ['bytes, RGB', 'bytes, BGR']
    """
    as_stated = {name: getattr(input, name) for name in (*NORMALISATION, "channels", "layout")}
    found = [Candidate(STATED, as_stated)] if stated else []
    normalisations: dict[str, Facts] = {STATED if input.dtype in FLOATS else BYTES: {}}
    if input.dtype in FLOATS and not fixed & set(NORMALISATION):
        table = GREY_NORMALISATIONS if input.channels == "L" else NORMALISATIONS
        normalisations = {**checked(own or {}), **table, OWN: statistics(images)}
    orders: Sequence[str] = COLOUR_ORDERS
    if "channels" in fixed or input.channels == "L":
        orders = (input.channels,)
    for layout in layouts:
        for name, normalisation in normalisations.items():
            for order in orders:
                words = [name, *([order] if len(orders) > 1 else [])]
                words += [layout] if len(layouts) > 1 else []
                facts = {**in_order(normalisation, order), "channels": order, "layout": layout}
                found.append(Candidate(", ".join(words), facts))
    return found


def in_order(normalisation: Facts, order: str) -> dict[str, Any]:
    """A normalisation with its channels in the model's order.

    >>> in_order({"mean": (1.0, 2.0, 3.0), "std": 1.0}, "BGR")
    {'mean': (3.0, 2.0, 1.0), 'std': 1.0}
    """
    reverse = order == "BGR"
    return {
        name: value[::-1] if reverse and isinstance(value, tuple) else value
        for name, value in normalisation.items()
    }


def are_near(first: Candidate, second: Candidate) -> bool:
    """Whether two candidates differ less than two exposures of one photograph.

    >>> names = ("ImageNet", "CIFAR", "-1 to 1")
    >>> imagenet, cifar, symmetric = (Candidate(name, NORMALISATIONS[name]) for name in names)
    >>> are_near(imagenet, cifar), are_near(imagenet, symmetric)
    (True, False)
    """
    if not are_comparable(first, second):
        return False
    (mean, std), (other_mean, other_std) = _in_pixels(first.facts), _in_pixels(second.facts)
    contrast = np.abs(np.log(std / other_std)).max()
    brightness = np.abs(mean - other_mean).max()
    return bool(contrast <= np.log(NEAR_CONTRAST) and brightness <= NEAR_BRIGHTNESS)


def raises_contrast(first: Candidate, second: Candidate) -> bool:
    """Whether the first differs from the second in a higher contrast, not in the channel order.

    >>> names = ("ImageNet", "-1 to 1")
    >>> imagenet, symmetric = (Candidate(name, NORMALISATIONS[name]) for name in names)
    >>> raises_contrast(imagenet, symmetric), raises_contrast(symmetric, imagenet)
    (True, False)
    """
    if not are_comparable(first, second):
        return False
    (_, std), (_, other_std) = _in_pixels(first.facts), _in_pixels(second.facts)
    return bool(np.log(other_std / std).mean() > np.log(NEAR_CONTRAST))


def are_comparable(first: Candidate, second: Candidate) -> bool:
    """Whether two candidates differ in their normalisation only."""
    if any(first.facts.get(name) != second.facts.get(name) for name in ("channels", "layout")):
        return False
    return all(set(NORMALISATION) <= set(each.facts) for each in (first, second))


def _in_pixels(facts: Facts) -> tuple[Array, Array]:
    """Mean and std in units of [0, 1]."""
    scale = facts["pixel_range"]
    return np.broadcast_to(facts["mean"], 3) / scale, np.broadcast_to(facts["std"], 3) / scale


def statistics(images: Array) -> Facts:
    """Mean and standard deviation of each channel of these images."""
    mean = images.mean(axis=(0, 2, 3))
    std = images.std(axis=(0, 2, 3)).clip(0.01)
    return {
        "pixel_range": 1.0,
        "mean": tuple(round(float(value), 4) for value in mean),
        "std": tuple(round(float(value), 4) for value in std),
    }


def checked(own: Mapping[str, Facts]) -> dict[str, Facts]:
    """A user's own normalisations, or a BoxError that names the entry that is not valid."""
    for name, facts in own.items():
        unknown = sorted(set(facts) - set(NORMALISATION))
        if unknown:
            raise BoxError(
                f"the convention {name!r} has the entry {', '.join(unknown)}; "
                f"use {', '.join(NORMALISATION)}."
            )
        for entry, value in facts.items():
            INPUT_FACTS[entry].check(entry, value, Input())
    return {
        name: {
            entry: tuple(value) if isinstance(value, list) else value
            for entry, value in {"pixel_range": 1.0, "mean": 0.0, "std": 1.0, **facts}.items()
        }
        for name, facts in own.items()
    }
