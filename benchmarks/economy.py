"""soda-e against white-box methods and the paper's SODA: same images, same model, severity 5.

    python benchmarks/economy.py run cifar10 --jobs 2   # a part; run again after a crash to resume
    python benchmarks/economy.py page                   # update the tables of the page
    python benchmarks/economy.py page --check           # fail if the page is out of date

No setting of soda-e was chosen on what is reported here; docs/research/soda-e.md lists what it was
developed on. The parts are defined in economy_parts.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import economy_curve
import economy_tables
from cell_results import Result, accuracy_after, accuracy_before, queries_per_image, run_seconds
from economy_parts import PARTS
from pages import replace_tables
from soda_tta.bench import Cell, Store, run_grid

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "research" / "soda-e.md"
FIGURE = ROOT / "docs" / "research" / "soda-e.svg"
RESULTS = ROOT / "results" / "economy"


def print_cell(cell: Cell, result: Result) -> None:
    """One line per finished cell."""
    before = accuracy_before(result)
    after = accuracy_after(result)
    print(
        f"{cell.data} {cell.corruption:<18} {cell.method:<8} {before:5.1f} -> {after:5.1f} "
        f"at {queries_per_image(result):6.2f} queries per image, {run_seconds(result):.0f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a part of the benchmark")
    run.add_argument("part", choices=PARTS)
    run.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    page = commands.add_parser("page", help="update the tables of docs/research/soda-e.md")
    page.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is out of date"
    )
    for command in (run, page):
        command.add_argument("--out", type=Path, default=RESULTS, help="the store")
    options = parser.parse_args()
    store = Store(options.out)
    if options.command == "run":
        run_grid(PARTS[options.part](), store, jobs=options.jobs, report=print_cell)
        return
    stored = PAGE.read_text()
    fresh = replace_tables(stored, economy_tables.page_tables(store))
    if not options.check:
        PAGE.write_text(fresh)
        economy_curve.draw(economy_tables.curve_lines(store), FIGURE)
    elif fresh != stored:
        sys.exit("docs/research/soda-e.md is out of date: python benchmarks/economy.py page")


if __name__ == "__main__":
    main()
