"""A router that grows: recent images that its Gaussians do not describe get one of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from soda_tta.conditions.merging import confused
from soda_tta.conditions.mixture import Mixture
from soda_tta.conditions.router import Router
from soda_tta.types import Array

STEPS = 40  # of expectation maximisation
BORROWED = 40  # images' worth of covariance that a new Gaussian borrows from the others
FIRST = 32  # the latest images, from which the new Gaussian starts
LEAST_GAIN = 1.0  # nats per image by which images held out must be described better ...
LEAST_RATIO = 4.5  # ... and standard errors
CONFUSED = 0.1  # share of images above which two conditions are one
FAMILIAR = 0.999  # share of the recent images that are familiar by definition
ROOM = 1.1  # a Gaussian fitted to few images is too narrow: factor of the radius


class Growth(NamedTuple):
    """What became of a router."""

    router: Router
    condition: int  # of the new Gaussian: a new number, or the condition it belongs to


def grown(router: Router, recent: Array, earlier: Array) -> Growth | None:
    """The router with one more Gaussian, if recent images need it.

    Half of the recent images fit the Gaussian, and the other half must then be described better
    than before. Images that the new Gaussian and an old condition both claim mean that they are one
    condition; of few images that is not certain.

    Parameters
    ----------
    router : Router
    recent : array of shape (n, numbers)
        Statistics of the latest images, in their order.
    earlier : array of shape (m, numbers)
        Statistics of images before them.
    """
    rows = router.standardised(recent)
    old = router.mixture
    trial = fitted(old, rows[::2], rows[-FIRST:])
    gains = log_density(trial, rows[1::2]) - log_density(old, rows[1::2])
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    if gains.mean() < LEAST_GAIN or gains.mean() < LEAST_RATIO * error:
        return None
    mixture = fitted(old, rows, rows[-FIRST:])
    number = len(router)
    wider = with_equal_weights(
        replace(router, mixture=mixture, owners=np.r_[router.owners, number])
    )
    everything = np.concatenate([earlier, recent])
    confusion = confused(wider.shares(wider.standardised(everything)))
    rivals = np.maximum(confusion[number, :number], confusion[:number, number])
    owner = number if rivals.max() < CONFUSED else present_owner(router, wider, recent)
    owners = np.r_[router.owners, owner]
    routed = with_equal_weights(replace(router, mixture=mixture, owners=owners))
    distances = routed.of_statistics(recent).distances
    radius = max(router.radius, ROOM * float(np.quantile(distances, FAMILIAR)))
    return Growth(replace(routed, radius=radius), owner)


def present_owner(router: Router, wider: Router, recent: Array) -> int:
    """Where the images of the new Gaussian go now: to belong there changes nothing for them."""
    shares = wider.shares(wider.standardised(recent))[:, len(router)]
    return int(np.bincount(router.of_statistics(recent).conditions, shares).argmax())


def fitted(old: Mixture, rows: Array, start: Array) -> Mixture:
    """The old Gaussians as they are and one more, fitted to the rows."""
    borrowed = np.tensordot(old.weights, old.covariances, 1)
    base = log_density(old, rows)
    shares = np.ones(len(start))
    members = start
    weight = 0.5
    for step in range(STEPS + 1):
        size = shares.sum() + 1e-9
        mean = shares @ members / size
        centred = members - mean
        covariance = (shares[:, None] * centred).T @ centred + BORROWED * borrowed
        covariance /= size + BORROWED
        weight = float(np.clip(size / len(members), 1e-3, 1 - 1e-3)) if step else 0.5
        own = log_density(Mixture(np.ones(1), mean[None], covariance[None]), rows)
        difference = np.clip(base + np.log(1 - weight) - own - np.log(weight), -500, 500)
        shares = 1 / (1 + np.exp(difference))
        members = rows
    return Mixture(
        np.r_[(1 - weight) * old.weights, weight],
        np.concatenate([old.means, mean[None]]),
        np.concatenate([old.covariances, covariance[None]]),
    )


def log_density(mixture: Mixture, rows: Array) -> Array:
    """The logarithm of the density of each row."""
    densities = mixture.log_densities(rows)
    largest = densities.max(axis=1, keepdims=True)
    return np.asarray(np.log(np.exp(densities - largest).sum(axis=1)) + largest[:, 0])


def with_equal_weights(router: Router) -> Router:
    """Every condition is as likely as any other: what was frequent last month may be rare today."""
    totals = np.bincount(router.owners, router.mixture.weights)
    weights = router.mixture.weights / totals[router.owners] / len(router)
    return replace(router, mixture=replace(router.mixture, weights=weights))
