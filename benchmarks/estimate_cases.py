"""The boxes and shifts on which estimates of accuracy are calibrated and tested.

Part of benchmarks/estimate_coverage.py. Responses are computed once and kept in a folder.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soda_tta import zoo
from soda_tta.box import OnnxBox
from soda_tta.data import load_dataset
from soda_tta.data.corruptions import CORRUPTIONS, corrupt
from soda_tta.types import Array
from soda_tta.zoo.digits import haze, load_digits, train_and_export
from soda_tta.zoo.pacs import halves

# Every second corruption of the list calibrates, the others and the home-made shifts test.
CALIBRATION_SHIFTS = tuple(CORRUPTIONS)[::2]
CALIBRATION_BOXES = (
    "cifar10_resnet20",
    "cifar100_resnet20",
    "imagenet_efficientnet_lite0",
    "digits_network_1",
    "digits_network_2",
    "digits_forest_1",
)
SEVERITIES = (1, 3, 5)
CLEAN = "clean"  # other images, not shifted: what a user passes as clean images
UNSHIFTED = "unshifted"  # the images themselves, without any shift


@dataclass(frozen=True)
class Case:
    """The responses of a box to one set of images, and the true classes to measure by."""

    box: str
    shift: str
    severity: int
    probabilities: Array
    labels: Array
    clean: Array
    clean_labels: Array

    @property
    def calibrates(self) -> bool:
        return self.box in CALIBRATION_BOXES and self.shift in CALIBRATION_SHIFTS

    @property
    def tests(self) -> bool:
        """Neither the box nor the shift was used to calibrate."""
        return self.box not in CALIBRATION_BOXES and self.shift not in CALIBRATION_SHIFTS


# -- shifts that are not in the package ------------------------------------------------------------


def night(pixels: Array, generator: np.random.Generator) -> Array:
    """A quarter of the light, and the noise of a high gain."""
    dark = pixels * 0.25 + 8 * generator.standard_normal(pixels.shape)
    return np.clip(dark, 0, 255).astype(np.uint8)


def dead_pixels(pixels: Array, generator: np.random.Generator) -> Array:
    """One pixel in twelve is black or white."""
    dead = generator.random((*pixels.shape[:3], 1)) < 1 / 12
    white = generator.random((*pixels.shape[:3], 1)) < 0.5
    return np.where(dead, 255 * white, pixels).astype(np.uint8)


def strong_jpeg(pixels: Array, generator: np.random.Generator) -> Array:
    """JPEG at quality 12."""

    def compressed(image: Array) -> Array:
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=12)
        return np.asarray(Image.open(file))

    return np.stack([compressed(image) for image in pixels])


def infrared(pixels: Array, generator: np.random.Generator) -> Array:
    """The red channel alone, inverted a little."""
    grey = np.clip(0.8 * pixels[..., :1] + 30, 0, 255).astype(np.uint8)
    return np.repeat(grey, 3, axis=-1)


def hazy(pixels: Array, generator: np.random.Generator) -> Array:
    """The haze of the demo."""
    images = pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255
    return np.rint(haze(images, seed=0) * 255).astype(np.uint8).transpose(0, 2, 3, 1)


HOME_MADE: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "night": night,
    "dead pixels": dead_pixels,
    "strong jpeg": strong_jpeg,
    "infrared": infrared,
    "haze": hazy,
}


def shifted(pixels: Array, shift: str, severity: int) -> Array:
    """8-bit images under a shift."""
    if shift in (CLEAN, UNSHIFTED):
        return pixels
    if shift in HOME_MADE:
        return HOME_MADE[shift](pixels, np.random.default_rng(0))
    return corrupt(pixels, shift, severity, 0)


# -- boxes and their images ------------------------------------------------------------------------


@dataclass(frozen=True)
class Collection:
    """Images with labels, and the boxes that classify them."""

    boxes: dict[str, Callable[[Array], Array]]  # of 8-bit NHWC images
    pixels: Array
    labels: Array
    clean_pixels: Array
    clean_labels: Array
    shifts: tuple[tuple[str, int], ...]


def all_shifts(severities: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    named = [(name, severity) for name in CORRUPTIONS for severity in severities]
    return ((UNSHIFTED, 0), *named, *((name, 0) for name in HOME_MADE))


def from_box(box: Any) -> Callable[[Array], Array]:
    """A box of float NCHW images as a function of 8-bit NHWC images, 100 at a time."""

    def answer(pixels: Array) -> Array:
        pieces = [pixels[start : start + 100] for start in range(0, len(pixels), 100)]
        rows = [box(piece.transpose(0, 3, 1, 2).astype(np.float32) / 255) for piece in pieces]
        return np.concatenate(rows)

    return answer


def cifar(name: str) -> Collection:
    dataset = load_dataset(name)
    boxes = {
        model: from_box(zoo.deployed(model, threads=1))
        for model in (f"{name}_resnet20", f"{name}_resnet32")
    }
    first, reference = dataset.subset(slice(0, 1500)), dataset.subset(slice(5000, 6000))
    return Collection(
        boxes,
        eight_bit(first),
        first.labels,
        eight_bit(reference),
        reference.labels,
        all_shifts(SEVERITIES),
    )


def eight_bit(dataset: Any) -> Array:
    pixels = np.rint(dataset[slice(None)] * 255).astype(np.uint8)
    return np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))


def imagenet(boxes: dict[str, Callable[[Array], Array]], images: int, clean: int) -> Collection:
    """Genuine validation images; `clean` other ones are the clean images."""
    dataset = load_dataset("imagenet-val-2000")
    order = np.random.default_rng(0).permutation(len(dataset))
    first = dataset.subset(np.sort(order[:images]))
    reference = dataset.subset(np.sort(order[-clean:]))
    shifts = [(UNSHIFTED, 0), *((name, 3) for name in CORRUPTIONS)]
    chosen = CALIBRATION_BOXES if set(boxes) <= set(CALIBRATION_BOXES) else ()
    kept = [
        each
        for each in shifts
        if each[0] == UNSHIFTED or bool(chosen) == (each[0] in CALIBRATION_SHIFTS)
    ]
    home_made = () if chosen else tuple((name, 0) for name in HOME_MADE)
    return Collection(
        boxes,
        eight_bit(first),
        first.labels,
        eight_bit(reference),
        reference.labels,
        (*kept, *home_made),
    )


def coral(path: Path) -> Callable[[Array], Array]:
    """An int8 model for Coral boards: uint8 in, steps of 1/256 out; class 0 is the background."""
    from ai_edge_litert.interpreter import Interpreter

    model = Interpreter(str(path), num_threads=1)
    model.allocate_tensors()
    source, target = model.get_input_details()[0], model.get_output_details()[0]

    def answer(pixels: Array) -> Array:
        rows = []
        for image in pixels:
            model.set_tensor(source["index"], image[None])
            model.invoke()
            rows.append(model.get_tensor(target["index"])[0, 1:] / np.float32(256))
        stacked = np.stack(rows)
        missing = np.clip(1 - stacked.sum(axis=1, keepdims=True), 0, 1)
        stacked = stacked + missing / stacked.shape[1]  # what rounding has taken away
        return stacked / stacked.sum(axis=1, keepdims=True)

    return answer


def pacs() -> Collection:
    """A classifier of photographs; the other domains are added by `pacs_domains`."""
    held_out = halves("photo")[1]
    box = from_box(zoo.deployed("pacs_photo_lite0", threads=1))
    pixels = eight_bit(held_out)
    return Collection(
        {"pacs_photo_lite0": box}, pixels, held_out.labels, pixels, held_out.labels, ()
    )


def digits(seed: int, folder: Path) -> Collection:
    """Small networks, and two models without any convolution, on scikit-learn's digits."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    data = load_digits(seed)
    path = train_and_export(data, folder / f"digits-{seed}.onnx", seed)
    boxes = {f"digits_network_{seed}": from_box(OnnxBox(path, threads=1))}
    flat = data.train.reshape(len(data.train), -1)
    for name, model in {
        "forest": RandomForestClassifier(200, random_state=seed),
        "logistic": LogisticRegression(max_iter=300),
        "perceptron": MLPClassifier(max_iter=200, random_state=seed),
    }.items():
        model.fit(flat, data.train_labels)
        boxes[f"digits_{name}_{seed}"] = from_box(on_flat(model))
    pixels = np.rint(data.test * 255).astype(np.uint8).transpose(0, 2, 3, 1)
    half = 600
    return Collection(
        boxes,
        pixels[:half],
        data.test_labels[:half],
        pixels[half:],
        data.test_labels[half:],
        all_shifts((3,)),
    )


