"""Experiments: a grid of cells, a results store, tables."""

from soda_tta.bench.cell import Cell
from soda_tta.bench.grids import GRIDS, find_grid
from soda_tta.bench.measurement import run_cell
from soda_tta.bench.runner import run_grid
from soda_tta.bench.scales import SCALES
from soda_tta.bench.store import Store
from soda_tta.bench.tables import make_table, render

__all__ = [
    "GRIDS",
    "SCALES",
    "Cell",
    "Store",
    "find_grid",
    "make_table",
    "render",
    "run_cell",
    "run_grid",
]
