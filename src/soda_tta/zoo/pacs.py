"""A classifier trained on one domain of PACS, to be deployed on the others: a real domain shift.

Features of EfficientNet-Lite0, untouched, and a linear layer learned from half of the images of each class. It takes
a few seconds to learn and is kept in the user's cache.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from soda_tta.data import Dataset, load_dataset
from soda_tta.data.home import cache_home
from soda_tta.storage.atomic import write_bytes
from soda_tta.zoo.lite import INPUT, Lite, efficientnet_lite0, weights_path

DOMAINS = ("photo", "art_painting", "cartoon", "sketch")
TRAINED = 15  # images a class; the other 15 measure what was learned
BATCH = 15  # images at a time through the features
PENALTY = 1e-2  # weight decay of the linear layer: 105 images, 1,280 features
STEPS = 200  # L-BFGS has long arrived by then


def halves(domain: str) -> tuple[Dataset, Dataset]:
    """Training and held-out images, the same number of each class."""
    dataset = load_dataset("pacs", domain=domain)
    generator = np.random.default_rng(0)
    shuffled = [
        generator.permutation(np.flatnonzero(dataset.labels == label)) for label in range(7)
    ]
    first, second = (
        np.concatenate([part[cut] for part in shuffled])
        for cut in (slice(TRAINED), slice(TRAINED, None))
    )
    return dataset.subset(first), dataset.subset(second)


def head_path(domain: str) -> Path:
    """The learned layer of a domain, learned now if it was not before."""
    digest = hashlib.sha256(weights_path().read_bytes()).hexdigest()[:12]
    path = cache_home() / f"pacs_{domain}_lite0_head-{digest}.safetensors"
    if not path.exists():
        weight, bias = learn(efficientnet_lite0().eval(), halves(domain)[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, save({"weight": weight.contiguous(), "bias": bias.contiguous()}))
    return path


def pacs_classifier(domain: str) -> Lite:
    network = efficientnet_lite0()
    network.head = nn.Linear(1280, 7)
    network.head.load_state_dict(load_file(head_path(domain)))
    return network


def learn(network: Lite, images: Dataset) -> tuple[Tensor, Tensor]:
    """Logistic regression on standardised features; the standardising is folded into the layer."""
    with torch.no_grad():
        starts = range(0, len(images), BATCH)
        pieces = (INPUT.prepare(images[slice(start, start + BATCH)]) for start in starts)
        features = torch.cat([network.features(torch.from_numpy(piece)) for piece in pieces])
    labels, shift, scale = (
        torch.from_numpy(images.labels),
        features.mean(dim=0),
        1 / (features.std(dim=0) + 1e-3),
    )
    standard, layer = (features - shift) * scale, nn.Linear(features.shape[1], 7)
    nn.init.zeros_(layer.weight), nn.init.zeros_(layer.bias)
    search: Any = torch.optim.LBFGS(
        layer.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        search.zero_grad()
        value = (
            nn.functional.cross_entropy(layer(standard), labels)
            + PENALTY * layer.weight.square().sum()
        )
        value.backward()  # type: ignore[no-untyped-call]
        return value

    search.step(loss)
    weight = layer.weight.detach() * scale
    return weight, layer.bias.detach() - weight @ shift
