"""An adaptor as an ONNX graph: the same images many times faster, one image at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from soda_tta.adaptors.adaptor import Adaptor
from soda_tta.adaptors.identity import Identity
from soda_tta.errors import SodaError
from soda_tta.types import Array


def compiled(adaptor: Adaptor) -> Callable[[Array], Array]:
    """The adaptor as a function, in ONNX Runtime if that is installed.

    The graph is verified against PyTorch when it is exported. It runs on one thread, because
    several requests are served at once.

    Parameters
    ----------
    adaptor : Adaptor
    """
    if isinstance(adaptor, Identity):
        return adaptor
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401

        from soda_tta.protocols.onnx_files import open_session

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "adaptor.onnx"
            adaptor.to_onnx(path)
            session = open_session(path, threads=1)
    except (ImportError, SodaError):
        return adaptor
    name = session.get_inputs()[0].name

    def run(images: Array) -> Array:
        (adapted,) = session.run(None, {name: images})
        clipped: Array = np.clip(adapted, 0, 1)
        return clipped

    return run
