"""Where data and models of the benchmarks are found."""

from __future__ import annotations

import os
from pathlib import Path

from soda_tta.errors import SodaError

VARIABLE = "SODA_TTA_DATA"
BESIDE = Path(__file__).parents[4] / "shared" / "data"  # beside a checkout of this project


def data_home() -> Path:
    """The folder named by SODA_TTA_DATA, else `../shared/data` beside the checkout, else an error with the remedy."""
    named = os.environ.get(VARIABLE)
    home = Path(named) if named else BESIDE
    if not home.is_dir():
        raise SodaError(
            f"{home} is no folder; set {VARIABLE} to the folder that holds the data and models."
        )
    return home


def data_file(name: str) -> Path:
    """One file or folder of the data home."""
    path = data_home() / name
    if not path.exists():
        where = "docs/data.md says where it comes from"
        raise SodaError(
            f"{path} does not exist; set {VARIABLE} to a folder that holds it ({where})."
        )
    return path


def cache_home() -> Path:
    """Where things that can be made again are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "soda-tta"
