"""An adaptor as an ONNX graph: the same images many times faster, one image at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.adaptors.adaptor import Adaptor
from soda_tta.adaptors.identity import Identity
from soda_tta.errors import SodaError
from soda_tta.types import Array

Function = Callable[[Array], Array]


def compiled(adaptor: Adaptor) -> Function:
    """The adaptor as a function, in ONNX Runtime if that is installed.

    The graph is verified against PyTorch when it is exported. It runs on one thread, because
    several requests are served at once.

    Parameters
    ----------
    adaptor : Adaptor
    """
    if isinstance(adaptor, Identity):
        return adaptor
    session = session_of(adaptor.to_onnx)
    if session is None:
        return adaptor
    name = session.get_inputs()[0].name

    def run(images: Array) -> Array:
        (adapted,) = session.run(None, {name: images})
        clipped: Array = np.clip(adapted, 0, 1)
        return clipped

    return run


def session_of(export: Callable[[Path], Any]) -> Any:
    """A session on one thread of what `export` writes to a path; None if that is not possible."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401

        from soda_tta.protocols.onnx_files import open_session

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "adaptor.onnx"
            export(path)
            return open_session(path, threads=1)
    except (ImportError, SodaError):
        return None


def with_function(adaptor: Adaptor, function: Function) -> Adaptor:
    """The same adaptor; `function` adapts images with its own parameters."""
    fast = copy(adaptor)
    parameters = adaptor.parameters.copy()

    def candidates(images: Array, thetas: Array, noise: int | None = None) -> Array:
        thetas = np.asarray(thetas, np.float32)
        if len(thetas) != 1 or not np.array_equal(thetas[0], parameters) or not len(images):
            return adaptor.candidates(images, thetas, noise)
        return function(images)[None]

    fast.candidates = candidates  # type: ignore[method-assign]
    return fast
