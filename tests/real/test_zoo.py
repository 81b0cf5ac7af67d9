"""The deployed models reach their published accuracies on clean images."""

import csv

import numpy as np
import pytest
import torch

from soda_tta import adapt, all_methods, zoo
from soda_tta.data import open_images
from soda_tta.methods.distillation.student import build_students

pytestmark = pytest.mark.real


def accuracy(box, images, labels, step: int = 500) -> float:
    correct = [
        box(images[slice(i, i + step)]).argmax(axis=1) == labels[i : i + step]
        for i in range(0, len(images), step)
    ]
    return 100 * float(np.concatenate(correct).mean())


@pytest.mark.parametrize(
    ("name", "data", "percent"),
    [
        ("cifar10_resnet20", "cifar10-test.npz", 92.60),
        ("cifar100_resnet20", "cifar100-test.npz", 68.83),
    ],
)
def test_cifar_resnets_reach_their_published_accuracy(
    real_data, name: str, data: str, percent: float
) -> None:
    with np.load(real_data / data) as arrays:
        images, labels = open_images(arrays["images"]), arrays["labels"]
    assert accuracy(zoo.deployed(name), images, labels) == pytest.approx(percent, abs=0.006)


def test_module_and_onnx_give_the_same_probabilities(real_data) -> None:
    with np.load(real_data / "cifar10-test.npz") as arrays:
        images = open_images(arrays["images"][:200])[slice(0, 200)]
    white = zoo.deployed("cifar10_resnet32", "module")(images)
    black = zoo.deployed("cifar10_resnet32", "onnx")(images)
    np.testing.assert_allclose(white, black, atol=1e-4)


def test_resnet50_reaches_its_known_accuracy_on_imagenet_1000(real_data) -> None:
    folder = real_data / "imagenet-1000"
    with (folder / "labels.csv").open() as file:
        rows = list(csv.reader(file))
    if not rows[0][1].isdigit():  # a header
        rows = rows[1:]
    images = open_images([folder / "images" / row[0] for row in rows])
    labels = np.array([int(row[1]) for row in rows])
    percent = accuracy(zoo.deployed("imagenet_resnet50"), images, labels, step=50)
    assert percent == pytest.approx(91.6, abs=0.3)


def test_a_student_that_starts_from_a_network_of_the_zoo_agrees_more(real_data) -> None:
    """Features trained on other classes are better than random ones after a few steps."""
    with np.load(real_data / "cifar10-test.npz") as arrays:
        images = arrays["images"][:128]
    box = zoo.deployed("cifar10_resnet20")
    agreement = {}
    for target in ("resnet20-random", "cifar100_resnet20"):
        run = adapt(
            images, box, method="dine", target=target, epochs=8, finetune_epochs=0, batch=16
        )
        same = run.probabilities.argmax(axis=1) == run.before.argmax(axis=1)
        agreement[target] = float(same.mean())
        assert run.card.settings["target"] == target
    assert agreement["cifar100_resnet20"] > agreement["resnet20-random"] + 0.2


@pytest.mark.parametrize("name", ["imagenet_resnet50", "imagenet_efficientnet_lite0"])
def test_a_student_normalises_images_for_imagenet_networks_as_their_own_box_does(
    real_data, name: str
) -> None:
    images = open_images(sorted((real_data / "imagenet-1000" / "images").iterdir())[:4])[:]
    (student,) = build_students(
        all_methods()["dine"].but(target=name, size=224), open_images(images), 10, 1
    )
    with torch.no_grad():
        features = student.eval().features(torch.from_numpy(images))
        probabilities = student.tap.linear(features).softmax(dim=1).numpy()
    np.testing.assert_allclose(probabilities, zoo.deployed(name, "module")(images), atol=1e-4)
