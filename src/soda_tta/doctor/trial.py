"""Is there room to gain? Four plain restorations, tried on a few images and judged as a search would judge them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.objectives.equations import mutual_information
from soda_tta.types import Array

FEWEST = 24  # images a restoration; below, mutual information says nothing
RESAMPLES = 400
LEVEL = 0.05  # over all restorations together
USUAL_MEAN, USUAL_DEVIATION = 0.47, 0.24  # of pixels in natural photographs


def median(images: Array) -> Array:
    from scipy import ndimage

    filtered: Array = ndimage.median_filter(images, size=(1, 1, 3, 3))
    return filtered


def blur(images: Array, sigma: float = 0.7) -> Array:
    from scipy import ndimage

    filtered: Array = ndimage.gaussian_filter(images, sigma=(0, 0, sigma, sigma))
    return filtered


def sharpen(images: Array) -> Array:
    return images + 1.5 * (images - blur(images, 1.0))


def stretch(images: Array) -> Array:
    """Every image to the usual brightness and contrast."""
    mean = images.mean(axis=(1, 2, 3), keepdims=True)
    deviation = np.maximum(images.std(axis=(1, 2, 3), keepdims=True), 0.02)
    stretched: Array = (images - mean) / deviation * USUAL_DEVIATION + USUAL_MEAN
    return stretched


RESTORATIONS: dict[str, Callable[[Array], Array]] = {
    "a 3x3 median": median,
    "a slight blur": blur,
    "sharpening": sharpen,
    "usual contrast": stretch,
}


def gains(before: Array, after: dict[str, Array], seed: int = 0) -> dict[str, tuple[float, float]]:
    """Of each restoration: what it adds to the mutual information, and the one-sided lower bound of that.

    The bound is a bootstrap over images, corrected for looking at several restorations.
    """
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(before), (RESAMPLES, len(before)))
    usual = np.array([mutual_information(before[draw]) for draw in draws])
    found = {}
    for name, rows in after.items():
        differences = np.array([mutual_information(rows[draw]) for draw in draws]) - usual
        gain = mutual_information(rows) - mutual_information(before)
        found[name] = (gain, float(np.quantile(differences, LEVEL / len(after))))
    return found


def trial(
    pieces: Iterable[Array], before: Array, ask: Callable[[Array], Array], seed: int = 0
) -> Finding:
    """One query an image for each restoration; `before` are the answers to the images of all pieces as they are."""
    rows: dict[str, list[Array]] = {name: [] for name in RESTORATIONS}
    for images in pieces:
        for name, restore in RESTORATIONS.items():
            rows[name].append(ask(np.clip(restore(images), 0, 1).astype(np.float32)))
    found = gains(before, {name: np.concatenate(each) for name, each in rows.items()}, seed)
    best = max(found, key=lambda name: found[name][1])
    gain, low = found[best]
    numbers = {
        "images": len(before),
        "best": best,
        "gain": gain,
        "low": low,
        "level": LEVEL,
        "all": {name: {"gain": value, "low": bound} for name, (value, bound) in found.items()},
    }
    if low > 0:
        return Finding(
            name="trial",
            state="good",
            sentence=f"Already {best} raises the mutual information of {len(before)} images by {gain:.2f} nats (at "
            f"least {low:.2f}, with {1 - LEVEL:.0%} confidence): there is room to gain.",
            numbers=numbers,
        )
    return Finding(
        name="trial",
        state="caution",
        sentence=f"None of {len(found)} plain restorations is sure to help {len(before)} images (best {best}, "
        f"{gain:+.2f} nats of mutual information): if there is room to gain, it needs a search.",
        numbers=numbers,
        remedy="Let the run judge itself on images it did not learn from, and leave the images alone if it says so.",
    )
