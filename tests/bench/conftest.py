"""Scripts of benchmarks/, and cells with a model and images of the user's own."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from soda_tta.bench import Cell

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def benchmark_script() -> Callable[[str], ModuleType]:
    """A function that imports a script of benchmarks/ with its neighbours on the path."""

    def load(name: str) -> ModuleType:
        sys.path.insert(0, str(BENCHMARKS))
        try:
            return importlib.import_module(name)
        finally:
            sys.path.remove(str(BENCHMARKS))

    return load


@pytest.fixture
def own_cell(tiny_onnx, images, tmp_path) -> Callable[..., Cell]:
    """A function that makes cells with a tiny ONNX model, whose answers are half of the labels."""
    path = tiny_onnx()
    answers = (images.mean(axis=(2, 3)) @ tiny_onnx.matrix).argmax(axis=1)
    labels = np.where(np.arange(50) % 2, answers, (answers + 1) % 4)
    pixels = np.rint(images.transpose(0, 2, 3, 1) * 255).astype(np.uint8)
    np.savez(tmp_path / "mine.npz", images=pixels, labels=labels)
    facts = {
        "data": str(tmp_path / "mine.npz"),
        "model": str(path),
        "corruption": "clean",
        "images": 50,
    }
    return lambda **more: Cell(**{"method": "deployed", **facts, **more})
