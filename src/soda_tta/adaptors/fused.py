"""The paper's network for many candidates, in a fast form.

The network is pad - convolution - instance norm - activation - pad - convolution - tanh. Computed
layer by layer, it spends its time moving a 64-channel map through memory. Three identities remove
most of that; `tests/adaptors/test_network.py` compares the result with the plain network.

1. A convolution is a product with the image's 3x3 patches, and the patches are the same for every
   candidate.
2. Instance norm after a linear map does not need the map's output: the variance of channel w is
   w' C w, with C the 27 x 27 covariance of the patches. So the norm only rescales the weights (and
   the bias cancels).
3. The second convolution is a product at each pixel (64 -> 9 taps x 3 colours), followed by adding
   nine shifted maps. Padding then applies to 27 maps instead of 64.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

NORM_EPSILON = 1e-5  # torch.nn.InstanceNorm2d's own
CACHE_FLOATS = 2**21  # 8 MB of feature map at a time: measured best on 32 px images


def cache_sized(pixels: Tensor, width: int) -> Iterator[slice]:
    """Slices of a batch whose feature maps fit into the cache.

    Parameters
    ----------
    pixels : tensor of shape (n, 3, height, width)
    width : int
        Channels of the feature map.
    """
    floats_per_image = width * pixels.shape[2] * pixels.shape[3]
    step = max(1, CACHE_FLOATS // floats_per_image)
    return (slice(start, min(start + step, len(pixels))) for start in range(0, len(pixels), step))


def fused_perturbations(pixels: Tensor, thetas: Tensor, width: int, activation: str) -> Tensor:
    """The network's output for each candidate.

    Parameters
    ----------
    pixels : tensor of shape (n, 3, height, breadth)
    thetas : tensor of shape (k, d)
        One parameter vector per candidate.
    width : int
        Channels of the network.
    activation : str
        "hardswish" or "relu".

    Returns
    -------
    tensor of shape (k, n, 3, height, breadth), in [-1, 1]
    """
    images, _, height, breadth = pixels.shape
    patches = F.unfold(F.pad(pixels, (1, 1, 1, 1), mode="reflect"), 3)
    patches -= patches.mean(dim=2, keepdim=True)
    covariance = patches @ patches.transpose(1, 2) / patches.shape[2]
    result = pixels.new_empty((len(thetas), images, 3, height, breadth))
    activate = F.hardswish if activation == "hardswish" else F.relu
    for theta, output in zip(thetas, result, strict=True):
        first, _, second, bias = theta.split([27 * width, width, 27 * width, 3])
        first = first.view(width, 27)
        variance = ((first @ covariance) * first).sum(dim=2)  # identity 2
        scaled = first * torch.rsqrt(variance.clamp_(min=0) + NORM_EPSILON).unsqueeze(2)
        features = activate(torch.bmm(scaled, patches), inplace=True)
        taps = second.view(3, width, 9).permute(2, 0, 1).reshape(27, width)
        maps = torch.matmul(taps, features).view(images, 27, height, breadth)
        maps = F.pad(maps, (1, 1, 1, 1), mode="reflect").view(images, 9, 3, height + 2, breadth + 2)
        output.copy_(bias.view(1, 3, 1, 1).expand_as(output))
        for tap in range(9):  # identity 3
            down, right = divmod(tap, 3)
            output += maps[:, tap, :, down : down + height, right : right + breadth]
        output.tanh_()
    return result
