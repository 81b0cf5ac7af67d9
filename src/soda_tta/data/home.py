"""Where the data and models of the benchmarks are found."""

from __future__ import annotations

import os
from pathlib import Path

from soda_tta.errors import SodaError

VARIABLE = "SODA_TTA_DATA"
NEXT_TO_CHECKOUT = Path(__file__).parents[4] / "shared" / "data"


def data_home() -> Path:
    """The folder that SODA_TTA_DATA names, else `../shared/data` next to a checkout."""
    variable = os.environ.get(VARIABLE)
    home = Path(variable) if variable else NEXT_TO_CHECKOUT
    if not home.is_dir():
        raise SodaError(
            f"{home} is not a folder; set {VARIABLE} to the folder that holds the data and models."
        )
    return home


def data_file(name: str) -> Path:
    """A file or folder of the data home.

    Parameters
    ----------
    name : str
        Relative to the data home, for example "models/cifar10_resnet20.safetensors".
    """
    path = data_home() / name
    if not path.exists():
        raise SodaError(
            f"{path} does not exist; set {VARIABLE} to a folder that holds it "
            "(docs/how-to/data.md says where it comes from)."
        )
    return path


def cache_home() -> Path:
    """The folder for what can be computed or downloaded again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "soda-tta"
