"""Would a learned part help the bank? Trains a small network that removes noise and blocks.

    python benchmarks/restorer_training.py TRAINING.npy --minutes 20

TRAINING.npy holds CIFAR-10 *training* images, uint8 of shape (50000, 32, 32, 3); no benchmark of
this project uses them. They are degraded in generic ways: noise of several kinds and any strength,
wrong pixels, JPEG, and coarse pixels. A third of the images is first enlarged, so that the network
also meets smooth photographs. The target is the image before. No model, no label and no corruption
of CIFAR-10-C is used for training. The last 1,000 images are not trained
on: a ResNet-32 that knows them says how many are recognised after each restoration.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from pages import markdown, replace_tables
from soda_tta import zoo
from soda_tta.adaptors.repairs import without_coarse_pixels
from soda_tta.adaptors.restorations import cosine_shrinkage, noise_level
from soda_tta.box import Box
from soda_tta.types import Array

OUT = Path("restorer.safetensors")
PAGE = Path(__file__).parents[1] / "docs" / "research" / "soda-e.md"
RESULTS = Path(__file__).parents[1] / "results" / "restorer.json"
MODEL = "cifar10_resnet32"  # trained on these images: all of them are recognised as they are
CHANNELS = 64
RESIDUAL = 3  # blocks; a plain stack of as many layers hardly learns
COARSE = 2  # the network works at half the size, with four times the channels
STRENGTHS = (0.3, 0.6, 1.0)  # of the noise that the network is told
BATCH = 64
RATE = 1e-3  # of Adam; falls to a hundredth along a cosine
HELD_OUT = 1000  # images at the end, which are not trained on
BLOCKS = 0.3  # share of batches with JPEG or coarse pixels; the others have noise
ENLARGED = 1 / 3  # share of batches that are enlarged first
STRONGEST = 0.4  # standard deviation of the strongest noise
CHECK_EVERY = 500  # steps


class Restorer(nn.Module):
    """Restores images, given what is wrong with them.

    It works on squares of 2 x 2 pixels, as FFDNet does, which makes it four times as fast. What it
    is given besides the image (its noise, and whether it has blocks) are further channels.
    """

    def __init__(self) -> None:
        super().__init__()
        pixels = 3 * COARSE**2
        self.first = convolution(pixels + 2, CHANNELS)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                convolution(CHANNELS, CHANNELS), nn.ReLU(), convolution(CHANNELS, CHANNELS)
            )
            for _ in range(RESIDUAL)
        )
        self.last = convolution(CHANNELS, pixels)

    def forward(self, images: Tensor, noise: Tensor, blocks: Tensor) -> Tensor:
        """The restored images.

        Parameters
        ----------
        images : tensor of shape (n, 3, height, width)
        noise : tensor of shape (n,)
            The standard deviation of the noise of each image, as `noise_level` measures it.
        blocks : tensor of shape (n,)
            1 for images with blocks, from compression or from coarse pixels.
        """
        height, width = images.shape[-2:]
        even = F.pad(images, (0, width % COARSE, 0, height % COARSE), mode="replicate")
        squares = F.pixel_unshuffle(even - 0.5, COARSE)
        facts = torch.stack([noise, blocks], dim=1)[:, :, None, None]
        facts = facts.expand(-1, -1, *squares.shape[-2:])
        features = F.relu(self.first(torch.cat([squares, facts], dim=1)))
        for block in self.blocks:
            features = features + block(features)
        change = F.pixel_shuffle(self.last(features), COARSE)
        return images + change[..., :height, :width]


def convolution(before: int, after: int) -> nn.Conv2d:
    """A layer that sees a pixel and its eight neighbours."""
    return nn.Conv2d(before, after, 3, padding=1, padding_mode="replicate")


def noisy(clean: Tensor, random: torch.Generator) -> Tensor:
    """Noise of a strength of its own for each image: constant, like photons, or multiplicative."""
    count = len(clean)
    strength = STRONGEST * torch.rand(count, 1, 1, 1, generator=random) ** 1.5
    kind = torch.rand(count, 1, 1, 1, generator=random)
    like_photons = clean.clamp(min=0.02).sqrt() * 1.4
    scale = torch.where(kind < 0.5, torch.ones_like(clean), like_photons)
    scale = torch.where(kind > 0.8, 2 * clean, scale)
    degraded = clean + strength * scale * torch.randn(clean.shape, generator=random)
    # Every sixth image has wrong pixels instead, or besides.
    share = 0.15 * torch.rand(count, 1, 1, 1, generator=random)
    share = share * (torch.rand(count, 1, 1, 1, generator=random) < 1 / 6)
    drawn = torch.rand(clean.shape, generator=random)
    only = torch.rand(count, 1, 1, 1, generator=random) < 0.7
    degraded = torch.where(only & (share > 0), clean, degraded)
    degraded = torch.where(drawn < share / 2, torch.zeros_like(clean), degraded)
    degraded = torch.where(drawn > 1 - share / 2, torch.ones_like(clean), degraded)
    return degraded.clamp(0, 1)


def blocky(clean: Tensor, random: np.random.Generator) -> Tensor:
    """Each image saved as JPEG of low quality, or with coarse pixels."""
    pixels = np.rint(255 * clean.numpy().transpose(0, 2, 3, 1)).astype(np.uint8)
    changed = [
        saved(each, int(random.integers(8, 70)))
        if random.random() < 0.6
        else coarse(each, random.uniform(0.4, 0.95))
        for each in pixels
    ]
    return torch.from_numpy(np.array(changed).transpose(0, 3, 1, 2).astype(np.float32) / 255)


def saved(pixels: Array, quality: int) -> Array:
    """An image as JPEG returns it."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer))


