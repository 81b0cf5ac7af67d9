"""Which labels look right: a two-component Gaussian mixture over the losses, fitted without a dependency."""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array


def easy_posterior(
    losses: Array, steps: int = 10, tolerance: float = 1e-2, floor: float = 5e-4
) -> Array:
    """For each loss, the probability that it belongs to the component with the lower mean.

    Losses are scaled to [0, 1]; EM starts from the better of all splits in two, so it needs no randomness.
    Losses that are all alike tell nothing apart: everything is easy.
    """
    spread = float(np.ptp(losses))
    if spread < 1e-12:
        return np.ones(len(losses))
    scaled = (np.asarray(losses, np.float64) - losses.min()) / spread
    low = (scaled <= two_means(scaled)).astype(np.float64)
    shares, likelihood = np.stack([low, 1 - low], axis=1), -np.inf
    means = np.zeros(2)
    for _ in range(steps):
        weights = shares.sum(axis=0) + 1e-10
        means = shares.T @ scaled / weights
        variances = (shares * (scaled[:, None] - means) ** 2).sum(axis=0) / weights + floor
        log = np.log(weights / len(scaled)) - 0.5 * (np.log(2 * np.pi * variances))
        log = log - 0.5 * (scaled[:, None] - means) ** 2 / variances
        total = np.logaddexp(log[:, 0], log[:, 1])
        shares, previous, likelihood = np.exp(log - total[:, None]), likelihood, float(total.mean())
        if abs(likelihood - previous) < tolerance:
            break
    posterior: Array = shares[:, int(np.argmin(means))]
    return posterior


def two_means(values: Array) -> float:
    """The last value of the lower part when the values are cut in two with the least spread inside the parts."""
    ordered = np.sort(values)
    count = np.arange(1, len(ordered))
    below = np.cumsum(ordered)[:-1]
    above = ordered.sum() - below
    gain = below**2 / count + above**2 / (
        len(ordered) - count
    )  # least squares inside = most between
    return float(ordered[int(np.argmax(gain))])
