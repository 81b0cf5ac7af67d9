"""Measures of how far two implementations of a corruption agree (numpy only)."""

from __future__ import annotations

import numpy as np

BANDS = 8  # rings of equal width in frequency
SMALLEST = 1e-9  # avoids division by zero


def pixel_difference(ours: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Mean and largest difference in levels, and the share of values that differ by more than 1."""
    difference = np.abs(ours.astype(np.int16) - reference)
    return {
        "mean difference": float(difference.mean()),
        "largest difference": float(difference.max()),
        "% beyond 1": float(100 * (difference > 1).mean()),
    }


def statistics_difference(
    ours: np.ndarray, reference: np.ndarray, clean: np.ndarray
) -> dict[str, float]:
    """Compare random corruptions: both arrays are (photograph, draw, row, column, channel)."""
    ours = ours.astype(np.float32)
    reference = reference.astype(np.float32)
    draws = ours.shape[1]
    mean_ours = ours.mean(axis=1)
    mean_reference = reference.mean(axis=1)
    variance_ours = ours.var(axis=1)
    variance_reference = reference.var(axis=1)
    # Two mean maps of equal corruptions differ by chance: the root of their summed variances.
    chance = np.sqrt((variance_ours + variance_reference).mean() / draws)
    distance = np.sqrt(((mean_ours - mean_reference) ** 2).mean())
    spread = variance_ours.mean() / max(variance_reference.mean(), SMALLEST)
    correlation = np.corrcoef(variance_ours.ravel(), variance_reference.ravel())[0, 1]
    spectrum_ours = radial_spectrum(ours - clean[:, None])
    spectrum_reference = radial_spectrum(reference - clean[:, None])
    decibels = 10 * np.log10(spectrum_ours / spectrum_reference)
    return {
        "mean level": float(mean_ours.mean() - mean_reference.mean()),
        "mean map / chance": float(distance / max(chance, SMALLEST)),
        "spread ratio": float(np.sqrt(spread)),
        "variance map correlation": float(correlation),
        "spectrum, worst band (dB)": float(np.abs(decibels).max()),
    }


def radial_spectrum(change: np.ndarray) -> np.ndarray:
    """Power of the grey change by frequency ring, averaged over photographs and draws."""
    side = change.shape[2]
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side))
    ring = np.minimum((frequency * 2 * BANDS).astype(int), BANDS - 1)
    power = np.zeros((side, side))
    for photograph in change:
        for image in photograph:
            power += np.abs(np.fft.fft2(image.mean(axis=2))) ** 2
    return np.array([power[ring == band].mean() for band in range(BANDS)])


def accuracy_difference(
    correct_ours: np.ndarray, correct_reference: np.ndarray
) -> dict[str, float]:
    """Compare which photographs were classified correctly; both arrays are (draw, photograph)."""
    change = correct_ours.mean(axis=0) - correct_reference.mean(axis=0)
    return {
        "accuracy ours": float(100 * correct_ours.mean()),
        "accuracy reference": float(100 * correct_reference.mean()),
        "difference": float(100 * change.mean()),
        # of the paired difference: what two draws of the same corruption would show
        "standard error": float(100 * change.std() / np.sqrt(len(change))),
    }
