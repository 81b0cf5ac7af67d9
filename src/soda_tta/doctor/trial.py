"""Trial: do simple restorations help? They are judged by mutual information, as in a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from soda_tta.adaptors import Bank
from soda_tta.adaptors import restorations as restore
from soda_tta.adaptors.bank import NAMES
from soda_tta.doctor.finding import Finding
from soda_tta.objectives.equations import mutual_information
from soda_tta.types import Array
from soda_tta.wording import counted

FEWEST = 24  # images per restoration; with fewer, mutual information means nothing
RESAMPLES = 400
LEVEL = 0.05  # over all restorations together


def _on_arrays(restoration: Callable[[Tensor], Tensor]) -> Callable[[Array], Array]:
    """A restoration of tensors as one of arrays."""

    def restored(images: Array) -> Array:
        with torch.inference_mode():
            pixels: Array = restoration(torch.from_numpy(np.array(images, np.float32))).numpy()
        return pixels

    return restored


def _blur(images: Tensor) -> Tensor:
    return restore.gaussian(images, 0.7)


def _sharpen(images: Tensor) -> Tensor:
    return images + 1.5 * (images - restore.gaussian(images, 1.0))


def _standard_contrast(images: Array) -> Array:
    """Every image with the mean and the deviation of ordinary photographs."""
    bank = Bank().build()
    bank.parameters[NAMES.index("standard contrast")] = 1
    return bank(images)


RESTORATIONS: dict[str, Callable[[Array], Array]] = {
    "a 3x3 median": _on_arrays(restore.median),
    "a slight blur": _on_arrays(_blur),
    "sharpening": _on_arrays(_sharpen),
    "standard contrast": _standard_contrast,
}


def information_gains(
    before: Array, after: dict[str, Array], seed: int = 0
) -> dict[str, tuple[float, float]]:
    """The gain in mutual information of each restoration, and its one-sided lower bound.

    The bound is a bootstrap over images, corrected for the number of restorations. `before` are
    the probabilities of the images as they are, `after` those of each restoration.
    """
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(before), (RESAMPLES, len(before)))
    resampled_before = np.array([mutual_information(before[draw]) for draw in draws])
    gains = {}
    for name, rows in after.items():
        resampled = np.array([mutual_information(rows[draw]) for draw in draws])
        gain = mutual_information(rows) - mutual_information(before)
        bound = np.quantile(resampled - resampled_before, LEVEL / len(after))
        gains[name] = (gain, float(bound))
    return gains


def try_restorations(
    batches: Iterable[Array], before: Array, query: Callable[[Array], Array], seed: int = 0
) -> Finding:
    """Query every restoration of the images, one query per image and restoration.

    `before` are the probabilities of the images of all batches as they are.
    """
    rows: dict[str, list[Array]] = {name: [] for name in RESTORATIONS}
    for images in batches:
        for name, restoration in RESTORATIONS.items():
            rows[name].append(query(np.clip(restoration(images), 0, 1).astype(np.float32)))
    after = {name: np.concatenate(parts) for name, parts in rows.items()}
    gains = information_gains(before, after, seed)
    best = max(gains, key=lambda name: gains[name][1])
    gain, bound = gains[best]
    measurements = {
        "images": len(before),
        "best": best,
        "gain": gain,
        "lower_bound": bound,
        "level": LEVEL,
        "restorations": {
            name: {"gain": value, "lower_bound": low} for name, (value, low) in gains.items()
        },
    }
    if bound > 0:
        return Finding(
            name="trial",
            state="good",
            sentence=f"A simple restoration already helps: {best} raises the mutual information of "
            f"{counted(len(before), 'image')} by {gain:.2f} nats (at least {bound:.2f}, with "
            f"{1 - LEVEL:.0%} confidence).",
            measurements=measurements,
        )
    return Finding(
        name="trial",
        state="caution",
        sentence=f"None of {len(gains)} simple restorations helps {counted(len(before), 'image')} "
        f"with certainty (the best is {best}, {gain:+.2f} nats of mutual information). If there is "
        "anything to gain, finding it needs a search.",
        measurements=measurements,
        remedy="Let the run judge itself on images it did not learn from, and leave the images "
        "alone if its verdict says so.",
    )