def coarse(pixels: Array, factor: float) -> Array:
    """An image with fewer pixels, each shown as a rectangle."""
    height, width = pixels.shape[:2]
    small = Image.fromarray(pixels).resize(
        (round(factor * width), round(factor * height)), Image.Resampling.BOX
    )
    return np.asarray(small.resize((width, height), Image.Resampling.BOX))


def enlarged(clean: Tensor, random: torch.Generator) -> Tensor:
    """A part of each image, enlarged to the whole: smooth, as large photographs are."""
    side = int(torch.randint(10, 24, (1,), generator=random))
    part = clean[..., :side, :side]
    return F.interpolate(part, size=clean.shape[-2:], mode="bicubic").clamp(0, 1)


class Pairs:
    """Degraded images, what the network is told about them, and the images before."""

    def __init__(self, images: Array, seed: int) -> None:
        self.images = images
        self.random = torch.Generator().manual_seed(seed)
        self.numpy = np.random.default_rng(seed)

    def draw(self, count: int) -> tuple[Tensor, Tensor, bool]:
        places = np.sort(self.numpy.choice(len(self.images), count, replace=False))
        pixels = self.images[places].transpose(0, 3, 1, 2).astype(np.float32) / 255
        clean = torch.from_numpy(pixels)
        if self.numpy.random() < 0.5:
            clean = clean.flip(3)
        if self.numpy.random() < ENLARGED:
            clean = enlarged(clean, self.random)
        blocks = bool(self.numpy.random() < BLOCKS)
        degraded = blocky(clean, self.numpy) if blocks else noisy(clean, self.random)
        return degraded, clean, blocks


def restored(network: Restorer, degraded: Tensor, blocks: bool) -> Tensor:
    """What the network makes of degraded images."""
    if blocks:
        return network(degraded, torch.zeros(len(degraded)), torch.ones(len(degraded)))
    return network(degraded, noise_level(degraded), torch.zeros(len(degraded)))


def train(network: Restorer, images: Array, minutes: float, threads: int, out: Path) -> None:
    torch.set_num_threads(threads)
    pairs = Pairs(images[:-HELD_OUT], seed=0)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    began = time.monotonic()
    step, losses = 0, []
    while (spent := (time.monotonic() - began) / (60 * minutes)) < 1:
        rate = RATE * (0.01 + 0.99 * (1 + math.cos(math.pi * spent)) / 2)
        for group in optimiser.param_groups:
            group["lr"] = rate
        degraded, clean, blocks = pairs.draw(BATCH)
        loss = F.mse_loss(restored(network, degraded, blocks), clean)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
        step += 1
        if step % CHECK_EVERY == 0:
            print(f"{step} steps, {100 * spent:.0f} %, loss {np.mean(losses):.5f}", flush=True)
            losses = []
            save(network, out)
    save(network, out)


