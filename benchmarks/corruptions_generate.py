"""Corrupt photographs with the public reference implementation.

benchmarks/corruptions_reference.py runs this file in an environment that has the reference
installed. It needs numpy besides, and only writes .npy files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

DETERMINISTIC = (
    "defocus_blur",
    "zoom_blur",
    "gaussian_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "saturate",
)
COMPARED = 300  # photographs are enough where pixels agree to within a level
DRAWN = (3, 8, 21)  # three photographs that have dark, bright and textured parts
SEEDS_PER_REPEAT = 100_000  # repeats use disjoint seeds
FIRST_DRAW = 10_000  # seeds of the many draws start here


def cell_file(folder: Path, name: str, severity: int, repeat: int) -> Path:
    """The reference images of a corruption and severity; repeat 0 is the first draw."""
    suffix = "" if repeat == 0 else f"-again{repeat}"
    return folder / f"{name}-{severity}{suffix}.npy"


def draws_file(folder: Path, name: str, severity: int) -> Path:
    """Many draws of the reference on the photographs of DRAWN."""
    return folder / f"{name}-{severity}-draws.npy"


def generate(folder: Path, names: list[str], severities: list[int], again: int) -> None:
    """Corrupt photographs.npy and write one file per cell; existing files are kept."""
    photographs = np.load(folder / "photographs.npy")
    draws = int((folder / "draws").read_text())
    for name in names:
        needed = photographs[:COMPARED] if name in DETERMINISTIC else photographs
        for severity in severities:
            for repeat in range(again + 1):
                file = cell_file(folder, name, severity, repeat)
                if not file.exists():
                    first = SEEDS_PER_REPEAT * repeat
                    images = [
                        draw_reference(image, name, severity, first + index)
                        for index, image in enumerate(needed)
                    ]
                    np.save(file, np.stack(images))
            file = draws_file(folder, name, severity)
            if name not in DETERMINISTIC and not file.exists():
                seeds = range(FIRST_DRAW, FIRST_DRAW + draws)
                repeated = [
                    [draw_reference(photographs[i], name, severity, seed) for seed in seeds]
                    for i in DRAWN
                ]
                np.save(file, np.array(repeated))
            print(f"reference: {name} {severity}", flush=True)


def draw_reference(image: np.ndarray, name: str, severity: int, seed: int) -> np.ndarray:
    """One image corrupted by the reference."""
    import imagecorruptions

    np.random.seed(seed)  # noqa: NPY002 (the reference has no other way)
    return imagecorruptions.corrupt(image, corruption_name=name, severity=severity)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="has photographs.npy and draws")
    parser.add_argument("--corruptions", nargs="+", required=True)
    parser.add_argument("--severities", nargs="+", type=int, required=True)
    parser.add_argument("--again", type=int, default=0, help="new draws besides the first")
    options = parser.parse_args()
    generate(options.folder, options.corruptions, options.severities, options.again)


if __name__ == "__main__":
    main()
