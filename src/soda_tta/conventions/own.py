"""A user's own normalisations, from a TOML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from soda_tta.conventions.table import checked
from soda_tta.errors import BoxError
from soda_tta.foreign_text import quoted

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_conventions(path: str | Path) -> dict[str, Any]:
    """Normalisations by name: a table of `pixel_range`, `mean` and `std` for each."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BoxError(f"{path} cannot be read as TOML: {quoted(error)}.") from error
    for name, facts in tables.items():
        if not isinstance(facts, dict):
            raise BoxError(f"{path}: {name} is not a table; write [{name}], then mean = 0.13.")
    return checked(tables)
