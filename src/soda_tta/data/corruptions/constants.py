"""The published strength of every corruption, by severity 1 to 5.

Two sets exist because the two benchmarks were tuned separately: ``cifar`` for 32-pixel images
(CIFAR-10-C, CIFAR-100-C) and ``imagenet`` for 224-pixel images (ImageNet-C). All 19 corruptions
differ between them. Lengths are in pixels, amplitudes in units of pixel values in [0, 1].
"""

from __future__ import annotations

from typing import Final

Constant = tuple[float, ...]
Severities = tuple[Constant, Constant, Constant, Constant, Constant]

LARGEST_CIFAR_SIDE: Final = 64  # pixels; larger images look like photographs, not thumbnails


def _single(*values: float) -> Severities:
    """Five severities of a corruption with one constant."""
    one, two, three, four, five = values
    return (one,), (two,), (three,), (four,), (five,)


def _scaled(unit: float, severities: Severities) -> Severities:
    """Severities written in units of the image side, in pixels."""
    one, two, three, four, five = (
        tuple(unit * value for value in constant) for constant in severities
    )
    return one, two, three, four, five


CIFAR: Final[dict[str, Severities]] = {
    "gaussian_noise": _single(0.04, 0.06, 0.08, 0.09, 0.10),  # standard deviation
    "shot_noise": _single(500, 250, 100, 75, 50),  # photons of a white pixel
    "impulse_noise": _single(0.01, 0.02, 0.03, 0.05, 0.07),  # share of values lost
    "speckle_noise": _single(0.06, 0.1, 0.12, 0.16, 0.2),  # relative standard deviation
    # radius of the disc, sigma that smooths its edge
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    # sigma of the blur before and after, largest shift, rounds
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    # radius, sigma of the weights along the line
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    # largest zoom, step
    "zoom_blur": ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    "gaussian_blur": _single(0.4, 0.6, 0.7, 0.8, 1),  # sigma
    # mean, standard deviation, zoom, threshold, motion radius, motion sigma, share kept
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    # weight of the image, weight of the frost, factor by which a frost photograph is shrunk first
    "frost": ((1, 0.2, 5), (1, 0.3, 5), (0.9, 0.4, 5), (0.85, 0.4, 5), (0.75, 0.45, 5)),
    # amount, decay of the roughness from one scale to the next
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "brightness": _single(0.05, 0.1, 0.15, 0.2, 0.3),  # added to the value of HSV
    "contrast": _single(0.75, 0.5, 0.4, 0.3, 0.15),  # factor about the mean of each channel
    # displacement, smoothing, affine jitter
    "elastic_transform": _scaled(
        32,
        ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    ),
    "pixelate": _single(0.95, 0.9, 0.85, 0.75, 0.65),  # side of the small image, as a share
    "jpeg_compression": _single(80, 65, 58, 50, 40),  # quality
    # mean, standard deviation, blur, threshold, strength (of water) or softness (of mud), mud?
    "spatter": (
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
    # factor, shift of the saturation of HSV
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
}

IMAGENET: Final[dict[str, Severities]] = {
    "gaussian_noise": _single(0.08, 0.12, 0.18, 0.26, 0.38),
    "shot_noise": _single(60, 25, 12, 5, 3),
    "impulse_noise": _single(0.03, 0.06, 0.09, 0.17, 0.27),
    "speckle_noise": _single(0.15, 0.2, 0.35, 0.45, 0.6),
    "defocus_blur": ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    "glass_blur": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    "motion_blur": ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    "zoom_blur": ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    "gaussian_blur": _single(1, 2, 3, 4, 6),
    "snow": (
        (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
        (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
        (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
        (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
        (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
    ),
    "frost": ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
    "fog": ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    "brightness": _single(0.1, 0.2, 0.3, 0.4, 0.5),
    "contrast": _single(0.4, 0.3, 0.2, 0.1, 0.05),
    "elastic_transform": _scaled(
        244,
        ((2, 0.7, 0.1), (2, 0.08, 0.2), (0.05, 0.01, 0.02), (0.07, 0.01, 0.02), (0.12, 0.01, 0.02)),
    ),
    "pixelate": _single(0.6, 0.5, 0.4, 0.3, 0.25),
    "jpeg_compression": _single(25, 18, 15, 10, 7),
    "spatter": (
        (0.65, 0.3, 4, 0.69, 0.6, 0),
        (0.65, 0.3, 3, 0.68, 0.6, 0),
        (0.65, 0.3, 2, 0.68, 0.5, 0),
        (0.65, 0.3, 1, 0.65, 1.5, 1),
        (0.67, 0.4, 1, 0.65, 1.5, 1),
    ),
    "saturate": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
}

CONSTANT_SETS: Final[dict[str, dict[str, Severities]]] = {"cifar": CIFAR, "imagenet": IMAGENET}


def constants_for(height: int, width: int) -> str:
    """The name of the constant set for images of this size in pixels.

    >>> constants_for(32, 32), constants_for(224, 224)
    ('cifar', 'imagenet')
    """
    return "cifar" if max(height, width) <= LARGEST_CIFAR_SIDE else "imagenet"