def save(network: Restorer, out: Path) -> None:
    """In half precision, which is precise enough and half as large."""
    values = {name: each.half().contiguous() for name, each in network.state_dict().items()}
    save_file(values, out)


def degraded_images(images: Array) -> dict[str, Tensor]:
    """Held-out images, degraded in the ways that the network has learned."""
    pixels = images[-HELD_OUT:].transpose(0, 3, 1, 2).astype(np.float32) / 255
    clean = torch.from_numpy(pixels)
    random = torch.Generator().manual_seed(1)
    found = {}
    for strength in (0.05, 0.1, 0.2, 0.3):
        noise = strength * torch.randn(clean.shape, generator=random)
        found[f"noise {strength}"] = (clean + noise).clamp(0, 1)
    for strength in (0.2, 0.4):
        noise = strength * torch.randn(clean.shape, generator=random)
        found[f"multiplicative noise {strength}"] = (clean * (1 + noise)).clamp(0, 1)
    for quality in (12, 30):
        found[f"JPEG {quality}"] = as_images([saved(each, quality) for each in images[-HELD_OUT:]])
    for factor in (0.65, 0.5):
        found[f"resized {factor}"] = as_images(
            [coarse(each, factor) for each in images[-HELD_OUT:]]
        )
    return found


def as_images(pixels: list[Array]) -> Tensor:
    return torch.from_numpy(np.array(pixels).transpose(0, 3, 1, 2).astype(np.float32) / 255)


@torch.inference_mode()
def examine(network: Restorer, images: Array) -> dict[str, dict[str, float]]:
    """Images that are recognised after each restoration, in percent."""
    box = zoo.deployed(MODEL, threads=1)
    pixels = images[-HELD_OUT:].transpose(0, 3, 1, 2).astype(np.float32) / 255
    labels = box(pixels).argmax(axis=1)
    found = {}
    for title, degraded in degraded_images(images).items():
        level = noise_level(degraded)
        zero = torch.zeros_like(level)
        shrunk = [
            *cosine_shrinkage(degraded, (0.15, 0.3)),
            *cosine_shrinkage(degraded, (1.5 * level, 2.5 * level)),
        ]
        versions = {
            "as it is": [degraded],
            "best shrinkage": shrunk,
            "coarse pixels": [without_coarse_pixels(degraded)],
            **{
                f"learned, {strength:g} x noise": [network(degraded, strength * level, zero)]
                for strength in STRENGTHS
            },
            "learned, blocks": [network(degraded, zero, zero + 1)],
        }
        found[title] = {
            name: max(recognised(box, each, labels) for each in alternatives)
            for name, alternatives in versions.items()
        }
        print(title, found[title], flush=True)
    return found


def recognised(box: Box, images: Tensor, labels: Array) -> float:
    """The share of images whose answer is right, in percent."""
    answers = box(images.clamp(0, 1).numpy()).argmax(axis=1)
    return round(100 * float((answers == labels).mean()), 1)


def table(found: dict[str, dict[str, float]]) -> str:
    """One row per degradation, the best in bold."""
    rows = [["", *next(iter(found.values()))]]
    for title, figures in found.items():
        best = max(figures.values())
        cells = [f"**{value}**" if value == best else f"{value}" for value in figures.values()]
        rows.append([title, *cells])
    return markdown(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("training", type=Path, help="CIFAR-10 training images, an .npy file")
    parser.add_argument("--minutes", type=float, default=0, help="how long to train")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    images = np.load(options.training, mmap_mode="r")
    torch.manual_seed(0)
    network = Restorer()
    if options.out.exists():
        stored = load_file(options.out)
        network.load_state_dict({name: values.float() for name, values in stored.items()})
    if options.minutes:
        train(network, images, options.minutes, options.threads, options.out)
    RESULTS.write_text(json.dumps(examine(network, images), indent=1) + "\n")
    tables = {"restorer": table(json.loads(RESULTS.read_text()))}
    PAGE.write_text(replace_tables(PAGE.read_text(), tables))


if __name__ == "__main__":
    main()
