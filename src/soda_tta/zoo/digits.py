"""A small deployed model and shifts that need no download: hazy and noisy digits.

scikit-learn's digits become small colour images. A small network is trained on one half in seconds
and exported to ONNX. Haze covers the other half.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from soda_tta.box import Input
from soda_tta.errors import SodaError
from soda_tta.protocols.onnx_files import export_onnx
from soda_tta.types import Array

SIZE = 16  # pixels per side; the originals have 8
VEIL, CONTRAST, GRAIN = 0.6, 0.2, 0.05  # haze: veil + contrast * image + grain * normal noise
NOISE = 0.7  # deviation of the noise of noisy digits
CONDITIONS = ("clean", "hazy", "noisy")  # of mixed digits, a third each
TRAINING_EPOCHS = 12
MEAN = (0.5, 0.5, 0.5)
STD = (0.25, 0.25, 0.25)


@dataclass(frozen=True)
class Digits:
    """Digits with labels, in two halves.

    Parameters
    ----------
    train, test : float32 arrays of shape (n, 3, 16, 16), in [0, 1]
    train_labels, test_labels : integer arrays of shape (n,)
    """

    train: Array
    train_labels: Array
    test: Array
    test_labels: Array


def load_digits(seed: int) -> Digits:
    """scikit-learn's 1,797 digits, enlarged to 16 pixels and with three channels.

    Parameters
    ----------
    seed : int
        Chooses which half is the test set.

    Examples
    --------
    >>> digits = load_digits(seed=0)
    >>> digits.train.shape, digits.test.shape
    ((898, 3, 16, 16), (899, 3, 16, 16))
    """
    try:
        from sklearn.datasets import load_digits as sklearn_digits
    except ImportError as error:
        raise SodaError("the digits need scikit-learn: pip install 'soda-tta[demo]'.") from error
    raw, labels = sklearn_digits(return_X_y=True)
    small = (raw.reshape(-1, 8, 8) / 16 * 255).astype(np.uint8)
    large = np.stack(
        [
            np.asarray(Image.fromarray(digit).resize((SIZE, SIZE), Image.Resampling.BILINEAR))
            for digit in small
        ]
    )
    images = np.repeat(large[:, None].astype(np.float32) / 255, 3, axis=1)
    order = np.random.default_rng(seed).permutation(len(images))
    train, test = np.split(order, [len(order) // 2])
    return Digits(images[train], labels[train], images[test], labels[test])


def haze(images: Array, seed: int) -> Array:
    """Cover images with haze: a bright veil, low contrast and some noise.

    Parameters
    ----------
    images : float32 array of shape (n, 3, height, width), in [0, 1]
    seed : int
        Seed of the noise.

    Examples
    --------
    >>> hazy = haze(np.zeros((4, 3, 16, 16), np.float32), seed=0)
    >>> round(float(hazy.mean()), 2)  # the veil
    0.6
    """
    noise = np.random.default_rng([seed, 1]).standard_normal(images.shape, np.float32)
    return np.clip(VEIL + CONTRAST * images + GRAIN * noise, 0, 1).astype(np.float32)


def noisy(images: Array, seed: int) -> Array:
    """Add noise to images.

    Parameters
    ----------
    images : float32 array of shape (n, 3, height, width), in [0, 1]
    seed : int
        Seed of the noise.

    Examples
    --------
    >>> images = noisy(np.full((4, 3, 16, 16), 0.5, np.float32), seed=0)
    >>> float(images.min()), float(images.max())
    (0.0, 1.0)
    """
    noise = np.random.default_rng([seed, 3]).standard_normal(images.shape, np.float32)
    return np.clip(images + NOISE * noise, 0, 1).astype(np.float32)


def mixed(images: Array, seed: int) -> tuple[Array, Array]:
    """A third of the images each clean, hazy and noisy, in random order.

    Parameters
    ----------
    images : float32 array of shape (n, 3, height, width), in [0, 1]
    seed : int
        Seed of the noise and of the choice.

    Returns
    -------
    (images, conditions) : the images, and the place in `CONDITIONS` of each

    Examples
    --------
    >>> images, conditions = mixed(np.zeros((6, 3, 16, 16), np.float32), seed=0)
    >>> [CONDITIONS[place] for place in sorted(conditions)]
    ['clean', 'clean', 'hazy', 'hazy', 'noisy', 'noisy']
    """
    random = np.random.default_rng([seed, 2])
    conditions = random.permutation(len(images)) % len(CONDITIONS)
    noise = NOISE * random.standard_normal(images.shape, np.float32)
    versions = np.stack([images, haze(images, seed), np.clip(images + noise, 0, 1)])
    return versions[conditions, np.arange(len(images))], conditions


def hazy_digits(folder: str | Path, seed: int = 0) -> tuple[Path, Path]:
    """Make a deployed model and its hazy test images.

    Parameters
    ----------
    folder : str or Path
        Where to write `model.onnx` and `hazy.npy` (8-bit images, as a camera would store them).
    seed : int, default 0
        Another seed gives another model, other test images and other noise.

    Returns
    -------
    (model, images) : the two paths
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits(seed)
    model = train_and_export(digits, folder / "model.onnx", seed)
    images = folder / "hazy.npy"
    np.save(images, np.rint(haze(digits.test, seed) * 255).astype(np.uint8))
    return model, images


def train_and_export(digits: Digits, path: Path, seed: int) -> Path:
    """Train a small convolutional network and write it as an ONNX file that returns probabilities.

    Parameters
    ----------
    digits : Digits
        The network is trained on `digits.train`, which is clean.
    path : Path
        The ONNX file to write.
    seed : int
        Seed of the weights and of the order of the images.
    """
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(
            *(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(32 * (SIZE // 4) ** 2, 10)),
        )
        images = torch.from_numpy(Input(mean=MEAN, std=STD).prepare(digits.train))
        labels = torch.from_numpy(digits.train_labels).long()
        optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
        for _ in range(TRAINING_EPOCHS):
            for batch in torch.split(torch.randperm(len(images)), 64):
                optimiser.zero_grad()
                loss = nn.functional.cross_entropy(network(images[batch]), labels[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
    model = nn.Sequential(network, nn.Softmax(dim=1))
    shape = (3, SIZE, SIZE)
    export_onnx(
        model,
        path,
        example=(2, *shape),
        check=(3, *shape),
        output="probabilities",
        facts={"mean": MEAN, "std": STD},
    )
    return path
