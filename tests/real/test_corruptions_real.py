"""Do the corruptions cost a real classifier what the published ones cost it?

Accuracy of a CIFAR-10 ResNet-20 at severity 5, all 10,000 test images. The expected numbers were measured on
images made by the public CIFAR generator with random draws of its own; ours must land within three points.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from soda_tta.data.corruptions import CORRUPTIONS, corrupt

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(os.environ.get("SODA_TTA_DATA", BESIDE))
NEEDED = ("cifar10-test.npz", "models/cifar10_resnet20.safetensors", "frost")
ABSENT = [name for name in NEEDED if not (DATA / name).exists()]

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(bool(ABSENT), reason=f"{', '.join(ABSENT)} not in the data folder; set SODA_TTA_DATA"),
]

CLEAN = 92.60
BAND = {
    "gaussian_noise": 21.3,
    "shot_noise": 26.0,
    "impulse_noise": 23.1,
    "speckle_noise": 31.3,
    "defocus_blur": 50.6,
    "glass_blur": 41.5,
    "motion_blur": 58.9,
    "zoom_blur": 55.9,
    "gaussian_blur": 32.1,
    "snow": 68.7,
    "frost": 55.4,
    "fog": 64.2,
    "brightness": 87.1,
    "contrast": 25.2,
    "elastic_transform": 68.4,
    "pixelate": 39.8,
    "jpeg_compression": 68.3,
    "spatter": 72.4,
    "saturate": 84.5,
}


class ResNet20:
    """The deployed model: 8-bit images in, class numbers out."""

    def __init__(self, file: Path) -> None:
        load = pytest.importorskip("safetensors.torch").load_file
        self.weights = load(file)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        import torch

        mean = torch.tensor((0.4914, 0.4822, 0.4465)).view(3, 1, 1)
        deviation = torch.tensor((0.2023, 0.1994, 0.2010)).view(3, 1, 1)
        answers = []
        with torch.inference_mode():
            for first in range(0, len(images), 250):
                planes = torch.from_numpy(images[first : first + 250].transpose(0, 3, 1, 2).copy())
                answers.append(self.scores((planes / 255 - mean) / deviation).argmax(dim=1))
        return torch.cat(answers).numpy()

    def scores(self, x):  # type: ignore[no-untyped-def]
        from torch.nn.functional import linear, relu

        x = relu(self.unit(x, "conv1", "bn1"))
        for stage in (1, 2, 3):
            for block in range(3):
                name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
                y = relu(self.unit(x, f"{name}.conv1", f"{name}.bn1", stride))
                y = self.unit(y, f"{name}.conv2", f"{name}.bn2")
                if f"{name}.downsample.0.weight" in self.weights:
                    x = self.unit(x, f"{name}.downsample.0", f"{name}.downsample.1", stride)
                x = relu(x + y)
        return linear(x.mean(dim=(2, 3)), self.weights["fc.weight"], self.weights["fc.bias"])

    def unit(self, x, convolution: str, norm: str, stride: int = 1):  # type: ignore[no-untyped-def]
        from torch.nn.functional import batch_norm, conv2d

        kernel = self.weights[f"{convolution}.weight"]
        x = conv2d(x, kernel, None, stride, kernel.shape[-1] // 2)
        statistics = [self.weights[f"{norm}.{name}"] for name in ("running_mean", "running_var", "weight", "bias")]
        return batch_norm(x, *statistics)


@pytest.fixture(scope="module")
def test_set() -> tuple[np.ndarray, np.ndarray]:
    archive = np.load(DATA / "cifar10-test.npz")
    return archive["images"], archive["labels"]


@pytest.fixture(scope="module")
def classify() -> ResNet20:
    return ResNet20(DATA / "models" / "cifar10_resnet20.safetensors")


def test_clean(classify: ResNet20, test_set: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = test_set
    assert 100 * (classify(images) == labels).mean() == pytest.approx(CLEAN, abs=0.05)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_inside_the_band(name: str, classify: ResNet20, test_set: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = test_set
    corrupted = corrupt(images, name, severity=5, frost=DATA / "frost")
    assert 100 * (classify(corrupted) == labels).mean() == pytest.approx(BAND[name], abs=3)


def test_drawn_frost_does_what_photographs_do(classify: ResNet20, test_set: tuple[np.ndarray, np.ndarray]) -> None:
    images, labels = test_set
    assert 100 * (classify(corrupt(images, "frost", severity=5)) == labels).mean() == pytest.approx(55.4, abs=3)
