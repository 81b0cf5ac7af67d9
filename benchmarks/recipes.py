"""Which values of the bank's parts help together? Writes src/soda_tta/adaptors/recipe_table.py.

    python benchmarks/recipes.py TRAINING.npy [--part 0 2]    # resumes; then without --part

TRAINING.npy holds CIFAR-10 *training* images, uint8 of shape (50000, 32, 32, 3). No benchmark of
this project uses them. They are degraded in generic ways, mostly those of condition_emphasis.py,
with strengths that differ from those of the benchmarks. For each, soda-e searches from nothing
with 25 queries per image on 2,000 images, in front of a ResNet-32. No label is used, and no
corruption of CIFAR-10-C, whose families are similar: noise, blur, haze, JPEG and so on.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from condition_emphasis import (
    Degradation,
    blur,
    coarse,
    contrast,
    haze,
    jpeg,
    motion,
    noise,
    salt_and_pepper,
    saturation,
)
from soda_tta import adapt, zoo
from soda_tta.adaptors import BankAdaptor
from soda_tta.adaptors.parts import PARTS, SILENT, scale
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "src" / "soda_tta" / "adaptors" / "recipe_table.py"
FOUND = Path(__file__).parents[1] / "results" / "recipes.json"
MODEL = "cifar10_resnet32"  # the tables of soda-e are of ResNet-20
IMAGES = 2000
BUDGET = 25  # queries per image


def multiplicative(amount: float) -> Degradation:
    """Noise in proportion to the brightness."""
    return lambda images, random, grain: (
        images * (1 + amount * random.standard_normal(images.shape))
    )


def resized(factor: float) -> Degradation:
    """Smaller, and enlarged again."""

    def degrade(images: Array, random: np.random.Generator, grain: float) -> Array:
        changed = []
        for pixels in np.rint(255 * images.transpose(0, 2, 3, 1)).astype(np.uint8):
            side = round(factor * len(pixels))
            small = Image.fromarray(pixels).resize((side, side), Image.Resampling.BOX)
            large = small.resize(pixels.shape[1::-1], Image.Resampling.NEAREST)
            changed.append(np.asarray(large).transpose(2, 0, 1) / 255)
        return np.array(changed)

    return degrade


DEGRADATIONS: dict[str, Degradation] = {
    "nothing": lambda images, random, grain: images,
    **{f"noise {amount}": noise(amount) for amount in (0.07, 0.13, 0.25)},
    "multiplicative noise 0.3": multiplicative(0.3),
    **{f"blur {radius}": blur(radius) for radius in (0.6, 1.0, 1.6)},
    **{f"contrast {factor}": contrast(factor) for factor in (0.5, 0.25, 0.1)},
    **{f"brightness {offset:+}": contrast(1.0, offset) for offset in (0.2, -0.2, 0.35)},
    **{f"haze {share}": haze(share) for share in (0.3, 0.6, 0.8)},
    **{f"jpeg {quality}": jpeg(quality) for quality in (30, 12, 6)},
    **{f"wrong pixels {share}": salt_and_pepper(share) for share in (0.05, 0.2)},
    "motion 5": motion(5, 3),
    "motion 7": motion(7, 2),
    "every second pixel": coarse(2),
    **{f"resized {factor}": resized(factor) for factor in (0.7, 0.5)},
    **{f"saturation {factor}": saturation(factor) for factor in (0.3, 2.5)},
}


def searched(degradation: Degradation, images: Array, number: int) -> dict[str, object]:
    """What a long search finds: the values of the parts that matter."""
    degraded = degradation(images, np.random.default_rng(number), 1.0)
    box = zoo.deployed(MODEL, threads=1)
    pixels = degraded.clip(0, 1).astype(np.float32)
    run = adapt(pixels, box, budget=BUDGET, conditions=1, recipes=False)
    if run.candidate is None:
        return {"values": {}, "adopted": False}
    adaptor = run.candidate.adaptor
    assert isinstance(adaptor, BankAdaptor) and run.verdict is not None
    values = {
        part.name: round(float(value), 3)
        for part, value in zip(PARTS, adaptor.parameters, strict=True)
        if abs(value) > SILENT / scale(part)
    }
    return {"values": values, "adopted": run.verdict.adopt}


def written(found: dict[str, dict]) -> str:
    """The module: what the verdict adopted."""
    lines = []
    for name in DEGRADATIONS:
        values = found.get(name, {}).get("values", {})
        if not values or not found[name]["adopted"]:
            continue
        lines.append(f'    "{name}": {{')
        lines += [f'        "{part}": {value},' for part, value in values.items()]
        lines.append("    },")
    return (
        '"""Values of the bank\'s parts that helped together, each against one degradation.\n\n'
        "Written by benchmarks/recipes.py, which says how they were found.\n"
        '"""\n\n'
        "from collections.abc import Mapping\n\n"
        "RECIPES: Mapping[str, Mapping[str, float]] = {\n" + "\n".join(lines) + "\n}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("training", type=Path, help="CIFAR-10 training images, an .npy file")
    parser.add_argument(
        "--part", type=int, nargs=2, default=(0, 1), metavar=("I", "N"), help="part I of N"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    images = np.load(options.training, mmap_mode="r")
    part, of = options.part
    for number, (name, degradation) in list(enumerate(DEGRADATIONS.items()))[part::of]:
        found = json.loads(FOUND.read_text()) if FOUND.exists() else {}
        if name in found:
            continue
        own = images[number * 1500 :][:IMAGES].transpose(0, 3, 1, 2).astype(np.float32) / 255
        result = searched(degradation, own, number)
        found = json.loads(FOUND.read_text()) if FOUND.exists() else {}
        FOUND.write_text(json.dumps({**found, name: result}, indent=1) + "\n")
        print(name, result, flush=True)
    OUT.write_text(written(json.loads(FOUND.read_text())))


if __name__ == "__main__":
    main()
