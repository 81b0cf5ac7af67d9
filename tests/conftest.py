"""Fixtures for all tests: a small model that counts its queries, small images, ONNX files."""

from __future__ import annotations

import os

# Several workers share the cores: more threads than cores are slower than one thread each.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from soda_tta import Run, adapt
from soda_tta.box import CallableBox
from soda_tta.protocols.onnx_files import METADATA_KEY
from soda_tta.types import Array


class LinearModel:
    """A classifier by mean colour that counts the images it receives."""

    def __init__(self, classes: int = 4, sharpness: float = 8.0) -> None:
        self.weights = sharpness * np.random.default_rng(7).normal(size=(3, classes))
        self.asked = 0

    def __call__(self, images: Array) -> Array:
        self.asked += len(images)
        logits = (images.mean(axis=(2, 3)) - 0.5) @ self.weights
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        return exponents / exponents.sum(axis=1, keepdims=True)


@pytest.fixture(scope="session")
def warm_processes() -> ForkServerContext:
    """Starts processes of their own that need not import torch: a server forks each of them.

    A new interpreter spends two seconds of CPU time on imports.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["torch", "onnxruntime", "soda_tta.bench.measurement"])
    return context


@pytest.fixture
def model() -> LinearModel:
    return LinearModel()


@pytest.fixture
def box(model: LinearModel) -> CallableBox:
    return CallableBox(model)


@pytest.fixture
def images() -> Array:
    """50 images of 8 x 8 pixels, each with its own colour."""
    generator = np.random.default_rng(3)
    colours = generator.random((50, 3, 1, 1))
    noise = 0.2 * generator.standard_normal((50, 3, 8, 8))
    return np.clip(colours + noise, 0, 1).astype(np.float32)


class PatternModel:
    """Tells six patterns of 4 x 4 bright and dark squares apart; haze confuses it."""

    def __init__(self) -> None:
        random = np.random.default_rng(11)
        squares = [random.permutation(np.arange(16) < bright) for bright in (4, 6, 8, 8, 10, 12)]
        self.patterns = np.stack(squares).reshape(6, 4, 4).repeat(4, axis=1).repeat(4, axis=2)

    def __call__(self, images: Array) -> Array:
        grey = images.mean(axis=1)
        distances = ((grey[:, None] - self.patterns) ** 2).mean(axis=(2, 3))
        powers = np.exp(-2000 * (distances - distances.min(axis=1, keepdims=True)))
        return powers / powers.sum(axis=1, keepdims=True)


class Mixed(NamedTuple):
    """Images of two conditions in one set, and a run of soda-e on them."""

    images: Array  # 220 of 16 x 16 pixels
    labels: Array  # their patterns
    hazy: Array  # which of them are hazy; the others are clean
    model: PatternModel
    run: Run  # adopts an adaptor for the hazy images; the clean ones stay as they are


@pytest.fixture(scope="session")
def mixed() -> Mixed:
    """Clean and hazy patterns. The run takes a second of CPU time: tests must not change it."""
    model = PatternModel()
    random = np.random.default_rng(0)
    labels = np.arange(220) % 6
    clean = model.patterns[labels, None] * random.uniform(0.5, 1, (220, 3, 1, 1))
    clean = clean + 0.1 * random.standard_normal((220, 1, 4, 4)).repeat(4, 2).repeat(4, 3)
    clean = clean + 0.02 * random.standard_normal(clean.shape)
    order = random.permutation(220)
    hazy = order >= 110
    images = np.where(hazy[:, None, None, None], 0.7 + 0.2 * clean[order], clean[order])
    images = (np.rint(images.clip(0, 1) * 255) / 255).astype(np.float32)
    run = adapt(images, model, budget=20, groups="none")
    return Mixed(images, labels[order], hazy, model, run)


class TinyOnnx:
    """Writes classifiers `softmax(mean colour @ matrix)` with the inputs and outputs of a test."""

    matrix = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def __call__(
        self,
        *,
        shape: tuple[Any, ...] = ("n", 3, 8, 8),
        dtype: int = TensorProto.FLOAT,
        outputs: tuple[str, ...] = ("probabilities",),
        facts: str | None = None,
    ) -> Path:
        axes = [1, 2] if shape[-1] == 3 else list(range(2, len(shape)))
        nodes = [
            helper.make_node("Cast", ["images"], ["numbers"], to=TensorProto.FLOAT),
            helper.make_node("ReduceMean", ["numbers"], ["colours"], axes=axes or [1], keepdims=0),
            helper.make_node("MatMul", ["colours", "matrix"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["probabilities"]),
            helper.make_node("ArgMax", ["logits"], ["labels"], axis=1, keepdims=1),
        ]
        described = []
        for name in outputs:
            is_label = name == "labels"
            output_type = TensorProto.INT64 if is_label else TensorProto.FLOAT
            columns = 1 if is_label else 4
            described.append(helper.make_tensor_value_info(name, output_type, [shape[0], columns]))
        image = helper.make_tensor_value_info("images", dtype, shape)
        weights = [numpy_helper.from_array(self.matrix, "matrix")]
        graph = helper.make_graph(nodes, "tiny", [image], described, weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        if facts is not None:
            helper.set_model_props(model, {METADATA_KEY: facts})
        self.count += 1
        path = self.folder / f"tiny{self.count}.onnx"
        onnx.save(model, path)
        return path


@pytest.fixture
def tiny_onnx(tmp_path: Path) -> TinyOnnx:
    return TinyOnnx(tmp_path)


@pytest.fixture(scope="session")
def routed_adaptor() -> Any:
    """Leaves dark images as they are and darkens those with a brightness above 0.45."""
    from soda_tta.adaptors import Bank, Identity, RoutedAdaptor
    from soda_tta.conditions.mixture import Mixture
    from soda_tta.conditions.router import Router
    from soda_tta.conditions.statistics import NAMES

    size = len(NAMES)
    column = NAMES.index("brightness")
    means = np.zeros((2, size))
    means[:, column] = [0.2, 0.7]
    covariance = 100 * np.eye(size)
    covariance[column, column] = 0.01
    mixture = Mixture(np.full(2, 0.5), means, np.stack([covariance, covariance]))
    return RoutedAdaptor(
        router=Router(np.zeros(size), np.eye(size), mixture, np.arange(2), radius=10.0),
        adaptors=[Identity(), Bank().adaptor({"brightness": -0.2})],
        words=["dark", "bright"],
        shares=[0.4, 0.6],
    )
