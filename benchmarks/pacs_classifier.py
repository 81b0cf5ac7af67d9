"""Train a small classifier on one domain of PACS and measure it on the others: a domain shift.

    python benchmarks/pacs_classifier.py                             # trained on photographs
    python benchmarks/pacs_classifier.py --domain cartoon --out cartoon.onnx

The features are those of EfficientNet-Lite0 for ImageNet, unchanged. Only a linear layer is
trained, on half of the images of each class (soda_tta.zoo.pacs). The file takes images of 227
pixels and returns 7 probabilities. The script prints the accuracy of that file, queried as a black
box, on the other half and on the three other domains.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from torch import nn

from soda_tta import Box, load_box
from soda_tta.data import Dataset, load_dataset
from soda_tta.data.home import cache_home
from soda_tta.protocols.onnx_files import export_onnx
from soda_tta.zoo.lite import INPUT
from soda_tta.zoo.pacs import DOMAINS, halves, pacs_classifier

SIZE = 227  # pixels per side of every image of PACS
BATCH = 30  # images per query


def accuracy(box: Box, dataset: Dataset) -> float:
    """Percentage of correct predictions."""
    starts = range(0, len(dataset), BATCH)
    predictions = [box(dataset[slice(s, s + BATCH)]).argmax(axis=1) for s in starts]
    return float(100 * (np.concatenate(predictions) == dataset.labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--domain", default="photo", choices=DOMAINS, help="the training domain (default photo)"
    )
    parser.add_argument("--out", type=Path, help="the ONNX file (default: in the cache folder)")
    options = parser.parse_args()
    out = options.out or cache_home() / f"pacs_{options.domain}_lite0.onnx"

    network = nn.Sequential(pacs_classifier(options.domain), nn.Softmax(dim=1))
    facts = {"mean": INPUT.mean, "std": INPUT.std, "pixel_range": INPUT.pixel_range}
    export_onnx(
        network,
        out,
        example=(2, 3, SIZE, SIZE),
        check=(3, 3, SIZE, SIZE),
        output="probabilities",
        facts=facts,
    )
    print(f"trained on half of {options.domain} -> {out}")

    box = load_box(str(out))
    print("| domain | images | accuracy |\n|---|---|---|")
    for domain in DOMAINS:
        name = domain
        images = load_dataset("pacs", domain=domain)
        if domain == options.domain:
            name = f"{domain} (held out)"
            images = halves(domain)[1]
        print(f"| {name} | {len(images)} | {accuracy(box, images):.1f} |", flush=True)


if __name__ == "__main__":
    main()
