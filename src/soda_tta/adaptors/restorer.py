"""The learned part of the bank: a small network that removes noise and blocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CHANNELS = 64
LAYERS = 6  # convolutions between the first and the last
COARSE = 2  # the network works at half the size, with four times the channels


class Restorer(nn.Module):
    """Restores images, given what is wrong with them.

    It works on squares of 2 x 2 pixels, as FFDNet does, which makes it four times as fast. What it
    is told (the noise of each image, and whether it has blocks) are further channels.
    """

    def __init__(self) -> None:
        super().__init__()
        pixels = 3 * COARSE**2
        widths = [pixels + 2, *(CHANNELS,) * (LAYERS + 1), pixels]
        self.layers = nn.ModuleList(
            nn.Conv2d(before, after, 3, padding=1, padding_mode="replicate")
            for before, after in zip(widths[:-1], widths[1:], strict=True)
        )

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
        squares = F.pixel_unshuffle(even, COARSE)
        facts = torch.stack([noise, blocks], dim=1)[:, :, None, None]
        facts = facts.expand(-1, -1, *squares.shape[-2:])
        features = torch.cat([squares, facts], dim=1)
        for layer in self.layers[:-1]:
            features = F.relu(layer(features))
        change = F.pixel_shuffle(self.layers[-1](features), COARSE)
        return images + change[..., :height, :width]
