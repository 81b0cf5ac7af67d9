"""`soda-tta bench`: run a grid of experiments, and print its tables."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from soda_tta.errors import SodaError

EXAMPLES = """\
examples:
  soda-tta bench list
  soda-tta bench run yardstick --out results/yardstick --jobs 2
  soda-tta bench run mine.toml --out results/mine
  soda-tta bench table results/yardstick --format latex
  soda-tta bench merge results/a results/b --out results/all

A grid may be killed at any moment and started again: finished cells are never run twice, unfinished ones continue.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "bench",
        help="run a grid of experiments, and print its tables",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = verbs.add_parser("list", help="the built-in grids and how many cells they have")
    listing.set_defaults(run=list_grids)
    running = verbs.add_parser("run", help="run what is missing of a grid")
    running.add_argument("grid", metavar="GRID", help="a name from 'bench list', or a .toml file")
    running.add_argument("--out", required=True, metavar="DIR", help="folder of the results store")
    running.add_argument("--jobs", type=int, default=1, metavar="N", help="processes of one thread each (default 1)")
    running.add_argument("--only", metavar="METHOD", help="only the cells of this method")
    running.set_defaults(run=run_cells)
    for part in (listing, running):
        part.add_argument("--scale", default="desk", help="paper, desk (default) or tiny")
    table = verbs.add_parser("table", help="accuracies by corruption and method")
    table.add_argument("store", metavar="DIR")
    table.add_argument("--format", default="markdown", choices=["markdown", "csv", "latex"])
    table.set_defaults(run=print_table)
    merging = verbs.add_parser("merge", help="put several stores into one")
    merging.add_argument("stores", nargs="+", metavar="DIR")
    merging.add_argument("--out", required=True, metavar="DIR")
    merging.set_defaults(run=merge)
    for part in (listing, running, table, merging):
        part.add_argument("--json", action="store_true", help="print machine-readable JSON")


def list_grids(options: argparse.Namespace) -> int:
    from soda_tta.bench import GRIDS, find_grid

    rows = [{"name": n, "cells": len(find_grid(n, options.scale)), "about": about} for n, (about, _) in GRIDS.items()]
    if options.json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        print(f"{row['name']:<16} {row['cells']:>5} cells  {row['about']}")
    return 0


def run_cells(options: argparse.Namespace) -> int:
    from soda_tta.bench import Store, find_grid, run_grid
    from soda_tta.bench.tables import label
    from soda_tta.cli.bar import Bar

    cells = [cell for cell in find_grid(options.grid, options.scale) if options.only in (None, cell.method)]
    if not cells:
        raise SodaError(f"the grid has no cell of method {options.only!r}.")
    store = Store(options.out)
    missing = len({cell.key for cell in cells if cell not in store})
    with Bar("cells", total=missing, quiet=options.json) as bar:

        def report(cell: Any, result: dict[str, Any]) -> None:
            bar.advance(1)
            if not options.json:
                line = f"{cell.corruption:<18} {label(cell):<30} {result['before']:5.1f} -> {result['after']:5.1f}"
                cost = f"{result['queries_an_image']:7.1f} queries an image  {result['seconds']:.0f} s"
                bar.console.print(f"{line}  {cost}", soft_wrap=True)

        try:
            done = run_grid(cells, store, jobs=options.jobs, report=report)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Finished cells are kept; run the same command to go on.") from None
    if options.json:
        print(json.dumps({"run": done, "kept": len(cells) - done, "store": str(store.path)}))
    else:
        print(f"{done} cells run, {len(store)} in {store.path}", file=sys.stderr)
        print_table(argparse.Namespace(store=options.out, format="markdown", json=False))
    return 0


def print_table(options: argparse.Namespace) -> int:
    from soda_tta.bench import Store, make_table, render

    store = open_store(options.store, Store)
    table = make_table(store)
    print(
        json.dumps(table.cells()) if options.json else render(table, options.format), end="\n" if options.json else ""
    )
    return 0


def merge(options: argparse.Namespace) -> int:
    from soda_tta.bench import Store

    target = Store(options.out)
    taken = {place: target.merge(open_store(place, Store)) for place in options.stores}
    print(
        json.dumps(taken)
        if options.json
        else "\n".join(f"{count} cells from {place}" for place, count in taken.items())
    )
    return 0


def open_store(place: str, kind: Any) -> Any:
    if not (Path(place) / "results.jsonl").exists():
        raise SodaError(f"{place} holds no results.jsonl; run 'soda-tta bench run GRID --out {place}' first.")
    return kind(place)
