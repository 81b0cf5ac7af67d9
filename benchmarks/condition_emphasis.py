"""Which combinations of image statistics tell conditions apart and not contents?

    python benchmarks/condition_emphasis.py    # writes src/soda_tta/conditions/emphasis.py

Photographs of imagenet-1000 (used in no reported figure), whole and at 32 and 64 pixels, are
degraded in generic ways, with strengths that differ from those of the benchmarks. A linear
discriminant analysis finds the combinations of statistics in which degradations differ most,
relative to how much images of one degradation differ. No corruption of ImageNet-C, no label and no
model is used.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.linalg import eigh
from scipy.ndimage import gaussian_filter, uniform_filter1d

from soda_tta.conditions.statistics import NAMES, statistics
from soda_tta.data import load_dataset
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "src" / "soda_tta" / "conditions" / "emphasis.py"
COMBINATIONS = 8  # of 8, 10, 12 and 17, chosen on the mixture DEVELOPED_ON
COPIES = {32: 6, 64: 3, 224: 2}  # degraded copies of each photograph, by size
AT_ONCE = 50

Degradation = Callable[[Array, np.random.Generator, float], Array]


def noise(amount: float) -> Degradation:
    return lambda images, random, grain: images + amount * random.standard_normal(images.shape)


def blur(radius: float) -> Degradation:
    return lambda images, random, grain: gaussian_filter(
        images, (0, 0, radius * grain, radius * grain)
    )


def contrast(factor: float, offset: float = 0.0) -> Degradation:
    def degrade(images: Array, random: np.random.Generator, grain: float) -> Array:
        mean = images.mean(axis=(1, 2, 3), keepdims=True)
        return (images - mean) * factor + mean + offset

    return degrade


def haze(share: float) -> Degradation:
    def degrade(images: Array, random: np.random.Generator, grain: float) -> Array:
        count, _, height, width = images.shape
        clouds = gaussian_filter(
            random.standard_normal((count, 1, height, width)), (0, 0, height / 8, height / 8)
        )
        clouds -= clouds.min(axis=(2, 3), keepdims=True)
        clouds /= clouds.max(axis=(2, 3), keepdims=True) + 1e-6
        return images * (1 - share) + share * (0.5 + 0.5 * clouds)

    return degrade


def jpeg(quality: int) -> Degradation:
    def degrade(images: Array, random: np.random.Generator, grain: float) -> Array:
        saved = []
        for image in images:
            buffer = io.BytesIO()
            pixels = np.rint(255 * image.transpose(1, 2, 0)).astype(np.uint8)
            Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
            saved.append(np.asarray(Image.open(buffer)).transpose(2, 0, 1) / 255)
        return np.array(saved)

    return degrade


def salt_and_pepper(share: float) -> Degradation:
    def degrade(images: Array, random: np.random.Generator, grain: float) -> Array:
        drawn = random.random(images.shape)
        return np.where(drawn < share / 2, 0, np.where(drawn > 1 - share / 2, 1, images))

    return degrade


def motion(length: int, axis: int) -> Degradation:
    return lambda images, random, grain: uniform_filter1d(images, round(length * grain), axis=axis)


def coarse(factor: int) -> Degradation:
    def degrade(images: Array, random: np.random.Generator, grain: float) -> Array:
        height, width = images.shape[2:]
        step = round(factor * grain)
        large = images[:, :, ::step, ::step].repeat(step, axis=2).repeat(step, axis=3)
        return large[:, :, :height, :width]

    return degrade


def saturation(factor: float) -> Degradation:
    def degrade(images: Array, random: np.random.Generator, grain: float) -> Array:
        grey = images.mean(axis=1, keepdims=True)
        return grey + factor * (images - grey)

    return degrade


DEGRADATIONS: tuple[Degradation, ...] = (
    lambda images, random, grain: images,
    *(noise(amount) for amount in (0.03, 0.07, 0.13, 0.25)),
    *(blur(radius) for radius in (0.6, 1.0, 1.6, 2.5)),
    *(contrast(factor) for factor in (0.5, 0.25, 0.1)),
    *(contrast(1.0, offset) for offset in (0.2, -0.2, 0.35)),
    *(haze(share) for share in (0.3, 0.6, 0.8)),
    *(jpeg(quality) for quality in (30, 12, 6)),
    *(salt_and_pepper(share) for share in (0.05, 0.2)),
    *(motion(length, axis) for length, axis in ((5, 3), (5, 2), (9, 3))),
    *(coarse(factor) for factor in (2, 3)),
    *(saturation(factor) for factor in (0.3, 2.5)),
)


def degraded_statistics(photographs: Array, size: int) -> tuple[Array, Array]:
    """Statistics of degraded copies of photographs at a size, and their degradations."""
    random = np.random.default_rng(size)
    grain = max(1.0, (size / 32) ** 0.5)
    rows = []
    kinds = []
    for _ in range(COPIES[size]):
        for start in range(0, len(photographs), AT_ONCE):
            kind = int(random.integers(len(DEGRADATIONS)))
            images = at_size(photographs[start : start + AT_ONCE], size)
            changed = DEGRADATIONS[kind](images, random, grain).clip(0, 1)
            rows.append(statistics(changed.astype(np.float32)))
            kinds.append(np.full(len(images), kind))
    return np.concatenate(rows), np.concatenate(kinds)


def at_size(images: Array, size: int) -> Array:
    pixels = np.rint(255 * images.transpose(0, 2, 3, 1)).astype(np.uint8)
    small = [Image.fromarray(each).resize((size, size), Image.Resampling.BOX) for each in pixels]
    return np.array([np.asarray(each).transpose(2, 0, 1) / 255 for each in small])


def emphasis(sets: list[tuple[Array, Array]]) -> Array:
    """The discriminant directions, as columns for statistics that are not standardised.

    Sizes are treated as one problem: deviations within and between degradations are averaged.
    """
    within = np.zeros((len(NAMES), len(NAMES)))
    between = np.zeros_like(within)
    for rows, kinds in sets:
        present = np.unique(kinds)
        means = np.array([rows[kinds == kind].mean(axis=0) for kind in present])
        between += np.cov(means.T) / len(sets)
        spreads = [np.cov(rows[kinds == kind].T) for kind in present]
        within += np.mean(spreads, axis=0) / len(sets)
    within += 1e-6 * np.diag(np.diag(within))
    ratios, directions = eigh(between, within)
    order = np.argsort(-ratios)
    print("ratios of deviations between and within:", np.sqrt(ratios[order]).round(2))
    best = directions[:, order[:COMBINATIONS]]
    return best * np.sign(best[np.abs(best).argmax(axis=0), range(COMBINATIONS)])


def main() -> None:
    dataset = load_dataset("imagenet-1000")
    photographs = dataset[slice(0, len(dataset))]
    photographs = photographs[np.random.default_rng(0).permutation(len(photographs))]
    matrix = emphasis([degraded_statistics(photographs, size) for size in COPIES])
    lines = [
        f"    ({', '.join(f'{value:.4g}' for value in row)}),  # {name}"
        for name, row in zip(NAMES, matrix, strict=True)
    ]
    OUT.write_text(
        '"""Combinations of image statistics that tell conditions apart and not contents.\n\n'
        "Written by benchmarks/condition_emphasis.py, which says how they were learned. Within\n"
        'one condition, each has a standard deviation of about 1.\n"""\n\n'
        "import numpy as np\n\n"
        "# One row per statistic, one column per combination.\n"
        "EMPHASIS = np.array(\n  [\n" + "\n".join(lines) + "\n  ]\n)\n"
    )


if __name__ == "__main__":
    main()
