"""A mixture of Gaussians with full covariances, fitted by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soda_tta.types import Array

STEPS = 200
TOLERANCE = 1e-4  # nats per row: an improvement below this ends the fit
RIDGE = 1e-2  # added to variances, which are about 1: no component shrinks to a point
SEEDINGS = 3  # fits from different starts, of which the best is kept


@dataclass(frozen=True)
class Mixture:
    """Gaussians with weights.

    Parameters
    ----------
    weights : array of shape (k,)
    means : array of shape (k, d)
    covariances : array of shape (k, d, d)
    """

    weights: Array
    means: Array
    covariances: Array

    def log_densities(self, rows: Array) -> Array:
        """The logarithm of weight times density, one column per Gaussian."""
        columns = []
        for weight, mean, covariance in zip(
            self.weights, self.means, self.covariances, strict=True
        ):
            root = np.linalg.cholesky(covariance)
            scaled = np.linalg.solve(root, (rows - mean).T)
            volume = np.log(np.diag(root)).sum()
            constant = np.log(weight) - volume - rows.shape[1] / 2 * np.log(2 * np.pi)
            columns.append(constant - (scaled**2).sum(axis=0) / 2)
        return np.stack(columns, axis=1)

    def distances(self, rows: Array) -> Array:
        """The squared Mahalanobis distance of each row to each Gaussian."""
        columns = []
        for mean, covariance in zip(self.means, self.covariances, strict=True):
            scaled = np.linalg.solve(np.linalg.cholesky(covariance), (rows - mean).T)
            columns.append((scaled**2).sum(axis=0))
        return np.stack(columns, axis=1)

    def responsibilities(self, rows: Array) -> tuple[Array, float]:
        """The probability of each Gaussian for each row, and the log-likelihood of all rows."""
        densities = self.log_densities(rows)
        largest = densities.max(axis=1, keepdims=True)
        shares = np.exp(densities - largest)
        totals = shares.sum(axis=1, keepdims=True)
        return shares / totals, float((np.log(totals) + largest).sum())

    def criterion(self, rows: Array) -> float:
        """The Bayesian information criterion; the smallest is the best."""
        count, size = rows.shape
        free = len(self.weights) * (1 + size + size * (size + 1) / 2) - 1
        return float(-2 * self.responsibilities(rows)[1] + free * np.log(count))


def fit(rows: Array, count: int, seed: int = 0) -> Mixture:
    """The best of a few fits with so many Gaussians.

    Parameters
    ----------
    rows : array of shape (n, d)
        Standardised numbers.
    count : int
    seed : int, default 0

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> rows = np.concatenate([random.normal(-5, 1, (50, 2)), random.normal(5, 1, (50, 2))])
    >>> sorted(fit(rows, 2).means[:, 0].round().tolist())
    [-5.0, 5.0]
    """
    random = np.random.default_rng([seed, count])
    fits = [_fit_once(rows, count, random) for _ in range(SEEDINGS if count > 1 else 1)]
    return max(fits, key=lambda mixture: mixture.responsibilities(rows)[1])


def _fit_once(rows: Array, count: int, random: np.random.Generator) -> Mixture:
    shares = _nearest(rows, _starts(rows, count, random))
    mixture = _from_shares(rows, shares)
    before = -np.inf
    for _ in range(STEPS):
        shares, likelihood = mixture.responsibilities(rows)
        if likelihood - before < TOLERANCE * len(rows):
            break
        before = likelihood
        mixture = _from_shares(rows, shares)
    return mixture


def _starts(rows: Array, count: int, random: np.random.Generator) -> Array:
    """Rows that lie far apart (k-means++)."""
    chosen = [rows[random.integers(len(rows))]]
    while len(chosen) < count:
        nearest = np.min([((rows - row) ** 2).sum(axis=1) for row in chosen], axis=0)
        total = nearest.sum()
        weights = None if total == 0 else nearest / total
        chosen.append(rows[random.choice(len(rows), p=weights)])
    return np.stack(chosen)


def _nearest(rows: Array, starts: Array) -> Array:
    """A one for the nearest start of each row."""
    distances = ((rows[:, None] - starts) ** 2).sum(axis=2)
    return np.asarray(np.eye(len(starts))[distances.argmin(axis=1)])


def _from_shares(rows: Array, shares: Array) -> Mixture:
    """The mixture that these shares of the rows give."""
    sizes = shares.sum(axis=0) + 1e-9
    means = shares.T @ rows / sizes[:, None]
    covariances = []
    for column, mean in enumerate(means):
        centred = rows - mean
        covariance = (shares[:, column, None] * centred).T @ centred / sizes[column]
        covariances.append(covariance + RIDGE * np.eye(rows.shape[1]))
    return Mixture(sizes / sizes.sum(), means, np.stack(covariances))
