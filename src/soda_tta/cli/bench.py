"""`soda-tta bench`: run a grid of experiments, print its tables, draw its figures."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta.cli.interrupt import stopped_like_ctrl_c
from soda_tta.errors import SodaError

if TYPE_CHECKING:
    from soda_tta.bench import Cell

FIGURES = ("convergence", "queries", "heat", "points", "tsne", "pictures")
EXAMPLES = """\
examples:
  soda-tta bench list
  soda-tta bench run yardstick --out results/yardstick --dry-run
  soda-tta bench run yardstick --out results/yardstick --jobs 2
  soda-tta bench run mine.toml --out results/mine --reuse results
  soda-tta bench table results/yardstick --format latex
  soda-tta bench figure results/yardstick --kind convergence --out convergence.svg
  soda-tta bench merge results/a results/b --out results/all

A grid may be killed at any moment and started again: finished cells are never run twice, unfinished ones continue.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "bench",
        help="run a grid of experiments, print its tables, draw its figures",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = verbs.add_parser("list", help="the built-in grids, their cells and queries")
    listing.set_defaults(run=list_grids)
    running = verbs.add_parser("run", help="run what is missing of a grid")
    running.add_argument("grid", metavar="GRID", help="a name from 'bench list', or a .toml file")
    running.add_argument("--out", required=True, metavar="DIR", help="folder of the results store")
    running.add_argument(
        "--jobs",
        type=at_least_one,
        default=1,
        metavar="N",
        help="processes of one thread each (default 1)",
    )
    running.add_argument("--only", metavar="METHOD", help="only the cells of this method")
    running.add_argument(
        "--reuse",
        action="append",
        default=[],
        metavar="DIR",
        help="a store or a folder of stores whose results are taken",
    )
    running.add_argument(
        "--dry-run", action="store_true", help="run nothing; print what is missing and its queries"
    )
    running.set_defaults(run=run_cells)
    for part in (listing, running):
        part.add_argument("--scale", default="desk", help="paper, desk (default) or tiny")
    table = verbs.add_parser("table", help="accuracies by corruption and method")
    table.add_argument("store", metavar="DIR")
    table.add_argument("--format", default="markdown", choices=["markdown", "csv", "latex"])
    table.set_defaults(run=print_table)
    figure = verbs.add_parser(
        "figure", help="a figure as SVG or PNG, or the numbers behind it (--json)"
    )
    figure.add_argument("store", metavar="DIR")
    figure.add_argument("--kind", required=True, choices=FIGURES)
    figure.add_argument(
        "--out", metavar="FILE", help="an .svg or .png file; not needed with --json"
    )
    figure.add_argument("--method", help="tsne, pictures: whose adaptor is shown (default soda)")
    figure.add_argument(
        "--corruption", help="tsne: on which corruption (default: the first there is)"
    )
    figure.add_argument(
        "--image", type=int, metavar="N", help="pictures: which image (default 0, the first)"
    )
    figure.set_defaults(run=draw)
    merging = verbs.add_parser("merge", help="put several stores into one")
    merging.add_argument("stores", nargs="+", metavar="DIR")
    merging.add_argument("--out", required=True, metavar="DIR")
    merging.set_defaults(run=merge)
    for part in (listing, running, table, figure, merging):
        part.add_argument("--json", action="store_true", help="print machine-readable JSON")


def list_grids(options: argparse.Namespace) -> int:
    from soda_tta.bench import GRIDS, find_grid

    rows: list[dict[str, Any]] = []
    for name, (about, _) in GRIDS.items():
        cells = find_grid(name, options.scale)
        rows.append(
            {"name": name, "cells": len(cells), "queries": queries_of(cells), "about": about}
        )
    if options.json:
        print(json.dumps(rows))
        return 0
    print(f"{'grid':<16} {'cells':>5} {'queries':>14}  what it measures")
    for row in rows:
        print(f"{row['name']:<16} {row['cells']:>5} {row['queries']:>14,}  {row['about']}")
    return 0


def queries_of(cells: Iterable[Cell]) -> int:
    return sum(cell.plan().total for cell in cells)


