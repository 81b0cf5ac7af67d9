"""One image as a PNG file, written atomically."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from soda_tta.storage.atomic import replacing
from soda_tta.types import Array


def write_png(path: Path, pixels: Array) -> None:
    """Write float32 (3, height, width) in [0, 1] as 8-bit PNG."""
    levels = np.rint(pixels.transpose(1, 2, 0) * 255).astype(np.uint8)
    with replacing(path) as temporary:
        Image.fromarray(levels).save(temporary, "PNG")