def on_flat(model: Any) -> Callable[[Array], Array]:
    return lambda images: model.predict_proba(images.reshape(len(images), -1))


# -- all of them -----------------------------------------------------------------------------------


def collections(data: Path, folder: Path) -> dict[str, Callable[[], Collection]]:
    """Every collection by name, loaded only when it is needed."""

    def tests_of_imagenet() -> Collection:
        return imagenet(
            {"coral_mobilenet_v2": coral(data / "models/coral/mobilenet_v2_1.0_224_quant.tflite")},
            600,
            400,
        )

    def resnet50() -> Collection:
        box = from_box(zoo.deployed("imagenet_resnet50", threads=1))
        return imagenet({"imagenet_resnet50": box}, 200, 200)

    def lite0() -> Collection:
        box = from_box(zoo.deployed("imagenet_efficientnet_lite0", threads=1))
        return imagenet({"imagenet_efficientnet_lite0": box}, 500, 400)

    return {
        "cifar10": lambda: cifar("cifar10"),
        "cifar100": lambda: cifar("cifar100"),
        **{f"digits-{seed}": (lambda seed=seed: digits(seed, folder)) for seed in (0, 1, 2, 3)},
        "pacs": pacs,
        "coral": tests_of_imagenet,
        "lite0": lite0,
        "resnet50": resnet50,
    }


