"""`find_conditions`: day, night, rain and clean in one folder, told apart without a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from soda_tta.conditions.merging import in_groups, merged
from soda_tta.conditions.mixture import Mixture, fit
from soda_tta.conditions.statistics import statistics
from soda_tta.conditions.words import describe, spread
from soda_tta.data import Images, open_images
from soda_tta.errors import ImageError
from soda_tta.types import Array

MOST_GAUSSIANS = 12
IMAGES_PER_GAUSSIAN = 40  # fewer do not determine a covariance
FITTED = 4000  # images; more change nothing
FAMILIAR = 0.999  # share of the images that are familiar by definition
SMALLEST_SIDE = 8  # pixels

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Conditions:
    """The conditions of a set of images.

    Attributes
    ----------
    of_each : integer array of shape (n,)
        The condition of each image; the most frequent is 0.
    distances : array of shape (n,)
        How far each image is from its condition, as a Mahalanobis distance.
    radius : float
        Images farther away than this are unlike all conditions.
    words : list of str
        What each condition looks like.
    statistics : array of shape (n, numbers)
    """

    of_each: Array
    distances: Array
    radius: float
    words: list[str]
    statistics: Array

    def __len__(self) -> int:
        return len(self.words)

    @property
    def unfamiliar(self) -> Array:
        """Which images are unlike all conditions."""
        return np.asarray(self.distances > self.radius)

    def sizes(self) -> list[int]:
        """The number of images of each condition."""
        return [int(size) for size in np.bincount(self.of_each, minlength=len(self))]

    def examples(self, condition: int, count: int) -> Array:
        """Positions of typical images of a condition: the nearest ones, spread over the set."""
        own = np.flatnonzero(self.of_each == condition)
        typical = own[np.argsort(self.distances[own])[: max(count, len(own) // 2)]]
        chosen = np.linspace(0, len(typical) - 1, min(count, len(typical))).round().astype(int)
        return np.sort(np.sort(typical)[chosen])

    def facts(self) -> dict[str, Any]:
        """The conditions as plain JSON."""
        return {
            "images": len(self.of_each),
            "unfamiliar": int(self.unfamiliar.sum()),
            "conditions": [
                {"condition": place, "words": words, "images": size}
                for place, (words, size) in enumerate(zip(self.words, self.sizes(), strict=True))
            ],
        }


def find_conditions(
    images: Any,
    *,
    conditions: int | Literal["auto"] = "auto",
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Conditions:
    """Tell the conditions of images apart from their pixels: no model, no query, no label.

    A mixture of Gaussians is fitted to statistics of the images (noise, sharpness, contrast ...),
    their number chosen by the Bayesian information criterion. Gaussians that images cannot be
    assigned to reliably (5 % are confused) are one condition.

    Parameters
    ----------
    images : path, array or Images
    conditions : int or "auto", default "auto"
        The number of conditions.
    seed : int, default 0
    progress : callable, optional
        Called as `progress(images_measured, images)`.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> plain = random.random((120, 3, 4, 4)).repeat(4, axis=2).repeat(4, axis=3)
    >>> noisy = (plain[:40] + 0.2 * random.standard_normal((40, 3, 16, 16))).clip(0, 1)
    >>> found = find_conditions(np.concatenate([plain, noisy]), conditions=2)
    >>> found.sizes()
    [120, 40]
    """
    source = open_images(images)
    check(source, conditions)
    rows = measured(source, progress)
    scale = spread(rows)
    standard = (rows - rows.mean(axis=0)) / scale
    chosen = np.random.default_rng(seed).permutation(len(standard))[:FITTED]
    mixture = best_mixture(standard[chosen], conditions, seed)
    shares, _ = mixture.responsibilities(standard)
    groups = [[place] for place in range(shares.shape[1])]
    if conditions == "auto":
        groups = merged(shares)
    return assembled(rows, standard, mixture, groups)


def check(images: Images, conditions: int | Literal["auto"]) -> None:
    """Refuse what cannot be told apart."""
    if min(images.size) < SMALLEST_SIDE:
        raise ImageError(
            f"the images are {images.size[1]}x{images.size[0]}; conditions are told apart from at "
            f"least {SMALLEST_SIDE} pixels in each direction."
        )
    if conditions == "auto":
        return
    if not 1 <= conditions <= len(images):
        raise ImageError(
            f"conditions={conditions} is not valid for {len(images)} images; use a number from 1 "
            "to the number of images, or 'auto'."
        )


def measured(images: Images, progress: Progress) -> Array:
    """The statistics of all images, read piece by piece."""
    pieces = []
    for start in range(0, len(images), images.at_once):
        pieces.append(statistics(images[slice(start, start + images.at_once)]))
        progress(min(start + images.at_once, len(images)), len(images))
    return np.concatenate(pieces)


def best_mixture(rows: Array, conditions: int | Literal["auto"], seed: int) -> Mixture:
    """The mixture with the given number of Gaussians, or with the best one."""
    if conditions != "auto":
        return fit(rows, conditions, seed)
    most = max(1, min(MOST_GAUSSIANS, len(rows) // IMAGES_PER_GAUSSIAN))
    best = fit(rows, 1, seed)
    for count in range(2, most + 1):
        mixture = fit(rows, count, seed)
        if mixture.criterion(rows) < best.criterion(rows):
            best = mixture
        elif count - len(best.weights) >= 2:
            break  # two more did not help
    return best


def assembled(
    rows: Array, standard: Array, mixture: Mixture, groups: list[list[int]]
) -> Conditions:
    """The conditions, the most frequent first; groups without an image are left out."""
    shares, _ = mixture.responsibilities(standard)
    group_of_each = in_groups(shares, groups).argmax(axis=1)
    present, sizes = np.unique(group_of_each, return_counts=True)
    by_size = present[np.argsort(-sizes, kind="stable")]
    number = np.zeros(len(groups), int)
    number[by_size] = np.arange(len(by_size))
    of_each = number[group_of_each]
    distances = np.sqrt(mixture.distances(standard).min(axis=1))
    means = np.stack([standard[of_each == place].mean(axis=0) for place in range(len(by_size))])
    return Conditions(
        of_each=of_each,
        distances=distances,
        radius=float(np.quantile(distances, FAMILIAR)),
        words=describe(means),
        statistics=rows,
    )
