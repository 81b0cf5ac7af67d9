"""Real trained networks for benchmarks and tests, as white boxes (module) or black boxes (ONNX)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from soda_tta.box import Box, Input, ModuleBox, OnnxBox, load_box
from soda_tta.data.home import cache_home, data_file
from soda_tta.errors import SodaError
from soda_tta.protocols.onnx_files import export_onnx
from soda_tta.zoo.lite import INPUT as LITE
from soda_tta.zoo.lite import efficientnet_lite0, weights_path
from soda_tta.zoo.pacs import head_path, pacs_classifier
from soda_tta.zoo.resnet import cifar_resnet, imagenet_resnet50

__all__ = ["ENTRIES", "Entry", "deployed", "module", "onnx_path"]

CIFAR10 = Input(size=(32, 32), mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010))
CIFAR100 = Input(size=(32, 32), mean=(0.5070, 0.4865, 0.4409), std=(0.2673, 0.2564, 0.2761))
IMAGENET = Input(
    size=(224, 224),
    channels="BGR",
    pixel_range=255.0,
    mean=(103.939, 116.779, 123.68),
    std=(1.0,) * 3,
)


@dataclass(frozen=True)
class Entry:
    """A network of the zoo.

    Parameters
    ----------
    load : callable
        Builds the network with its trained weights; it returns logits of normalised images.
    weights : callable
        The path of the file that the weights come from. A .tflite file is the model itself, and is
        a black box only.
    input : Input
        Size and normalisation of the images it was trained on.
    """

    load: Callable[[], nn.Module]
    weights: Callable[[], Path]
    input: Input


def from_data_home(build: Callable[[], nn.Module], name: str, input: Input) -> Entry:
    """A network defined in this package with weights from the data home."""
    weights = f"models/{name}.safetensors"

    def load() -> nn.Module:
        from safetensors.torch import load_file

        network = build()
        tensors = load_file(data_file(weights))
        network.load_state_dict({key: value.float() for key, value in tensors.items()})
        return network

    return Entry(load, lambda: data_file(weights), input)


def only_black() -> nn.Module:
    """In place of a network that exists as a TFLite file alone."""
    raise SodaError(
        "this model is a TFLite file, which shows only probabilities; choose another of the zoo."
    )


ENTRIES = {
    "cifar10_resnet20": from_data_home(lambda: cifar_resnet(3, 10), "cifar10_resnet20", CIFAR10),
    "cifar10_resnet32": from_data_home(lambda: cifar_resnet(5, 10), "cifar10_resnet32", CIFAR10),
    "cifar100_resnet20": from_data_home(
        lambda: cifar_resnet(3, 100), "cifar100_resnet20", CIFAR100
    ),
    "cifar100_resnet32": from_data_home(
        lambda: cifar_resnet(5, 100), "cifar100_resnet32", CIFAR100
    ),
    "imagenet_resnet50": from_data_home(imagenet_resnet50, "imagenet_resnet50.fp16", IMAGENET),
    "imagenet_efficientnet_lite0": Entry(
        efficientnet_lite0, weights_path, replace(LITE, size=(224, 224))
    ),
    "imagenet_mobilenet_v2_int8": Entry(
        only_black,
        lambda: data_file("models/coral/mobilenet_v2_1.0_224_quant.tflite"),
        Input(size=(224, 224)),
    ),
    "pacs_photo_lite0": Entry(
        lambda: pacs_classifier("photo"), lambda: head_path("photo"), replace(LITE, size=(227, 227))
    ),
}


def find(name: str) -> Entry:
    """The entry of a model, or a SodaError that lists the models.

    >>> find("cifar10_resnet20").input.size
    (32, 32)
    """
    if name not in ENTRIES:
        raise SodaError(f"the zoo has no model {name!r}; choose one of {', '.join(ENTRIES)}.")
    return ENTRIES[name]


def module(name: str) -> nn.Module:
    """The network with its trained weights, in evaluation mode.

    It returns logits of normalised images.

    Parameters
    ----------
    name : str
        A key of `ENTRIES`.
    """
    return find(name).load().eval()


def onnx_path(name: str) -> Path:
    """The network as an ONNX file that returns probabilities.

    The file is made once and kept in the user's cache.

    Parameters
    ----------
    name : str
        A key of `ENTRIES`.
    """
    entry = find(name)
    digest = hashlib.sha256(entry.weights().read_bytes()).hexdigest()[:12]
    path = cache_home() / f"{name}-{digest}.onnx"
    if not path.exists():
        network = nn.Sequential(module(name), nn.Softmax(dim=1))
        height, width = entry.input.size or (32, 32)
        shape = (3, height, width)
        facts = {
            key: value
            for key, value in entry.input.card().items()
            if key in ("mean", "std", "channels", "pixel_range")
        }
        export_onnx(
            network,
            path,
            example=(2, *shape),
            check=(3, *shape),
            output="probabilities",
            facts=facts,
        )
    return path


def deployed(name: str, kind: str = "onnx", threads: int | None = None) -> Box:
    """A model of the zoo as a box.

    Parameters
    ----------
    name : str
        A key of `ENTRIES`.
    kind : str, default "onnx"
        "onnx" returns probabilities only, as a TFLite file does; "module" is a white box.
    threads : int, optional
        Threads of ONNX Runtime; by default as many as there are cores.
    """
    if kind == "module":
        return ModuleBox(module(name), input=find(name).input, logits=True)
    weights = find(name).weights()
    if weights.suffix == ".tflite":
        return load_box(weights, threads=threads, background=True)
    return OnnxBox(onnx_path(name), threads=threads)
