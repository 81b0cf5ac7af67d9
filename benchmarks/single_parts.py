"""Which single restoration undoes which degradation, and what was tried and left out?

    python benchmarks/single_parts.py TRAINING.npy    # minutes of one core; writes the table

TRAINING.npy holds CIFAR-10 *training* images, uint8 of shape (50000, 32, 32, 3). No benchmark of
this project uses them. They are degraded in the generic ways of recipes.py. Each version of the
bank is used alone and whole, in front of a ResNet-32 that was trained on these images: it answers
100 % of them correctly as they are, so the figures show what is lost and not what new images get.
Below the line are candidates that are not in the bank. The labels are the answers to the images as
they are.
"""

from __future__ import annotations

import argparse
import io
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from condition_emphasis import Degradation
from pages import markdown, replace_tables
from recipes import DEGRADATIONS, MODEL
from soda_tta import zoo
from soda_tta.adaptors.deblurring import REGULARISATION, cosine_basis
from soda_tta.adaptors.mixing import with_differences
from soda_tta.adaptors.parts import MIXED
from soda_tta.adaptors.restorations import _with_own_kernel, line_kernels
from soda_tta.types import Array

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "single_parts.json"
PAGE = ROOT / "docs" / "research" / "soda-e.md"
IMAGES = 1000
FIRST = 49_000  # recipes.py and restorer_training.py use other images
CHOSEN = (  # of the degradations; the others differ in strength only, or no version addresses them
    *("noise 0.07", "noise 0.13", "noise 0.25", "multiplicative noise 0.3"),
    *("wrong pixels 0.05", "wrong pixels 0.2", "blur 1.0", "blur 1.6", "disk 1.5", "disk 2.0"),
    *("motion 5", "motion 7", "jpeg 30", "jpeg 12", "resized 0.7", "resized 0.5", "contrast 0.25"),
)


def disk_kernel(radius: float, size: int = 9, fine: int = 15) -> Tensor:
    """A disk, each pixel weighted by its share of the area."""
    steps = (torch.arange(size * fine) - (size * fine - 1) / 2) / fine
    inside = (steps[:, None].square() + steps.square() <= radius**2).float()
    kernel = inside.reshape(size, fine, size, fine).mean((1, 3))
    return kernel / kernel.sum()


def disk(radius: float) -> Degradation:
    """Out of focus."""

    def degrade(images: Array, random: np.random.Generator, grain: float) -> Array:
        pixels = F.pad(torch.from_numpy(images), (4,) * 4, mode="reflect")
        return F.conv2d(pixels, disk_kernel(radius).repeat(3, 1, 1, 1), groups=3).numpy()

    return degrade


# -- candidates that are not in the bank ---------------------------------------------------------


def without_disk(images: Tensor, radius: float) -> Tensor:
    """A regularised inverse of a disk, in the cosine transform as in the bank."""
    down, vertical = cosine_basis(images.shape[-2])
    across, horizontal = cosine_basis(images.shape[-1])
    kernel = disk_kernel(radius)
    steps = torch.arange(len(kernel)) - len(kernel) // 2
    rows = torch.cos(2 * math.pi * vertical[:, None] * steps)
    columns = torch.cos(2 * math.pi * horizontal[:, None] * steps)
    blur = rows @ kernel @ columns.T
    gain = (1 + REGULARISATION) * blur / (blur.square() + REGULARISATION)
    return down.T @ ((down @ images @ across.T) * gain) @ across


def without_line(images: Tensor, radius: float, steps: int = 4) -> Tensor:
    """Iterated inverse of a line blur along the motion that each image itself shows."""
    grey = images.mean(1, keepdim=True)
    right = (grey[:, :, 1:-1, 2:] - grey[:, :, 1:-1, :-2]) / 2
    down = (grey[:, :, 2:, 1:-1] - grey[:, :, :-2, 1:-1]) / 2
    kernels = line_kernels(radius)
    angles = math.pi * torch.arange(len(kernels)) / len(kernels)
    xx, xy, yy = (
        each.mean((1, 2, 3))[:, None] for each in (right * right, right * down, down * down)
    )
    energy = xx * angles.cos() ** 2 + 2 * xy * angles.cos() * angles.sin() + yy * angles.sin() ** 2
    chosen = F.one_hot(energy.argmin(1), len(kernels)).float()
    restored = images
    for _ in range(steps):
        restored = restored + images - _with_own_kernel(restored, kernels, chosen)
    return restored


