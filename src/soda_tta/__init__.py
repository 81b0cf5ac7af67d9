"""Adapt the images, not the model: test-time data adaptation for black-box image classifiers.

This is the front door. Names are imported when they are first used, so that `import soda_tta` stays
quick and light.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from soda_tta._version import __version__
from soda_tta.errors import (
    BoxError,
    BoxUnavailable,
    BudgetError,
    CorruptionError,
    ImageError,
    MethodError,
    RunError,
    SodaError,
    StorageError,
)

# Small operations alternate between PyTorch and the model's own threads. OpenMP threads that spin
# while they wait make that up to twenty times slower as soon as anything else uses a core.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from soda_tta.adaptors import Adaptor
    from soda_tta.box import Box, load_box
    from soda_tta.conditions import find_conditions
    from soda_tta.conventions import find_convention
    from soda_tta.data import load_dataset, open_images
    from soda_tta.doctor import examine
    from soda_tta.engine.adapt import adapt
    from soda_tta.engine.apply import apply
    from soda_tta.engine.export import export_merged
    from soda_tta.engine.rejudge import rejudge
    from soda_tta.engine.run import Run
    from soda_tta.engine.stream import Stream
    from soda_tta.engine.triton import export_triton
    from soda_tta.methods import Method, Outcome, all_methods, find_method
    from soda_tta.scale.archive import apply_archive
    from soda_tta.scale.backends import find_backend

HOMES = {
    "Adaptor": "soda_tta.adaptors",
    "Box": "soda_tta.box",
    "Method": "soda_tta.methods",
    "Outcome": "soda_tta.methods",
    "Run": "soda_tta.engine.run",
    "Stream": "soda_tta.engine.stream",
    "adapt": "soda_tta.engine.adapt",
    "all_methods": "soda_tta.methods",
    "apply": "soda_tta.engine.apply",
    "apply_archive": "soda_tta.scale.archive",
    "examine": "soda_tta.doctor",
    "find_backend": "soda_tta.scale.backends",
    "find_conditions": "soda_tta.conditions",
    "find_convention": "soda_tta.conventions",
    "export_merged": "soda_tta.engine.export",
    "export_triton": "soda_tta.engine.triton",
    "find_method": "soda_tta.methods",
    "load_box": "soda_tta.box",
    "load_dataset": "soda_tta.data",
    "open_images": "soda_tta.data",
    "rejudge": "soda_tta.engine.rejudge",
}

__all__ = [
    "Adaptor",
    "Box",
    "BoxError",
    "BoxUnavailable",
    "BudgetError",
    "CorruptionError",
    "ImageError",
    "Method",
    "MethodError",
    "Outcome",
    "Run",
    "RunError",
    "SodaError",
    "StorageError",
    "Stream",
    "__version__",
    "adapt",
    "all_methods",
    "apply",
    "apply_archive",
    "examine",
    "export_merged",
    "export_triton",
    "find_backend",
    "find_conditions",
    "find_convention",
    "find_method",
    "load_box",
    "load_dataset",
    "open_images",
    "rejudge",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"soda_tta has no attribute {name!r}.")
    value = getattr(import_module(HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
