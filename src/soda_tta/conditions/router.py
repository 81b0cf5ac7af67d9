"""A router: which condition an image belongs to, and how far from it the image is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from soda_tta.conditions.mixture import Mixture
from soda_tta.conditions.statistics import NAMES, statistics
from soda_tta.types import Array

EQUAL = 1e-9  # what differs by less is equal: rounding must not decide
LARGEST = 1e9  # of a number in a file; those of standardised statistics are below 1e4
MOST = 1000  # conditions


class Routes(NamedTuple):
    """Where images belong.

    Parameters
    ----------
    conditions : integer array of shape (n,)
        The most likely condition of each image; of two equally likely ones the first.
    distances : array of shape (n,)
        The Mahalanobis distance of each image to the nearest Gaussian.
    familiar : boolean array of shape (n,)
        Whether the distance is within the router's radius. Other images are unlike all conditions.
    """

    conditions: Array
    distances: Array
    familiar: Array


@dataclass(frozen=True)
class Router:
    """Conditions as Gaussians of image statistics. It needs no query.

    Parameters
    ----------
    centre : array of shape (numbers,)
        The mean statistics.
    emphasis : array of shape (numbers, combinations)
        Combinations of statistics that tell conditions apart (see `emphasis.py`).
    mixture : Mixture
        The Gaussians, of these combinations.
    owners : integer array of shape (k,)
        The condition of each Gaussian.
    radius : float
        Images farther than this from all Gaussians are unfamiliar.
    """

    centre: Array
    emphasis: Array
    mixture: Mixture
    owners: Array
    radius: float

    def __len__(self) -> int:
        return int(self.owners.max()) + 1

    def __call__(self, images: Array) -> Routes:
        """The conditions of images.

        Parameters
        ----------
        images : float32 array of shape (n, 3, height, width), RGB in [0, 1]
        """
        return self.of_statistics(statistics(images))

    def of_statistics(self, rows: Array) -> Routes:
        """The conditions of images whose statistics are known."""
        standard = self.standardised(rows)
        shares = self.shares(standard)
        likely = shares >= shares.max(axis=1, keepdims=True) - EQUAL
        distances = np.sqrt(self.mixture.distances(standard).min(axis=1))
        familiar = distances <= self.radius * (1 + EQUAL)
        return Routes(likely.argmax(axis=1), distances, familiar)

    def standardised(self, rows: Array) -> Array:
        """The combinations of statistics that the Gaussians describe."""
        return np.asarray((rows - self.centre) @ self.emphasis)

    def shares(self, standard: Array) -> Array:
        """The probability of each condition for each image."""
        of_each_gaussian, _ = self.mixture.responsibilities(standard)
        members = np.eye(len(self))[self.owners]
        return np.asarray(of_each_gaussian @ members)

    def joined(self, numbers: Array) -> Router:
        """The same Gaussians with other conditions: condition i becomes `numbers[i]`."""
        return replace(self, owners=np.asarray(numbers)[self.owners])

    def only(self, kept: Array) -> Router:
        """Without the Gaussians of other conditions; the kept ones are numbered in their order."""
        names = np.unique(kept)
        chosen = np.isin(self.owners, names)
        weights = self.mixture.weights[chosen]
        mixture = Mixture(
            weights / weights.sum(),
            self.mixture.means[chosen],
            self.mixture.covariances[chosen],
        )
        owners = np.searchsorted(names, self.owners[chosen])
        return replace(self, mixture=mixture, owners=owners)

    @property
    def settings(self) -> dict[str, Any]:
        """The router as plain JSON."""
        return {
            "statistics": list(NAMES),
            "centre": self.centre.tolist(),
            "emphasis": self.emphasis.tolist(),
            "weights": self.mixture.weights.tolist(),
            "means": self.mixture.means.tolist(),
            "covariances": self.mixture.covariances.tolist(),
            "owners": self.owners.tolist(),
            "radius": [float(self.radius)],
        }

    @staticmethod
    def from_settings(settings: dict[str, Any]) -> Router:
        """The inverse of `settings`; ValueError for what cannot tell conditions apart.

        Parameters
        ----------
        settings : dict
            Perhaps damaged.
        """
        if settings["statistics"] != list(NAMES):
            raise ValueError(
                "its router uses other statistics than this version's; use the version that "
                "wrote it"
            )
        numbers = len(NAMES)
        gaussians = len(settings["weights"])
        shape = np.shape(settings["emphasis"])
        combinations = shape[1] if len(shape) == 2 else 0
        extents = {
            "centre": (numbers,),
            "emphasis": (numbers, combinations),
            "weights": (gaussians,),
            "means": (gaussians, combinations),
            "covariances": (gaussians, combinations, combinations),
            "owners": (gaussians,),
            "radius": (1,),
        }
        arrays = {name: _array(name, settings[name], shape) for name, shape in extents.items()}
        _check(arrays)
        mixture = Mixture(arrays["weights"], arrays["means"], arrays["covariances"])
        owners = arrays["owners"].astype(int)
        radius = float(arrays["radius"][0])
        return Router(arrays["centre"], arrays["emphasis"], mixture, owners, radius)


def _array(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Numbers of a file as an array of this shape."""
    array = np.asarray(values, np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} of its router has shape {array.shape}, not {shape}")
    if name != "radius" and not np.abs(array).max(initial=0) <= LARGEST:  # also refuses NaN
        raise ValueError(f"{name} of its router are not numbers of at most {LARGEST:g}")
    return array


def _check(arrays: dict[str, Array]) -> None:
    """Raise ValueError for arrays that are no Gaussians with a condition each."""
    weights, covariances, owners = (arrays[name] for name in ("weights", "covariances", "owners"))
    if not weights.size or not weights.min() > 0:
        raise ValueError("its router has no Gaussians, or some without weight")
    if not arrays["emphasis"].any():
        raise ValueError("emphasis of its router is zero: all images would be alike")
    if not arrays["radius"][0] >= 0:  # also refuses NaN; infinity is valid
        raise ValueError("radius of its router is not a distance")
    if not (owners == np.floor(owners)).all() or not 0 <= owners.min() <= owners.max() < MOST:
        raise ValueError("owners of its router are not conditions")
    if not np.allclose(covariances, covariances.transpose(0, 2, 1)):
        raise ValueError("a covariance of its router is not symmetric")
    try:
        np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        raise ValueError("a covariance of its router is not positive definite") from None