def run_cells(options: argparse.Namespace) -> int:
    from soda_tta.bench import Store, find_grid, run_grid
    from soda_tta.bench.finished import missing_of
    from soda_tta.bench.live import LiveTable
    from soda_tta.bench.runner import CellsFailed

    everything = find_grid(options.grid, options.scale)
    cells = [cell for cell in everything if options.only in (None, cell.method)]
    if not cells:
        known = ", ".join(dict.fromkeys(cell.method for cell in everything))
        raise SodaError(f"the grid has no cell of method {options.only!r}; it has {known}.")
    store = Store(options.out)
    reuse = [open_store(folder, Store) for place in options.reuse for folder in stores_under(place)]
    if options.dry_run:
        return print_missing(missing_of(cells, store, reuse), options.json)
    with stopped_like_ctrl_c(), LiveTable(cells, store, quiet=options.json) as report:
        try:
            done = run_grid(
                cells,
                store,
                jobs=options.jobs,
                report=report,
                complain=report.complain,
                reuse=reuse,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "Finished cells are kept; run the same command to go on."
            ) from None
        except SodaError as error:
            if options.json:
                failed = error.failed if isinstance(error, CellsFailed) else str(error).splitlines()
                print(json.dumps({"failed": failed, "store": str(store.path)}))
            raise
    if options.json:
        print(json.dumps({"run": done, "kept": len(cells) - done, "store": str(store.path)}))
    else:
        print(f"{done} cells run, {len(store)} in {store.path}", file=sys.stderr)
        print_table(argparse.Namespace(store=options.out, format="markdown", json=False))
    return 0


def print_missing(missing: list[Cell], as_json: bool) -> int:
    """What a run would do, method by method."""
    by_method: dict[str, list[Cell]] = {}
    for cell in missing:
        by_method.setdefault(cell.method, []).append(cell)
    rows = [
        {
            "method": method,
            "cells": len(own),
            "queries": queries_of(own),
            "shortened": sum(cell.plan().shortened for cell in own),
        }
        for method, own in by_method.items()
    ]
    if as_json:
        print(json.dumps({"methods": rows, "cells": len(missing), "queries": queries_of(missing)}))
        return 0
    for row in rows:
        cut = f"; {row['shortened']} cut short by their budget" if row["shortened"] else ""
        print(f"{row['method']:<20} {row['cells']:>5} cells {row['queries']:>14,} queries{cut}")
    print(f"{'to run':<20} {len(missing):>5} cells {queries_of(missing):>14,} queries at most")
    return 0


def print_table(options: argparse.Namespace) -> int:
    from soda_tta.bench import Store, make_table, render
    from soda_tta.bench.tables import in_order

    store = filled_store(options.store, Store)
    table = make_table(in_order(store))
    print(json.dumps(table.facts()) if options.json else render(table, options.format).rstrip("\n"))
    return 0


def draw(options: argparse.Namespace) -> int:
    from soda_tta.bench import Store
    from soda_tta.bench.figures import OPTIONS, draw_figure, figure_facts

    if not options.out and not options.json:
        raise SodaError("name the file to draw (--out figure.svg), or print the numbers (--json).")
    told = {
        name: value
        for name in ("method", "corruption", "image")
        if (value := getattr(options, name)) is not None
    }
    if unknown := sorted(set(told) - set(OPTIONS.get(options.kind, ()))):
        raise SodaError(f"--{unknown[0]} does not apply to a figure of kind {options.kind}.")
    facts = figure_facts(filled_store(options.store, Store), options.kind, **told)
    if options.out:
        draw_figure(facts, Path(options.out))
    print(json.dumps(facts) if options.json else options.out)
    return 0


def merge(options: argparse.Namespace) -> int:
    from soda_tta.bench import Store

    others = {
        place: open_store(place, Store) for place in options.stores
    }  # none is missing before one is taken
    target = Store(options.out)
    with target.alone():
        merged = {place: target.merge(other) for place, other in others.items()}
    facts: dict[str, dict[str, Any]] = {
        place: {"taken": len(taken), "differing": [cell.title for cell in differing]}
        for place, (taken, differing) in merged.items()
    }
    if options.json:
        print(json.dumps(facts))
        return 0
    for place, told in facts.items():
        print(f"{told['taken']} cells from {place}")
        if told["differing"]:
            count = len(told["differing"])
            print(
                f"  {count} cells were in {options.out} by then with other answers, which stay:",
                file=sys.stderr,
            )
            print("\n".join(f"    {title}" for title in told["differing"]), file=sys.stderr)
    return 0


def stores_under(place: str) -> list[str]:
    """The folder itself, or the stores in it."""
    if (Path(place) / "results.jsonl").exists():
        return [place]
    return sorted(str(path.parent) for path in Path(place).glob("*/results.jsonl")) or [place]


def open_store(place: str, kind: Any) -> Any:
    if not (Path(place) / "results.jsonl").exists():
        raise SodaError(
            f"{place} holds no results.jsonl; run 'soda-tta bench run GRID --out {place}' first."
        )
    return kind(place)


def filled_store(place: str, kind: Any) -> Any:
    store = open_store(place, kind)
    if not len(store):
        raise SodaError(
            f"{place} holds no result yet; run 'soda-tta bench run GRID --out {place}' first."
        )
    return store


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)
