"""Trains a small classifier on one domain of PACS, to be deployed on the others: a real domain shift.

    python benchmarks/pacs_classifier.py                             # trained on photographs
    python benchmarks/pacs_classifier.py --domain cartoon --out cartoon.onnx

The features are those of an ImageNet ResNet-50, untouched; only a linear layer is learned, on half of the images of
each class. The file takes RGB images in [0, 1] of 227 pixels (it normalises inside) and returns 7 probabilities.
Prints the accuracy of that file, asked as a black box, on the other half and on the three other domains.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from soda_tta import Box, load_box, zoo
from soda_tta.data import Dataset, load_dataset
from soda_tta.data.home import cache_home
from soda_tta.onnx_files import export_onnx

DOMAINS = ("photo", "art_painting", "cartoon", "sketch")
TRAINED = 15  # images a class; the other 15 measure what was learned
BATCH = 8  # ResNet-50 takes about 50 ms an image: more at once is no faster and needs more memory
PENALTY = 1e-2  # weight decay of the linear layer: 105 images, 2,048 features
STEPS = 200  # L-BFGS has long arrived by then


class Classifier(nn.Module):
    """Images in, probabilities out."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.network = zoo.module("imagenet_resnet50").requires_grad_(False)
        self.network.fc = nn.Identity()
        self.register_buffer("mean", torch.tensor(zoo.IMAGENET.mean).view(1, 3, 1, 1))  # blue, green, red in 0..255
        self.register_buffer("shift", torch.zeros(2048))
        self.register_buffer("scale", torch.ones(2048))
        self.linear = nn.Linear(2048, classes)

    def features(self, images: Tensor) -> Tensor:
        return self.network.features(images.flip(1) * 255 - self.mean)

    def forward(self, images: Tensor) -> Tensor:
        return torch.softmax(self.linear((self.features(images) - self.shift) * self.scale), dim=1)


def halves(dataset: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    """Training and held-out images, the same number of each class."""
    generator = np.random.default_rng(seed)
    shuffled = [generator.permutation(np.flatnonzero(dataset.labels == label)) for label in range(7)]
    first, second = (np.concatenate([part[cut] for part in shuffled]) for cut in (slice(TRAINED), slice(TRAINED, None)))
    return dataset.subset(first), dataset.subset(second)


def train(classifier: Classifier, dataset: Dataset) -> None:
    """Logistic regression on standardised features."""
    with torch.inference_mode():
        starts = range(0, len(dataset), BATCH)
        images = (torch.from_numpy(dataset[slice(start, start + BATCH)]) for start in starts)
        features = torch.cat([classifier.features(batch) for batch in images])
    features, labels = features.clone(), torch.from_numpy(dataset.labels)
    classifier.shift = features.mean(dim=0)
    classifier.scale = 1 / (features.std(dim=0) + 1e-3)
    standard = (features - classifier.shift) * classifier.scale
    search = torch.optim.LBFGS(classifier.linear.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        value = nn.functional.cross_entropy(classifier.linear(standard), labels)
        value = value + PENALTY * classifier.linear.weight.square().sum()
        value.backward()
        return value

    search.step(loss)


def accuracy(box: Box, dataset: Dataset) -> float:
    starts = range(0, len(dataset), BATCH)
    answers = np.concatenate([box(dataset[slice(start, start + BATCH)]).argmax(axis=1) for start in starts])
    return float(100 * (answers == dataset.labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domain", default="photo", choices=DOMAINS, help="where it is trained (default photo)")
    parser.add_argument("--out", type=Path, help="the ONNX file (default: in the cache)")
    parser.add_argument("--seed", type=int, default=0, help="which half is trained on, and the first weights")
    options = parser.parse_args()
    out = options.out or cache_home() / f"pacs_{options.domain}_resnet50.onnx"

    torch.manual_seed(options.seed)
    began = time.perf_counter()
    known, held_out = halves(load_dataset("pacs", domain=options.domain), options.seed)
    classifier = Classifier(len(known.classes or ()))
    train(classifier, known)
    size = known.size
    export_onnx(classifier, out, example=(2, 3, *size), check=(3, 3, *size), output="probabilities")
    print(f"trained on {len(known)} images of {options.domain} in {time.perf_counter() - began:.0f} s -> {out}")

    box = load_box(str(out))
    print("| domain | images | accuracy |\n|---|---|---|")
    for domain in DOMAINS:
        measured = held_out if domain == options.domain else load_dataset("pacs", domain=domain)
        note = " (held out)" if domain == options.domain else ""
        print(f"| {domain}{note} | {len(measured)} | {accuracy(box, measured):.1f} |", flush=True)


if __name__ == "__main__":
    main()
