"""What `soda-tta bench` prints before anything is run: cells and queries."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from soda_tta.bench import Cell


def list_grids(options: argparse.Namespace) -> int:
    """Print every built-in grid."""
    from soda_tta.bench import GRIDS, find_grid

    rows: list[dict[str, Any]] = []
    for name, (about, _) in GRIDS.items():
        cells = find_grid(name, options.scale)
        rows.append(
            {"name": name, "cells": len(cells), "queries": total_queries(cells), "about": about}
        )
    if options.json:
        print(json.dumps(rows))
        return 0
    print(f"{'grid':<16} {'cells':>5} {'queries':>14}  what it measures")
    for row in rows:
        print(f"{row['name']:<16} {row['cells']:>5} {row['queries']:>14,}  {row['about']}")
    return 0


def print_missing(missing: list[Cell], as_json: bool) -> int:
    """Print what a run would do, method by method."""
    by_method: dict[str, list[Cell]] = {}
    for cell in missing:
        by_method.setdefault(cell.method, []).append(cell)
    rows = [
        {
            "method": method,
            "cells": len(cells),
            "queries": total_queries(cells),
            "shortened": sum(cell.plan().shortened for cell in cells),
        }
        for method, cells in by_method.items()
    ]
    total = total_queries(missing)
    if as_json:
        print(json.dumps({"methods": rows, "cells": len(missing), "queries": total}))
        return 0
    for row in rows:
        cut = f"; {row['shortened']} cut short by their budget" if row["shortened"] else ""
        print(f"{row['method']:<20} {row['cells']:>5} cells {row['queries']:>14,} queries{cut}")
    print(f"{'to run':<20} {len(missing):>5} cells {total:>14,} queries at most")
    return 0


def total_queries(cells: Iterable[Cell]) -> int:
    """The queries that cells send at most."""
    return sum(cell.plan().total for cell in cells)
