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
ARCHIVES = (10_000, 1_000_000, 10_000_000)  # images of the table of costs
PROCESSES = 8  # with one core each
CORE_HOUR = 0.05  # dollars, assumed: usual for rented machines
PRICE = 1.0  # dollars per 1,000 queries, assumed: usual for a metered model
ANSWER_BYTES = 11  # per row of Parquet, measured: 2,000 rows with names of 9 characters, 22 kB
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
    sample = results["sample"]
    rows = [["step", "per unit, measured", "10 million images"]]
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
            f"at most {learning_queries():,} queries",
            "the same as of ten thousand",
        ]
    )
    for what, per_core in rates().items():
        hours = ARCHIVE / per_core / 3600
        rows.append([what, f"{per_core:,.0f} images/s per core", f"{hours:,.0f} core hours"])
    return markdown(rows)


def learning_queries() -> int:
    """The most that the default method sends to learn from a sample."""
    return plan_run(find_method("soda-e"), SAMPLE).total


def rates() -> dict[str, float]:
    """Images per second and core."""
    results = read("archive.json")
    memory, jpeg = results["memory"], results["jpeg"]
    plain = memory["plain_images_per_second"]
    slower = min(jpeg["model_images_per_second"], jpeg["decoding_images_per_second"])
    of_all_cores = {
        "32 px in memory, ResNet-20": plain * memory["memory, identity / plain"],
        "the same with a typical adaptor": plain * memory["typical adaptor / plain"],
        "JPEG files of 224 px, ResNet-50": slower * jpeg["jpeg / slower of decoding and model"],
    }
    return {what: rate / memory["cores"] for what, rate in of_all_cores.items()}


def costs() -> str:
    """Time, memory and money for archives of several sizes: learn from a sample, answer all."""
    results = read("archive.json")
    _, small, large = rates().values()
    kinds = {
        "32 px, ResNet-20": (small, results["resident"]["megabytes"][-1]),
        "224 px, ResNet-50": (large, results["jpeg"]["megabytes"]),
    }
    heads = [f"{PROCESSES} processes", "memory", "answers", "cores", "metered model"]
    rows = [["images", "model", *heads]]
    for count in ARCHIVES:
        for model, (per_core, megabytes) in kinds.items():
            queries = count + learning_queries()
            hours = queries / per_core / 3600
            stored = count * ANSWER_BYTES / 1e6
            rows.append(
                [
                    f"{count:,}",
                    model,
                    duration(hours / PROCESSES),
                    f"{PROCESSES * megabytes / 1000:.1f} GB",
                    f"{stored:,.1f} MB" if stored < 10 else f"{stored:,.0f} MB",
                    f"${hours * CORE_HOUR:,.2f}",
                    f"${queries / 1000 * PRICE:,.0f}",
                ]
            )
    return markdown(rows)


def duration(hours: float) -> str:
    """In words.

    >>> duration(0.02), duration(0.5), duration(15)
    ('72 s', '30 minutes', '15 hours')
    """
    if hours < 1 / 30:
        return f"{3600 * hours:.0f} s"
    return f"{60 * hours:.0f} minutes" if hours < 2 else f"{hours:.0f} hours"


def live() -> str:
    """A thousand images per second, one per request."""
    results = read("serve.json")
    rows = [["through the proxy", "per request, measured", f"cores for {LIVE:,} per second"]]
    small = {**results["identity"], **results.get("adaptors", {})}
    for size, parts in (("32 px", small), ("224 px", results.get("large", {}))):
        if not parts:  # not measured yet
            continue
        flow = parts["throughput"]
        proxy = flow["CPU ms of the proxy"] / 1000
        rows.append([f"{size}, as it is", f"{1000 * proxy:.1f} ms", f"{LIVE * proxy:.1f}"])
        for name in ("contrast", "noise"):
            if name not in parts:
                continue
            both = proxy + parts[name]["as a graph"] / 1000
            cells = [f"{1000 * both:.1f} ms", f"{LIVE * both:.1f}"]
            rows.append([f"{size}, an adaptor for {name}", *cells])
    return markdown(rows)


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    tables = {
        "sizing-paper": paper(),
        "sizing-archive": archive(),
        "sizing-costs": costs(),
        "sizing-live": live(),
    }
    PAGE.write_text(replace_tables(PAGE.read_text(), tables))
    print("\n\n".join(tables.values()))


if __name__ == "__main__":
    main()
