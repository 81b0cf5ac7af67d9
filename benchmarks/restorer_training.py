"""Trains the learned restorer of the bank: a small network that removes noise and blocks.

    python benchmarks/restorer_training.py TRAINING.npy --minutes 45 [--out FILE]    # resumes

TRAINING.npy holds CIFAR-10 *training* images, uint8 of shape (50000, 32, 32, 3); no benchmark of
this project uses them. They are degraded in generic ways: noise of several kinds and any strength,
wrong pixels, JPEG, and coarse pixels. A third of the images is first enlarged, so that the network
also meets smooth photographs. The target is the image before. No model, no label and no corruption
of CIFAR-10-C is used. Without --minutes, the last 1,000 images tell the error that is left.
"""

from __future__ import annotations

import argparse
import io
import math
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from soda_tta.adaptors.restorations import cosine_shrinkage, noise_level
from soda_tta.adaptors.restorer import Restorer
from soda_tta.types import Array

OUT = Path(__file__).parents[1] / "src" / "soda_tta" / "adaptors" / "restorer.safetensors"
BATCH = 64
RATE = 1e-3  # of Adam; falls to a hundredth along a cosine
HELD_OUT = 1000  # images at the end, which are not trained on
BLOCKS = 0.3  # share of batches with JPEG or coarse pixels; the others have noise
ENLARGED = 1 / 3  # share of batches that are enlarged first
STRONGEST = 0.4  # standard deviation of the strongest noise
CHECK_EVERY = 500  # steps


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


def train(network: Restorer, images: Array, minutes: float, threads: int) -> None:
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


def decibels(error: float) -> float:
    """The ratio of signal and noise of pixels in [0, 1]."""
    return -10 * math.log10(error)


@torch.inference_mode()
def examine(network: Restorer, images: Array) -> None:
    """The error on images that were not trained on, beside shrinkage."""
    pixels = images[-HELD_OUT:].transpose(0, 3, 1, 2).astype(np.float32) / 255
    clean = torch.from_numpy(pixels)
    random = torch.Generator().manual_seed(1)
    for strength in (0.05, 0.1, 0.2, 0.35):
        noise = strength * torch.randn(clean.shape, generator=random)
        degraded = (clean + noise).clamp(0, 1)
        level = noise_level(degraded)
        found = {
            "as it is": degraded,
            "shrinkage": cosine_shrinkage(degraded, (2.5 * level,))[0],
            "restorer": restored(network, degraded, False),
        }
        report(f"noise {strength}", found, clean)
    for quality in (20, 40):
        saved_images = [saved(each, quality) for each in images[-HELD_OUT:]]
        degraded = torch.from_numpy(
            np.array(saved_images).transpose(0, 3, 1, 2).astype(np.float32) / 255
        )
        found = {"as it is": degraded, "restorer": restored(network, degraded, True)}
        report(f"JPEG {quality}", found, clean)


def report(title: str, found: dict[str, Tensor], clean: Tensor) -> None:
    figures = [
        f"{name} {decibels(F.mse_loss(images, clean).item()):.2f} dB"
        for name, images in found.items()
    ]
    print(f"{title}: {', '.join(figures)}")


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
        network.load_state_dict(load_file(options.out))
    if options.minutes:
        train(network, images, options.minutes, options.threads)
        save_file(network.state_dict(), options.out)
    examine(network, images)


if __name__ == "__main__":
    main()
