"""Trains a small classifier on one domain of PACS, to be deployed on the others: a real domain shift.

    python benchmarks/pacs_classifier.py                             # trained on photographs
    python benchmarks/pacs_classifier.py --domain cartoon --out cartoon.onnx

The features are those of EfficientNet-Lite0 for ImageNet, untouched; only a linear layer is learned, on half of the
images of each class (soda_tta.zoo.pacs). The file takes images of 227 pixels and returns 7 probabilities. Prints the
accuracy of that file, asked as a black box, on the other half and on the three other domains.
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

SIZE = 227  # of every image of PACS
BATCH = 30


def accuracy(box: Box, dataset: Dataset) -> float:
    starts = range(0, len(dataset), BATCH)
    answers = np.concatenate(
        [box(dataset[slice(start, start + BATCH)]).argmax(axis=1) for start in starts]
    )
    return float(100 * (answers == dataset.labels).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--domain", default="photo", choices=DOMAINS, help="where it is trained (default photo)"
    )
    parser.add_argument("--out", type=Path, help="the ONNX file (default: in the cache)")
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
        own = domain == options.domain
        measured = halves(domain)[1] if own else load_dataset("pacs", domain=domain)
        note = " (held out)" if own else ""
        print(f"| {domain}{note} | {len(measured)} | {accuracy(box, measured):.1f} |", flush=True)


if __name__ == "__main__":
    main()
