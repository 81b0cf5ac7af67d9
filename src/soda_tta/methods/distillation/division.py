"""Which labels are likely right: a two-component Gaussian mixture over the losses, fitted by EM."""

from __future__ import annotations

import numpy as np

from soda_tta.types import Array


def easy_posterior(
    losses: Array, steps: int = 10, tolerance: float = 1e-2, floor: float = 5e-4
) -> Array:
    """For each loss, the probability that it belongs to the component with the lower mean.

    Losses are scaled to [0, 1]. EM starts from the best split in two, so it needs no randomness. If
    all losses are equal, nothing can be divided: everything is easy.

    Parameters
    ----------
    losses : array of shape (n,)
    steps : int, default 10
        EM steps at most.
    tolerance : float, default 1e-2
        Stop when the mean log-likelihood changes by less.
    floor : float, default 5e-4
        Added to both variances.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> easy_posterior(np.array([0.1, 0.2, 0.1, 2.0, 2.2])).round(2).tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0]
    """
    spread = float(np.ptp(losses))
    if spread < 1e-12:
        return np.ones(len(losses))
    scaled = (np.asarray(losses, np.float64) - losses.min()) / spread
    low = (scaled <= two_means(scaled)).astype(np.float64)
    shares = np.stack([low, 1 - low], axis=1)
    likelihood = -np.inf
    means = np.zeros(2)
    for _ in range(steps):
        weights = shares.sum(axis=0) + 1e-10
        means = shares.T @ scaled / weights
        variances = (shares * (scaled[:, None] - means) ** 2).sum(axis=0) / weights + floor
        log = np.log(weights / len(scaled)) - 0.5 * (np.log(2 * np.pi * variances))
        log = log - 0.5 * (scaled[:, None] - means) ** 2 / variances
        total = np.logaddexp(log[:, 0], log[:, 1])
        shares = np.exp(log - total[:, None])
        previous = likelihood
        likelihood = float(total.mean())
        if abs(likelihood - previous) < tolerance:
            break
    posterior: Array = shares[:, int(np.argmin(means))]
    return posterior


def two_means(values: Array) -> float:
    """The last value of the lower part of the split in two with the least spread inside the parts.

    >>> two_means(np.array([5.0, 1.0, 1.5, 5.5]))
    1.5
    """
    ordered = np.sort(values)
    count = np.arange(1, len(ordered))
    below = np.cumsum(ordered)[:-1]
    above = ordered.sum() - below
    # the least sum of squares inside the parts is the greatest between them
    between = below**2 / count + above**2 / (len(ordered) - count)
    return float(ordered[int(np.argmax(between))])