def compute(name: str, make: Callable[[], Collection], folder: Path) -> None:
    """Query everything of a collection once, and keep it."""
    collection = make()
    arrays: dict[str, Array] = {
        "labels": collection.labels,
        "clean_labels": collection.clean_labels,
    }
    for box, answer in collection.boxes.items():
        arrays[f"{box}|{CLEAN}|0"] = answer(collection.clean_pixels)
    for shift, severity in collection.shifts:
        pixels = shifted(collection.pixels, shift, severity)
        for box, answer in collection.boxes.items():
            arrays[f"{box}|{shift}|{severity}"] = answer(pixels).astype(np.float32)
        print(f"  {name} {shift} {severity}", flush=True)
    if name == "pacs":
        for domain in ("art_painting", "cartoon", "sketch"):
            dataset = load_dataset("pacs", domain=domain)
            for box, answer in collection.boxes.items():
                arrays[f"{box}|{domain}|0"] = answer(eight_bit(dataset)).astype(np.float32)
            arrays[f"labels of {domain}"] = dataset.labels
    np.savez(folder / f"{name}.npz", **arrays)


def merged(case: Case, classes: int) -> Case:
    """The same box with fewer classes: neighbouring ones become one."""
    before = case.probabilities.shape[1]
    starts = np.arange(0, before, before // classes)
    return Case(
        f"{case.box}_{classes}_classes",
        case.shift,
        case.severity,
        np.add.reduceat(case.probabilities, starts, axis=1),
        case.labels * classes // before,
        np.add.reduceat(case.clean, starts, axis=1),
        case.clean_labels * classes // before,
    )


def load_cases(data: Path, folder: Path) -> Iterator[Case]:
    """Every case, and some with fewer classes; what is not in the folder yet is computed."""
    for case in original_cases(data, folder):
        yield case
        if case.box == "cifar10_resnet32":
            yield from (merged(case, classes) for classes in (2, 5))


def original_cases(data: Path, folder: Path) -> Iterator[Case]:
    """Every case as it was answered."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in collections(data, folder).items():
        path = folder / f"{name}.npz"
        if not path.exists():
            compute(name, make, folder)
        with np.load(path) as arrays:
            for key in arrays.files:
                if "|" not in key or f"|{CLEAN}|" in key:
                    continue
                box, shift, severity = key.split("|")
                own = f"labels of {shift}"
                yield Case(
                    box,
                    shift,
                    int(severity),
                    arrays[key],
                    arrays[own if own in arrays.files else "labels"],
                    arrays[f"{box}|{CLEAN}|0"],
                    arrays["clean_labels"],
                )
