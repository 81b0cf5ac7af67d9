"""Adapt the images, not the model: test-time data adaptation for black-box image classifiers.

The front door. Names are imported when first used, so that `import soda_tta` stays quick and light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from soda_tta._version import __version__

if TYPE_CHECKING:
    from soda_tta.adapt import adapt
    from soda_tta.adaptors import Adaptor
    from soda_tta.box import Box, load_box
    from soda_tta.methods import methods
    from soda_tta.run import Run

__all__ = ["Adaptor", "Box", "Run", "__version__", "adapt", "load_box", "methods"]

HOMES = {
    "adapt": "soda_tta.adapt",
    "Adaptor": "soda_tta.adaptors",
    "Box": "soda_tta.box",
    "load_box": "soda_tta.box",
    "methods": "soda_tta.methods",
    "Run": "soda_tta.run",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"soda_tta has no {name!r}.")
    value = getattr(import_module(HOMES[name]), name)
    globals()[name] = value  # `soda_tta.adapt` is the function, also after its module of that name is imported
    return value
