"""A classifier trained on one domain of PACS, to be deployed on the others: a real domain shift.

It uses the unchanged features of EfficientNet-Lite0 and a linear layer trained on half of the
images of each class. Training takes a few seconds; the layer is kept in the user's cache.
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
TRAINED = 15  # images per class; the other 15 measure the accuracy
BATCH = 15  # images per pass through the features
PENALTY = 1e-2  # weight decay of the linear layer: 105 images, 1,280 features
STEPS = 200  # L-BFGS converges long before


def halves(domain: str) -> tuple[Dataset, Dataset]:
    """Training and held-out images, with the same number of each class.

    Parameters
    ----------
    domain : str
        One of `DOMAINS`.
    """
    dataset = load_dataset("pacs", domain=domain)
    generator = np.random.default_rng(0)
    shuffled = [
        generator.permutation(np.flatnonzero(dataset.labels == label)) for label in range(7)
    ]
    training = np.concatenate([indices[:TRAINED] for indices in shuffled])
    held_out = np.concatenate([indices[TRAINED:] for indices in shuffled])
    return dataset.subset(training), dataset.subset(held_out)


def head_path(domain: str) -> Path:
    """The file of a domain's linear layer; it is trained if the file does not exist yet."""
    digest = hashlib.sha256(weights_path().read_bytes()).hexdigest()[:12]
    path = cache_home() / f"pacs_{domain}_lite0_head-{digest}.safetensors"
    if not path.exists():
        weight, bias = train_head(efficientnet_lite0().eval(), halves(domain)[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, save({"weight": weight.contiguous(), "bias": bias.contiguous()}))
    return path


def pacs_classifier(domain: str) -> Lite:
    """The classifier trained on a domain.

    Parameters
    ----------
    domain : str
        One of `DOMAINS`.
    """
    network = efficientnet_lite0()
    network.head = nn.Linear(1280, 7)
    network.head.load_state_dict(load_file(head_path(domain)))
    return network


def train_head(network: Lite, images: Dataset) -> tuple[Tensor, Tensor]:
    """Logistic regression on standardised features.

    The standardisation is folded into the weights and biases that are returned.
    """
    with torch.no_grad():
        starts = range(0, len(images), BATCH)
        pieces = (INPUT.prepare(images[slice(start, start + BATCH)]) for start in starts)
        features = torch.cat([network.features(torch.from_numpy(piece)) for piece in pieces])
    labels = torch.from_numpy(images.labels)
    shift = features.mean(dim=0)
    scale = 1 / (features.std(dim=0) + 1e-3)
    standardised = (features - shift) * scale
    layer = nn.Linear(features.shape[1], 7)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimiser: Any = torch.optim.LBFGS(
        layer.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        penalty = PENALTY * layer.weight.square().sum()
        value = nn.functional.cross_entropy(layer(standardised), labels) + penalty
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(loss)
    weight = layer.weight.detach() * scale
    return weight, layer.bias.detach() - weight @ shift
