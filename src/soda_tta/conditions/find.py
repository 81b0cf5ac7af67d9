"""`find_conditions`: day, night, rain and clean in one folder, told apart without a query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from soda_tta.conditions.emphasis import EMPHASIS
from soda_tta.conditions.merging import merged
from soda_tta.conditions.mixture import Mixture, fit
from soda_tta.conditions.router import Router, Routes
from soda_tta.conditions.statistics import SMALLEST_SIDE, statistics
from soda_tta.conditions.words import describe, spread
from soda_tta.data import Images, open_images
from soda_tta.errors import ImageError
from soda_tta.types import Array
from soda_tta.wording import counted

MOST_GAUSSIANS = 12
IMAGES_PER_GAUSSIAN = 40  # fewer do not determine a covariance
FITTED = 4000  # images; more change nothing
FAMILIAR = 0.999  # share of the images that are familiar by definition
ALIKE = "all alike"  # the words of a single condition

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
    words : list of str
        What each condition looks like.
    router : Router
        Tells the condition of further images.
    statistics : array of shape (n, numbers)
    """

    of_each: Array
    distances: Array
    words: list[str]
    router: Router
    statistics: Array

    def __len__(self) -> int:
        return len(self.words)

    @property
    def unfamiliar(self) -> Array:
        """Which images are unlike all conditions."""
        return np.asarray(self.distances > self.router.radius)

    def sizes(self) -> list[int]:
        """The number of images of each condition."""
        return [int(size) for size in np.bincount(self.of_each, minlength=len(self))]

    def examples(self, condition: int, count: int) -> Array:
        """Positions of typical images of a condition: the nearest ones, spread over the set."""
        own = np.flatnonzero(self.of_each == condition)
        typical = own[np.argsort(self.distances[own])[: max(count, len(own) // 2)]]
        chosen = np.linspace(0, len(typical) - 1, min(count, len(typical))).round().astype(int)
        return np.sort(np.sort(typical)[chosen])

    @property
    def routes(self) -> Routes:
        """The condition of each image and its distance, as a router returns them."""
        return Routes(self.of_each, self.distances, ~self.unfamiliar)

    def only(self, kept: Array) -> Conditions:
        """Without other conditions: their images go to a kept one, or are unlike all of them."""
        members = np.isin(self.of_each, kept)
        return assembled(self.statistics, self.router.only(kept), members)

    def joined(self, numbers: Array) -> Conditions:
        """Fewer conditions: condition i becomes part of condition `numbers[i]`."""
        return routed(self.statistics, self.router.joined(numbers))

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
    groups: Array | None = None,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Conditions:
    """Tell the conditions of images apart from their pixels: no model, no query, no label.

    A mixture of Gaussians is fitted to statistics of the images (noise, sharpness, contrast ...),
    their number chosen by the Bayesian information criterion. Gaussians that images cannot be
    assigned to reliably (8 % are confused) are one condition.

    Parameters
    ----------
    images : path, array or Images
    conditions : int or "auto", default "auto"
        The number of conditions; with groups, of each group.
    groups : integer array of shape (n,), optional
        What is known about the images, such as their camera. Each group is split by itself; groups
        that cannot be told apart from the pixels are one condition.
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
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (len(source),):
            raise ImageError(
                f"groups has shape {groups.shape}; give one value per image, {len(source):,} in "
                "all."
            )
        check_groups(groups)
    rows = measured(source, progress)
    router = fitted_router(rows, conditions, seed, groups)
    return assembled(rows, router)


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


def fitted_router(
    rows: Array,
    conditions: int | Literal["auto"],
    seed: int,
    groups: Array | None = None,
) -> Router:
    """A router for the conditions that these statistics show."""
    centre = rows.mean(axis=0)
    standard = (rows - centre) @ EMPHASIS
    if groups is None:
        mixture = best_mixture(some(standard, FITTED, seed), conditions, seed)
    else:
        mixture = mixture_of_groups(standard, groups, conditions, seed)
    owners = np.arange(len(mixture.weights))
    if conditions == "auto" or groups is not None:
        shares, _ = mixture.responsibilities(standard)
        for number, group in enumerate(merged(shares)):
            owners[group] = number
    return Router(centre, EMPHASIS, mixture, owners, radius=np.inf)


def some(rows: Array, most: int, seed: int) -> Array:
    """At most so many rows, chosen at random."""
    return rows[np.random.default_rng(seed).permutation(len(rows))[:most]]


def check_groups(groups: Array) -> None:
    """Refuse groups of which none is large enough."""
    _, sizes = np.unique(groups, return_counts=True)
    if sizes.max() < IMAGES_PER_GAUSSIAN:
        raise ImageError(
            f"none of {counted(len(sizes), 'group')} has {IMAGES_PER_GAUSSIAN} images; use larger "
            "groups, or leave out condition_by= to find the conditions from the pixels."
        )


def mixture_of_groups(
    rows: Array, groups: Array, conditions: int | Literal["auto"], seed: int
) -> Mixture:
    """The Gaussians of each group, as one mixture; groups that are too small are left out."""
    numbers, sizes = np.unique(groups, return_counts=True)
    large = numbers[sizes >= IMAGES_PER_GAUSSIAN]
    most = max(IMAGES_PER_GAUSSIAN, FITTED // len(large))
    parts = []
    for group in large:
        own = rows[groups == group]
        parts.append((len(own), best_mixture(some(own, most, seed), conditions, seed)))
    total = sum(count for count, _ in parts)
    return Mixture(
        np.concatenate([mixture.weights * count / total for count, mixture in parts]),
        np.concatenate([mixture.means for _, mixture in parts]),
        np.concatenate([mixture.covariances for _, mixture in parts]),
    )


def assembled(rows: Array, router: Router, familiar: Array | None = None) -> Conditions:
    """The conditions of images by a router, the most frequent first, without empty ones.

    Parameters
    ----------
    rows : the statistics of the images.
    router : its conditions may be empty or in any order.
    familiar : which images determine the radius; by default all.
    """
    sizes = np.bincount(router.of_statistics(rows).conditions, minlength=len(router))
    by_size = np.argsort(-sizes, kind="stable")
    numbers = np.empty(len(router), int)
    numbers[by_size] = np.arange(len(router))
    router = router.joined(numbers).only(numbers[sizes > 0])
    distances = router.of_statistics(rows).distances
    radius = float(np.quantile(distances if familiar is None else distances[familiar], FAMILIAR))
    return routed(rows, replace(router, radius=radius))


def routed(rows: Array, router: Router) -> Conditions:
    """The conditions of images by a router, as they are numbered there."""
    routes = router.of_statistics(rows)
    standard = (rows - rows.mean(axis=0)) / spread(rows)
    means = [standard[routes.conditions == place].mean(axis=0) for place in range(len(router))]
    return Conditions(
        of_each=routes.conditions,
        distances=routes.distances,
        words=describe(np.stack(means)) if len(means) > 1 else [ALIKE],
        router=router,
        statistics=rows,
    )
