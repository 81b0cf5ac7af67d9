"""Run a grid of experiments, print its tables, draw its figures."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta.cli.bench_cost import list_grids, print_missing
from soda_tta.cli.engine_options import add_engine
from soda_tta.cli.interrupt import stopped_like_ctrl_c
from soda_tta.cli.options import add_json
from soda_tta.errors import SodaError
from soda_tta.foreign_text import escaped

if TYPE_CHECKING:
    from soda_tta.bench import Cell, Store

Parser = argparse.ArgumentParser
FIGURES = ("convergence", "queries", "heat", "points", "tsne", "pictures")
EXAMPLES = """\
examples:
  soda-tta bench list
  soda-tta bench run yardstick --out results/yardstick --dry-run
  soda-tta bench run yardstick --out results/yardstick --jobs 2
  soda-tta bench run mine.toml --out results/mine --reuse results
  soda-tta bench run cifar10 --out results/cifar10 --backend dask --address tcp://host:8786
  soda-tta bench table results/yardstick --format latex
  soda-tta bench figure results/yardstick --kind convergence --out convergence.svg
  soda-tta bench merge results/a results/b --out results/all

You can stop a grid at any time and start it again: finished cells are never run twice, and
unfinished ones resume.
"""


def add_to(commands: Any) -> None:
    """Add the command and its verbs to the parser."""
    parser = commands.add_parser(
        "bench",
        help="run a grid of experiments, print its tables, draw its figures",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(title="commands", dest="verb", metavar="COMMAND", required=True)
    for add_verb in (add_list, add_run, add_table, add_figure, add_merge):
        verb = add_verb(verbs)
        add_json(verb)


def add_list(verbs: Any) -> Parser:
    """Options of `bench list`."""
    parser: Parser = verbs.add_parser(
        "list", help="list the built-in grids with their cells and queries"
    )
    add_scale(parser)
    parser.set_defaults(run=list_grids)
    return parser


def add_run(verbs: Any) -> Parser:
    """Options of `bench run`."""
    parser: Parser = verbs.add_parser("run", help="run the missing cells of a grid")
    parser.add_argument("grid", metavar="GRID", help="a name from 'bench list', or a .toml file")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder of the results store")
    add_engine(parser, jobs="1")
    parser.add_argument("--only", metavar="METHOD", help="run only the cells of this method")
    parser.add_argument(
        "--reuse",
        action="append",
        default=[],
        metavar="DIR",
        help="copy results of the same experiments from this store, or from all stores in this "
        "folder; may be repeated",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="run nothing; print what is missing and its queries"
    )
    add_scale(parser)
    parser.set_defaults(run=run_cells)
    return parser


def add_scale(parser: Parser) -> None:
    """The size of a built-in grid."""
    parser.add_argument(
        "--scale", default="desk", metavar="NAME", help="paper, desk (default) or tiny"
    )


def add_table(verbs: Any) -> Parser:
    """Options of `bench table`."""
    parser: Parser = verbs.add_parser("table", help="print accuracies by corruption and method")
    parser.add_argument("store", metavar="DIR", help="a results store")
    parser.add_argument(
        "--format",
        default="markdown",
        choices=["markdown", "csv", "latex"],
        help="how to print the table (default: markdown)",
    )
    parser.set_defaults(run=print_table)
    return parser


def add_figure(verbs: Any) -> Parser:
    """Options of `bench figure`."""
    parser: Parser = verbs.add_parser(
        "figure", help="draw a figure as SVG or PNG, or print its data (--json)"
    )
    parser.add_argument("store", metavar="DIR", help="a results store")
    parser.add_argument(
        "--kind", required=True, choices=FIGURES, help="what to draw; heat is tau x rho"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="an .svg or .png file; not needed with --json"
    )
    parser.add_argument(
        "--method", metavar="NAME", help="tsne, pictures: the method to show (default: soda)"
    )
    parser.add_argument(
        "--corruption", metavar="NAME", help="tsne: the corruption (default: the store's first)"
    )
    parser.add_argument(
        "--image", type=int, metavar="N", help="pictures: the index of the image (default: 0)"
    )
    parser.set_defaults(run=draw)
    return parser


def add_merge(verbs: Any) -> Parser:
    """Options of `bench merge`."""
    parser: Parser = verbs.add_parser("merge", help="combine several stores into one")
    parser.add_argument("stores", nargs="+", metavar="DIR", help="the stores to combine")
    parser.add_argument("--out", required=True, metavar="DIR", help="the combined store")
    parser.set_defaults(run=merge)
    return parser


def run_cells(options: argparse.Namespace) -> int:
    """Run what is missing of a grid and print its table."""
    from soda_tta.bench import Store, find_grid
    from soda_tta.bench.reuse import missing_cells
    from soda_tta.bench.store import open_stores

    grid = find_grid(options.grid, options.scale)
    cells = [cell for cell in grid if options.only in (None, cell.method)]
    if not cells:
        methods = ", ".join(dict.fromkeys(cell.method for cell in grid))
        raise SodaError(f"the grid has no cell of method {options.only!r}; it has {methods}.")
    store = Store(options.out)
    reuse = [other for folder in options.reuse for other in open_stores(folder)]
    if options.dry_run:
        return print_missing(missing_cells(cells, store, reuse), options.json)
    count = run_and_show(cells, store, reuse, options)
    if options.json:
        print(json.dumps({"run": count, "kept": len(cells) - count, "store": str(store.path)}))
    else:
        print(f"{count} cells run, {len(store)} in {store.path}", file=sys.stderr)
        print_table(argparse.Namespace(store=options.out, format="markdown", json=False))
    return 0


def run_and_show(
    cells: list[Cell], store: Store, reuse: list[Store], options: argparse.Namespace
) -> int:
    """Run the cells under a live table; return how many were run."""
    from soda_tta.bench import run_grid
    from soda_tta.bench.live_table import LiveTable
    from soda_tta.bench.runner import CellsFailed
    from soda_tta.scale.backends import find_backend

    with (
        find_backend(options.backend, options.address, options.jobs) as backend,
        stopped_like_ctrl_c(),
        LiveTable(cells, store, quiet=options.json) as table,
    ):
        try:
            return run_grid(
                cells,
                store,
                backend=backend,
                report=table,
                report_failure=table.report_failure,
                reuse=reuse,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "Finished cells are kept; run the same command to continue."
            ) from None
        except SodaError as error:
            if options.json:
                failed = str(error).splitlines()
                if isinstance(error, CellsFailed):
                    failed = error.failures
                print(json.dumps({"failed": failed, "store": str(store.path)}))
            raise


def print_table(options: argparse.Namespace) -> int:
    """Print the table of a store."""
    from soda_tta.bench import make_table, render
    from soda_tta.bench.columns import in_order
    from soda_tta.bench.store import open_store

    table = make_table(in_order(open_store(options.store, filled=True)))
    if options.json:
        print(json.dumps(table.facts()))
    else:
        print(escaped(render(table, options.format).rstrip("\n")))
    return 0


def draw(options: argparse.Namespace) -> int:
    """Draw a figure of a store, or print its data."""
    from soda_tta.bench.figures import OPTIONS, draw_figure, figure_facts
    from soda_tta.bench.store import open_store

    if not options.out and not options.json:
        raise SodaError("name the file to draw (--out figure.svg), or print its data (--json).")
    choices = {name: getattr(options, name) for name in ("method", "corruption", "image")}
    choices = {name: value for name, value in choices.items() if value is not None}
    if unknown := sorted(set(choices) - set(OPTIONS.get(options.kind, ()))):
        raise SodaError(f"--{unknown[0]} does not apply to a figure of kind {options.kind}.")
    facts = figure_facts(open_store(options.store, filled=True), options.kind, **choices)
    if options.out:
        draw_figure(facts, Path(options.out))
    print(json.dumps(facts) if options.json else options.out)
    return 0


def merge(options: argparse.Namespace) -> int:
    """Merge stores into one and report cells with different answers."""
    from soda_tta.bench.store import Store, open_store

    others = {place: open_store(place) for place in options.stores}  # all, before any is merged
    target = Store(options.out)
    with target.locked():
        merged = {place: target.merge(other) for place, other in others.items()}
    facts: dict[str, dict[str, Any]] = {
        place: {"copied": len(copied), "different": [cell.title for cell in different]}
        for place, (copied, different) in merged.items()
    }
    if options.json:
        print(json.dumps(facts))
        return 0
    for place, counts in facts.items():
        print(f"{counts['copied']} cells from {place}")
        if counts["different"]:
            print(
                f"  {len(counts['different'])} cells of {place} have other answers in "
                f"{options.out}, which are kept:",
                *(f"    {title}" for title in counts["different"]),
                sep="\n",
                file=sys.stderr,
            )
    return 0
