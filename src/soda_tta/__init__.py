"""Adapt the images, not the model: test-time data adaptation for black-box image classifiers.

The front door. Names are imported when first used, so that `import soda_tta` stays quick and light.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from soda_tta._version import __version__

# Small operations alternate between PyTorch and the model's own threads. OpenMP threads that spin while they wait
# make that up to twenty times slower as soon as anything else wants a core; waiting quietly costs nothing here.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from soda_tta.adaptors import Adaptor
    from soda_tta.box import Box, load_box
    from soda_tta.engine.adapt import adapt
    from soda_tta.engine.run import Run
    from soda_tta.engine.stream import Stream
    from soda_tta.methods import all_methods

__all__ = ["Adaptor", "Box", "Run", "Stream", "__version__", "adapt", "all_methods", "load_box"]

HOMES = {
    "adapt": "soda_tta.engine.adapt",
    "Adaptor": "soda_tta.adaptors",
    "Box": "soda_tta.box",
    "load_box": "soda_tta.box",
    "all_methods": "soda_tta.methods",
    "Run": "soda_tta.engine.run",
    "Stream": "soda_tta.engine.stream",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"soda_tta has no {name!r}.")
    value = getattr(import_module(HOMES[name]), name)
    globals()[name] = value
    return value
