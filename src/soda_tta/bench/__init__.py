"""Experiments: grids of cells, a store for their results, tables and figures.

| file | holds |
|---|---|
| `cell.py`, `result.py` | what one run is, and what is measured of it |
| `measurement.py` | runs one cell |
| `runner.py`, `requirements.py`, `reuse.py` | run a grid: what must be there, what need not run |
| `store.py` | results on disk |
| `grids.py` | built-in grids, made by `experiments.py`, `ablations.py` and `scales.py` |
| `grid_files.py` | grids from TOML files |
| `tables.py`, `columns.py` | tables, and the names of their columns |
| `figures.py` | figures, from `figure_data.py`, `adaptor_figures.py` and `figure_drawing.py` |
| `live_table.py` | the display while a grid runs |
"""

from soda_tta.bench.cell import Cell
from soda_tta.bench.grids import GRIDS, find_grid
from soda_tta.bench.measurement import run_cell
from soda_tta.bench.result import CellResult
from soda_tta.bench.runner import run_grid
from soda_tta.bench.scales import SCALES
from soda_tta.bench.store import Store
from soda_tta.bench.tables import make_table, render

__all__ = [
    "GRIDS",
    "SCALES",
    "Cell",
    "CellResult",
    "Store",
    "find_grid",
    "make_table",
    "render",
    "run_cell",
    "run_grid",
]