def saved_again(images: Tensor, quality: int) -> Tensor:
    """The mean of shifted copies that were saved as JPEG again: blocks at other places."""
    total = torch.zeros_like(images)
    shifts = [(down, right) for down in (0, 2, 4, 6) for right in (0, 2, 4, 6)]
    for down, right in shifts:
        moved = F.pad(images, (right, 8 - right, down, 8 - down), mode="reflect")
        pixels = (255 * moved.clamp(0, 1)).round().byte().permute(0, 2, 3, 1).numpy()
        copies = [as_jpeg(each, quality) for each in pixels]
        back = torch.from_numpy(np.array(copies)).permute(0, 3, 1, 2).float() / 255
        total += back[..., down : down + images.shape[2], right : right + images.shape[3]]
    return total / len(shifts)


def as_jpeg(pixels: Array, quality: int) -> Array:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer))


def grey_world(images: Tensor) -> Tensor:
    """Every colour with the same mean."""
    means = images.mean((2, 3), keepdim=True)
    return images * means.mean(1, keepdim=True) / means.clamp(min=0.02)


CANDIDATES: dict[str, Callable[[Tensor], Tensor]] = {
    "undo disk 1.5": lambda images: without_disk(images, 1.5),
    "undo disk 2": lambda images: without_disk(images, 2.0),
    "undo motion 1.5, iterated": lambda images: without_line(images, 1.5),
    "saved again as JPEG 30": lambda images: saved_again(images, 30),
    "grey world": grey_world,
}


def measured(images: Array) -> dict[str, dict[str, float]]:
    """The accuracy of each version, by degradation."""
    box = zoo.deployed(MODEL, threads=1)
    labels = box(images).argmax(axis=1)
    degradations = {**DEGRADATIONS, "disk 1.5": disk(1.5), "disk 2.0": disk(2.0)}
    found = {}
    for number, name in enumerate(CHOSEN):
        degraded = degradations[name](images, np.random.default_rng(number), 1.0)
        pixels = torch.from_numpy(np.rint(255 * degraded.clip(0, 1)).astype(np.float32) / 255)
        with torch.inference_mode():
            stack = torch.cat([with_differences(each, 1.0) for each in pixels.split(50)])
            versions = {"as it is": pixels}
            for index, part in enumerate(MIXED):
                # blurs are subtracted, versions without a defect are taken whole
                amount = 1.0 if part.moves[0] > 0 else part.moves[0]
                versions[part.name] = pixels + amount * stack[:, 1 + index]
            versions |= {title: make(pixels) for title, make in CANDIDATES.items()}
        found[name] = {
            title: round(100 * float((box(each.clamp(0, 1).numpy()).argmax(1) == labels).mean()), 1)
            for title, each in versions.items()
        }
        best = max(found[name], key=found[name].__getitem__)
        print(name, found[name]["as it is"], "->", best, found[name][best], flush=True)
    return found


def table(found: dict[str, dict[str, float]]) -> str:
    """One row per version, one column per degradation, the best of each column in bold."""
    titles = list(next(iter(found.values())))
    rows = [["", *found]]
    for title in titles:
        label = f"*{title}*" if title in CANDIDATES else title
        cells = []
        for column in found.values():
            best = max(column.values())
            value = f"{column[title]:.0f}"
            cells.append(f"**{value}**" if column[title] == best else value)
        rows.append([label, *cells])
    return markdown(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("training", type=Path, nargs="?", help="an .npy file; none: the table only")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.training is not None:
        pixels = np.load(options.training, mmap_mode="r")[FIRST : FIRST + IMAGES]
        images = pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255
        OUT.write_text(json.dumps(measured(images), indent=1) + "\n")
    tables = {"single-parts": table(json.loads(OUT.read_text()))}
    PAGE.write_text(replace_tables(PAGE.read_text(), tables))


if __name__ == "__main__":
    main()
