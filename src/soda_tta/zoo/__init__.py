"""Deployed models for benchmarks and tests: real trained networks, as a white box (module) or a black one (ONNX)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from soda_tta.box import Box, Input, ModuleBox, OnnxBox
from soda_tta.data.home import cache_home, data_file
from soda_tta.errors import SodaError
from soda_tta.onnx_files import export_onnx
from soda_tta.zoo.resnet import cifar_resnet, imagenet_resnet50

__all__ = ["ENTRIES", "Entry", "deployed", "module", "onnx_path"]

CIFAR10 = Input(size=(32, 32), mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010))
CIFAR100 = Input(size=(32, 32), mean=(0.5070, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2761))
IMAGENET = Input(size=(224, 224), channels="BGR", pixel_range=255.0, mean=(103.939, 116.779, 123.68), std=(1.0,) * 3)


@dataclass(frozen=True)
class Entry:
    """A network, its weights file in the data home, and the images it was trained for."""

    build: Callable[[], nn.Module]
    weights: str
    input: Input


ENTRIES = {
    "cifar10_resnet20": Entry(lambda: cifar_resnet(3, 10), "models/cifar10_resnet20.safetensors", CIFAR10),
    "cifar10_resnet32": Entry(lambda: cifar_resnet(5, 10), "models/cifar10_resnet32.safetensors", CIFAR10),
    "cifar100_resnet20": Entry(lambda: cifar_resnet(3, 100), "models/cifar100_resnet20.safetensors", CIFAR100),
    "cifar100_resnet32": Entry(lambda: cifar_resnet(5, 100), "models/cifar100_resnet32.safetensors", CIFAR100),
    "imagenet_resnet50": Entry(imagenet_resnet50, "models/imagenet_resnet50.fp16.safetensors", IMAGENET),
}


def find(name: str) -> Entry:
    if name not in ENTRIES:
        raise SodaError(f"there is no model {name!r}; choose one of {', '.join(ENTRIES)}.")
    return ENTRIES[name]


def module(name: str) -> nn.Module:
    """The network with its trained weights, in evaluation mode; returns logits of normalised images."""
    from safetensors.torch import load_file

    entry = find(name)
    network = entry.build()
    network.load_state_dict({key: value.float() for key, value in load_file(data_file(entry.weights)).items()})
    return network.eval()


def onnx_path(name: str) -> Path:
    """The network as an ONNX file that returns probabilities; made once and kept in the user's cache."""
    entry = find(name)
    digest = hashlib.sha256(data_file(entry.weights).read_bytes()).hexdigest()[:12]
    path = cache_home() / f"{name}-{digest}.onnx"
    if not path.exists():
        network = nn.Sequential(module(name), nn.Softmax(dim=1))
        height, width = entry.input.size or (32, 32)
        shape = (3, height, width)
        facts = {
            key: value for key, value in entry.input.card().items() if key in ("mean", "std", "channels", "pixel_range")
        }
        export_onnx(network, path, example=(2, *shape), check=(3, *shape), output="probabilities", facts=facts)
    return path


def deployed(name: str, kind: str = "onnx", threads: int | None = None) -> Box:
    """A model of the zoo as a box: kind "onnx" (probabilities only) or "module" (white box)."""
    if kind == "module":
        return ModuleBox(module(name), input=find(name).input, logits=True)
    return OnnxBox(onnx_path(name), threads=threads)
