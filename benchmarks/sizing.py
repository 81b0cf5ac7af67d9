"""How much hardware large jobs need, on paper: from measured costs per unit.

    python benchmarks/sizing.py                # writes the tables of docs/how-to/scale.md

Nothing is measured here. The queries come from the grids at the scale of the paper, the cost of a
query besides the model from results/methods.json, that of an image of an archive from
results/archive.json, that of a live request from results/serve.json. What no machine of ours can
tell, the speed of a model on a GPU, is an assumption that stands in the table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pages import markdown, replace_tables
from soda_tta.bench import find_grid
from soda_tta.engine.plan import plan_run
from soda_tta.methods import find_method

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "how-to" / "scale.md"
GPUS = 8
# Assumed: float32 forward passes per second of one GPU, with PyTorch and batches of 256.
ASSUMED = {"cifar10": 30_000, "cifar100": 30_000, "imagenet": 1_500}
NETWORKS = {"cifar10": "ResNet-20, 32 px", "cifar100": "ResNet-20, 32 px"}
NETWORKS["imagenet"] = "ResNet-50, 224 px"
DISTILLED_EPOCHS = 150  # of DINE and BETA, 30 of them to finish
MEASURED_EPOCHS = 4  # in results/methods.json
ARCHIVE = 10_000_000  # images
SAMPLE = 5_000  # images to learn from
LIVE = 1_000  # images per second


def read(name: str) -> dict:
    """Stored results."""
    return json.loads((RESULTS / name).read_text())


def passes(grid: str, costs: dict[str, dict]) -> tuple[int, int, float]:
    """Cells, queries, and the time of all methods in forward passes of the model."""
    cells = find_grid(grid, "paper")
    queries = 0
    forward = 0.0
    for cell in cells:
        plan = cell.plan()
        queries += plan.total
        cost = costs[cell.method]
        ratio = cost["step_in_its_queries"]
        if ratio is not None:
            forward += plan.total * max(1.0, ratio)
        elif cost["step_in_batches"] is not None:  # DINE and BETA train a network of their own
            per_epoch = (cost["run_in_batches"] - 2) / (2 * MEASURED_EPOCHS)
            forward += plan.images * DISTILLED_EPOCHS * per_epoch
        else:
            forward += plan.total
    return len(cells), queries, forward


def paper() -> str:
    """The paper's full tables on 8 GPUs."""
    costs = {row["method"]: row for row in read("methods.json")["rows"]}
    rows = [["table", "cells", "queries", "time in forward passes", "assumed per GPU", "8 GPUs"]]
    for grid, speed in ASSUMED.items():
        cells, queries, forward = passes(grid, costs)
        hours = forward / speed / GPUS / 3600
        rows.append(
            [
                f"`{grid}` ({NETWORKS[grid]})",
                f"{cells:,}",
                f"{queries / 1e9:.1f} billion",
                f"{forward / 1e9:.1f} billion",
                f"{speed:,} per second",
                f"{hours:.0f} hours" if hours < 72 else f"{hours / 24:.0f} days",
            ]
        )
    return markdown(rows)


def archive() -> str:
    """Ten million images."""
    results = read("archive.json")
    memory, jpeg, sample = results["memory"], results["jpeg"], results["sample"]
    rows = [["step", "per unit, measured", "10 million images"]]
    learning = plan_run(find_method("soda-e"), SAMPLE)
    per_million = sample["seconds_per_million_names"]
    rows.append(
        [
            "listing names of local files",
            f"{per_million:.0f} s per million",
            f"{per_million * ARCHIVE / 1e6 / 60:.1f} minutes",
        ]
    )
    rows.append(
        [
            f"learning from a sample of {SAMPLE:,}, default method",
            f"at most {learning.total:,} queries",
            "the same as of ten thousand",
        ]
    )
    small = memory["plain_images_per_second"] * memory["memory, identity / plain"]
    typical = memory["plain_images_per_second"] * memory["typical adaptor / plain"]
    large = jpeg["jpeg / slower of decoding and model"] * min(
        jpeg["model_images_per_second"], jpeg["decoding_images_per_second"]
    )
    for what, rate in (
        ("32 px in memory, ResNet-20", small),
        ("the same with a typical adaptor", typical),
        ("JPEG files of 224 px, ResNet-50", large),
    ):
        hours = ARCHIVE / rate * results["memory"]["cores"] / 3600
        per_core = rate / results["memory"]["cores"]
        rows.append([what, f"{per_core:,.0f} images/s per core", f"{hours:,.0f} core hours"])
    return markdown(rows)


def live() -> str:
    """A thousand images per second, one per request."""
    results = read("serve.json")
    cores = 2
    rows = [["through the proxy", "per request, measured", f"cores for {LIVE:,} per second"]]
    for size in ("32 px", "224 px"):
        flow = results[size]["throughput"]
        proxy = cores * (1 / flow["proxied"] - 1 / flow["direct"])
        rows.append([f"{size}, as it is", f"{1000 * proxy:.1f} ms", f"{LIVE * proxy:.0f}"])
        for name in ("contrast", "noise"):
            graph = results[size][name]["as a graph"] / 1000
            both = proxy + graph
            cells = [f"{1000 * both:.1f} ms", f"{LIVE * both:.0f}"]
            rows.append([f"{size}, an adaptor for {name}", *cells])
    return markdown(rows)


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    tables = {"sizing-paper": paper(), "sizing-archive": archive(), "sizing-live": live()}
    PAGE.write_text(replace_tables(PAGE.read_text(), tables))
    print("\n\n".join(tables.values()))


if __name__ == "__main__":
    main()
