"""The names of the 19 corruptions and their severities, without the code that computes them.

Recognising a folder such as CIFAR-10-C needs the names only; the code behind them imports scipy.
"""

from __future__ import annotations

from typing import Final

# The position of a name enters its random draws: append to this tuple, never reorder it.
CORRUPTIONS: Final = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "speckle_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "gaussian_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
    "spatter",
    "saturate",
)
SEVERITIES: Final = (1, 2, 3, 4, 5)
