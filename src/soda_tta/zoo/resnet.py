"""Residual networks (He et al., 2016) in the two forms that the benchmarks deploy.

Weights are named as in torchvision.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BasicBlock(nn.Module):
    """Two 3x3 convolutions."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int, epsilon: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width, epsilon)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, epsilon)
        self.downsample = shortcut(inputs, width, stride, epsilon)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1; the stride sits in the first convolution, as in the original network."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int, epsilon: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, stride, bias=False)
        self.bn1 = nn.BatchNorm2d(width, epsilon)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, epsilon)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width, epsilon)
        self.downsample = shortcut(inputs, 4 * width, stride, epsilon)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


def shortcut(inputs: int, outputs: int, stride: int, epsilon: float) -> nn.Sequential | None:
    """The projection that a residual connection needs if its block changes the shape."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs, epsilon)
    )


class ResNet(nn.Module):
    """A stem, stages of residual blocks, a global average and one linear layer. Returns logits.

    Parameters
    ----------
    block : BasicBlock or Bottleneck
    depths : tuple of int
        Blocks per stage.
    width : int
        Channels of the first stage; every stage doubles them.
    classes : int
    large : bool
        True: the stem for images of 224 pixels. False: the stem for 32 pixels.
    epsilon : float, default 1e-5
        Of the batch norms.
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        depths: tuple[int, ...],
        width: int,
        classes: int,
        *,
        large: bool,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        kernel, stride, padding = (7, 2, 3) if large else (3, 1, 1)
        self.conv1 = nn.Conv2d(3, width, kernel, stride, padding, bias=False)
        self.bn1 = nn.BatchNorm2d(width, epsilon)
        self.pool = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        self.stages = len(depths)
        inputs = width
        for stage, depth in enumerate(depths):
            blocks: list[nn.Module] = []
            for number in range(depth):
                stride = 2 if stage > 0 and number == 0 else 1
                blocks.append(block(inputs, width * 2**stage, stride, epsilon))
                inputs = width * 2**stage * block.expansion
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, classes)

    def features(self, x: Tensor) -> Tensor:
        """The input of the last layer: one vector per image."""
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return x.mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.fc(self.features(x))
        return logits


def cifar_resnet(blocks: int, classes: int) -> ResNet:
    """ResNet-20 (3 blocks per stage) or ResNet-32 (5) for images of 32 pixels.

    >>> sum(weight.numel() for weight in cifar_resnet(3, 10).parameters())
    272474
    """
    return ResNet(BasicBlock, (blocks,) * 3, 16, classes, large=False)


def imagenet_resnet50() -> ResNet:
    """ResNet-50 for images of 224 pixels and 1,000 classes."""
    return ResNet(Bottleneck, (3, 4, 6, 3), 64, 1000, large=True, epsilon=1e-3)
