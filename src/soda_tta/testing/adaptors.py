"""`check_adaptor`: whether an adaptor keeps the contract that searches and files rely on."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.testing.data import make_images
from soda_tta.types import Array

TOLERANCE = 1e-5  # between the numpy path and the PyTorch path, in pixels of [0, 1]


def check_adaptor(adaptor: Adaptor, images: Array | None = None) -> None:
    """Check an adaptor.

    Parameters
    ----------
    adaptor : the adaptor to check; its parameters are not changed.
    images : float32 (n, 3, height, width) in [0, 1]; by default 6 small ones.

    Raises
    ------
    AssertionError
        With what is wrong.

    Examples
    --------
    >>> from soda_tta.adaptors import PaperNetwork
    >>> check_adaptor(PaperNetwork(width=4).build(seed=0))
    """
    images = make_images(6, 16) if images is None else images
    original = images.copy()
    adapted = adaptor(images)
    assert adapted.shape == images.shape, f"shape changes from {images.shape} to {adapted.shape}"
    assert adapted.dtype == np.float32, f"adapted images are float32, not {adapted.dtype}"
    assert adapted.min() >= 0 and adapted.max() <= 1, "adapted pixels stay in [0, 1]"
    assert np.array_equal(images, original), "an adaptor must not change its input"
    assert np.array_equal(adaptor(images), adapted), "the same images give the same result"
    alone = adaptor(images[2:3])
    assert np.allclose(alone, adapted[2:3], atol=TOLERANCE), "an image depends on its neighbours"
    check_parameters(adaptor, images, adapted)
    check_torch(adaptor, images, adapted)
    check_file(adaptor, adapted, images)


def check_parameters(adaptor: Adaptor, images: Array, adapted: Array) -> None:
    """The parameters are one flat vector, and `candidates` follows them."""
    theta = adaptor.parameters
    assert theta.ndim == 1 and theta.dtype == np.float32, "parameters are one float32 vector"
    assert np.shape(adaptor.units) == theta.shape, "there is one unit per parameter"
    two = adaptor.candidates(images, np.stack([theta, theta]))
    assert two.shape == (2, *images.shape), "candidates have shape (k, n, 3, height, width)"
    assert np.allclose(two[1], adapted, atol=TOLERANCE), "candidates differ from the call"
    assert adaptor.describe(), "describe() says what it does"


def check_torch(adaptor: Adaptor, images: Array, adapted: Array) -> None:
    """The differentiable path and the exported module do the same."""
    import torch

    theta = torch.tensor(adaptor.parameters, requires_grad=bool(adaptor.parameters.size))
    tensor = torch.from_numpy(images)
    by_torch = adaptor.differentiable(tensor, theta).detach().numpy()
    assert np.allclose(by_torch, adapted, atol=TOLERANCE), "differentiable() differs"
    with torch.inference_mode():
        exported = adaptor.as_module()(tensor).numpy()
    assert np.allclose(exported, adapted, atol=TOLERANCE), "as_module() differs"


def check_file(adaptor: Adaptor, adapted: Array, images: Array) -> None:
    """Settings are JSON, and an adaptor that is saved and loaded does the same."""
    json.dumps(adaptor.settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adaptor.safetensors"
        adaptor.save(path)
        loaded = Adaptor.load(path)
    assert type(loaded) is type(adaptor), "a loaded adaptor is of the same class"
    assert np.array_equal(loaded.parameters, adaptor.parameters), "parameters change in a file"
    assert np.array_equal(loaded(images), adapted), "a loaded adaptor gives other images"
