"""BETA-26 and test-time augmentation beside soda-e with a helper: accuracy and queries.

    soda-tta bench run peers-cifar10 --out results/peers-cifar10
    soda-tta bench run peers-imagenet --out results/peers-imagenet
    python benchmarks/helper_ranking.py
    python benchmarks/peers.py

Writes the tables of docs/research/peers.md from the stored cells. A store may be incomplete: every
mean says over how many corruptions it is, and compares methods on those that all of them have.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean
from typing import Any

import helper_ranking
from cell_results import accuracy_after, queries_per_image
from pages import NOT_RUN, markdown, replace_tables
from soda_tta.bench import Cell, CellResult, Store
from soda_tta.bench.peer_grids import STANDARD
from soda_tta.foreign_json import parse_json

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "research" / "peers.md"
Entry = tuple[Cell, CellResult]

PROBABILITIES, HELPER = "probabilities", "probabilities, helper"
# Rows of the tables: name, what it needs, and which cells belong to it.
ROWS: dict[str, tuple[str, str, float | None, dict[str, Any]]] = {
    "the model as it is": (PROBABILITIES, "deployed", None, {}),
    "soda-e, budget 5": (PROBABILITIES, "soda-e", 5.0, {}),
    "soda-e with helper": (HELPER, "soda-e", None, {"fuse": 0}),
    "soda-e with helper, budget 3": (HELPER, "soda-e", 3.0, {"fuse": 0}),
    "soda-e with helper, fused": (HELPER, "soda-e", None, {"fuse": 0.4}),
    "BETA-26": (HELPER, "beta26", None, {"variant": "full"}),
    "BETA-26, f2: border frozen": (HELPER, "beta26", None, {"variant": "f2"}),
    "BETA-26, f1: no border": (HELPER, "beta26", None, {"variant": "f1"}),
    "BETA-26, f0: nothing learned": (HELPER, "beta26", None, {"variant": "f0"}),
    "BETA-26, the model alone on framed images": (HELPER, "beta26", None, {"variant": "framed"}),
    "the helper alone, adapted": ("helper", "beta26", None, {"variant": "helper-adapted"}),
    "the helper alone, as it is": ("helper", "beta26", None, {"variant": "helper"}),
    "test-time augmentation, 2 views": (PROBABILITIES, "tta", None, {"views": 2}),
    "test-time augmentation, 10 views": (PROBABILITIES, "tta", None, {"views": 10}),
    "ZERO, 64 views": (PROBABILITIES, "zero", None, {}),
}
MAIN = (
    "the model as it is",
    "soda-e, budget 5",
    "soda-e with helper",
    "soda-e with helper, fused",
    "BETA-26",
    "the helper alone, adapted",
)


def belongs(cell: Cell, row: str) -> bool:
    """Whether a cell is one of a row, whatever its model, order and batch."""
    needs, method, budget, settings = ROWS[row]
    if (cell.method, cell.budget) != (method, budget):
        return False
    if method == "soda-e" and ("helper" in cell.settings) != (needs == HELPER):
        return False
    defaults = {"fuse": 0, "variant": "full", "views": 10}
    return all(cell.settings.get(name, defaults[name]) == settings[name] for name in settings)


def found(entries: Iterable[Entry], row: str) -> dict[str, CellResult]:
    """The results of a row by corruption."""
    return {cell.corruption: result for cell, result in entries if belongs(cell, row)}


def usual(cell: Cell) -> bool:
    """Whether a cell has the given order and the published batch."""
    return cell.order == "given" and cell.settings.get("batch") in (None, 32)


def by_corruption(entries: list[Entry], rows: Iterable[str]) -> str:
    """One line per corruption, one column per method, and the mean of what all have."""
    columns = {row: found(entries, row) for row in rows}
    columns = {row: results for row, results in columns.items() if results}
    if not columns:
        return NOT_RUN
    corruptions = [name for name in STANDARD if any(name in each for each in columns.values())]
    shared = [name for name in corruptions if all(name in each for each in columns.values())]
    lines = [["", *columns]]
    for corruption in corruptions:
        cells = [text(each.get(corruption), accuracy_after) for each in columns.values()]
        lines.append([corruption.replace("_", " "), *cells])
    if shared:
        cells = [average(each, shared, accuracy_after) for each in columns.values()]
        lines.append([f"**mean of {len(shared)}**", *cells])
        cells = [average(each, shared, queries_per_image, 2) for each in columns.values()]
        lines.append(["queries per image", *cells])
    lines.append(["needs", *(ROWS[row][0] for row in columns)])
    return markdown(lines)


def text(result: CellResult | None, measure: Callable[[CellResult], float]) -> str:
    """A figure, or a dash where the cell was not run."""
    return "-" if result is None else f"{measure(result):.1f}"


def average(
    results: dict[str, CellResult],
    corruptions: list[str],
    measure: Callable[[CellResult], float],
    digits: int = 1,
) -> str:
    """The mean over some corruptions."""
    return f"{mean(measure(results[name]) for name in corruptions):.{digits}f}"


def by_method(entries: list[Entry]) -> str:
    """One line per method, one column per corruption on which controls were run."""
    rows = {row: found(entries, row) for row in ROWS}
    corruptions = [name for name in STANDARD if name in rows["BETA-26, f1: no border"]]
    if not corruptions:
        return NOT_RUN
    header = [name.replace("_", " ") for name in corruptions]
    lines = [["", "needs", "queries per image", *header]]
    for row, results in rows.items():
        own = [results[name] for name in corruptions if name in results]
        if not own:
            continue
        queries = f"{mean(queries_per_image(each) for each in own):.2f}"
        cells = [text(results.get(name), accuracy_after) for name in corruptions]
        lines.append([row, ROWS[row][0], queries, *cells])
    return markdown(lines)


def streams(entries: list[Entry]) -> str:
    """Sorted images and other batches, beside the usual ones."""
    kinds: dict[str, Callable[[Cell], bool]] = {
        "batches of 64, as given": lambda cell: usual(cell),
        "batches of 64, sorted by class": lambda cell: cell.order == "classes",
        "batches of 16, as given": lambda cell: cell.settings.get("batch") == 16,
        "batches of 1, as given (200 images)": lambda cell: cell.settings.get("batch") == 1,
    }
    rows = ("BETA-26", "the helper alone, adapted", "soda-e with helper", MAIN[3])
    lines = [["", "corruption", *rows]]
    for kind, matches in kinds.items():
        chosen = [(cell, result) for cell, result in entries if matches(cell)]
        for corruption in ("gaussian_noise", "contrast"):
            results = [found(chosen, row).get(corruption) for row in rows]
            if any(result is not None for result in results):
                cells = [text(result, accuracy_after) for result in results]
                lines.append([kind, corruption.replace("_", " "), *cells])
    return markdown(lines) if len(lines) > 1 else NOT_RUN


def tables() -> dict[str, str]:
    """Every table of the page."""
    cifar10 = list(Store(ROOT / "results" / "peers-cifar10"))
    imagenet = list(Store(ROOT / "results" / "peers-imagenet"))
    with_32 = [entry for entry in cifar10 if entry[0].model == "cifar10_resnet20"]
    with_20 = [entry for entry in cifar10 if entry[0].model == "cifar10_resnet32"]
    plain = [entry for entry in with_32 if usual(entry[0])]
    ranking = helper_ranking.OUT
    return {
        "cifar10": by_corruption(plain, MAIN),
        "controls": by_method(plain),
        "reverse": by_corruption(with_20, MAIN),
        "streams": streams(with_32),
        "imagenet": by_corruption(imagenet, MAIN),
        "ranking": (
            helper_ranking.table(parse_json(ranking.read_bytes())) if ranking.exists() else NOT_RUN
        ),
    }


def main() -> None:
    written = replace_tables(PAGE.read_text(), tables())
    PAGE.write_text(written)


if __name__ == "__main__":
    main()
