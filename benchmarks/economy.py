"""soda-e against the white boxes and the paper's SODA: same images, same box, same ledger, severity 5.

    python benchmarks/economy.py run cifar10 --jobs 2      # parts: see PARTS; killed, it goes on where it was
    python benchmarks/economy.py page                      # renews the tables of docs/economy.md from results/economy

No number of soda-e was chosen on what is reported here: see docs/economy.md for what it was developed on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import economy_curve
import objectives
import rate_choice
import transports
import verdicts
from pages import NOTHING, markdown, renewed
from soda_tta.bench import Cell, Store, run_grid
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.methods.soda import soda

FIVE = (
    "gaussian_noise",
    "defocus_blur",
    "contrast",
    "pixelate",
    "jpeg_compression",
)  # where the yardstick was run
SIX = ("gaussian_noise", "impulse_noise", "defocus_blur", "fog", "contrast", "jpeg_compression")
CURVE = (*FIVE, "fog")
TONES, NOISES = ("saturate", "snow", "brightness", "spatter"), ("gaussian_noise", "impulse_noise")
# The paper's SODA with each search. No rate was chosen by labels: 0.03 is soda's rate on a desk (least loss), and
# estimates of the same size take the same; the others have the least loss on shot noise, not reported (part "rates").
SEARCHES: dict[str, dict[str, Any]] = {
    "soda": {"lr": 0.03},
    "per-image": {"search": "per-image", "lr": 0.03},
    "orthogonal": {"orthogonal": True, "lr": 0.03},
    "central": {"central": True, "lr": 0.03},
    "subspace": {"subspace": 64, "lr": 0.1},
    "evolution": {"search": "evolution", "diagonal": True, "sigma": 0.03},
}
ALL, FEW = 10_000, 200  # every image of the CIFAR test sets, and hardly any
LITE = "imagenet_efficientnet_lite0"
ROOT = Path(__file__).parents[1]
PAGE, FIGURE = ROOT / "docs" / "economy.md", ROOT / "docs" / "economy.svg"
RESULTS, YARDSTICK = ROOT / "results" / "economy", ROOT / "results" / "yardstick"


def cifar(
    data: str, method: str, images: int = ALL, corruptions: Any = CORRUPTIONS, **facts: Any
) -> list[Cell]:
    model = facts.pop("model", f"{data}_resnet20")
    return [
        Cell(method=method, data=data, model=model, corruption=c, images=images, **facts)
        for c in corruptions
    ]


def imagenet(corruptions: Any, settings: dict[str, Any] | None = None) -> list[Cell]:
    facts: dict[str, Any] = {
        "data": "imagenet-1000",
        "model": LITE,
        "images": 1000,
        "settings": settings or {},
    }
    return [Cell(method="soda-e", corruption=c, budget=10, **facts) for c in corruptions]


def searched(
    search: str, corruptions: Any, images: int, budget: float, **settings: Any
) -> list[Cell]:
    """The paper's SODA with a search, its accuracy measured about every six queries an image."""
    facts = {"images": images, "budget": budget, "curve": 3 if search == "per-image" else 1}
    return cifar(
        "cifar10",
        "soda",
        corruptions=corruptions,
        settings={**SEARCHES[search], **settings},
        **facts,
    )


PARTS: dict[str, Callable[[], list[Cell]]] = {
    "cifar10": lambda: [
        *cifar("cifar10", "soda-e", budget=5),
        *cifar("cifar10", "soda-e", budget=3),
        *cifar("cifar10", "bn"),
    ],
    "cifar100": lambda: [*cifar("cifar100", "soda-e", budget=4), *cifar("cifar100", "bn")],
    "few": lambda: cifar("cifar10", "soda-e", images=FEW, budget=30),
    "clean": lambda: [
        *cifar("cifar10", "soda-e", corruptions=["clean"], budget=3),
        *cifar("cifar100", "soda-e", corruptions=["clean"], budget=4),
        *imagenet(["clean"]),
    ],
    "architecture": lambda: [
        *cifar("cifar10", "soda-e", images=2000, model="cifar10_resnet32", budget=9),
        *cifar("cifar10", "bn", images=2000, model="cifar10_resnet32"),
    ],
    "imagenet": lambda: imagenet(SIX),
    "pacs": lambda: [
        Cell(
            method="soda-e",
            data=f"pacs/{d}",
            model="pacs_photo_lite0",
            corruption="clean",
            images=210,
            budget=30,
        )
        for d in ("art_painting", "cartoon", "sketch")
    ],
    "white": lambda: [
        *cifar("cifar10", "soda-e", images=1000, corruptions=FIVE, budget=15),
        *cifar("cifar10", "bn", images=1000, corruptions=FIVE),
        *cifar("cifar10", "tent", images=1000, corruptions=FIVE),
        *cifar("cifar10", "ma-so", images=1000, corruptions=FIVE, settings={"epochs": 30}),
    ],
    "ablation": lambda: [
        c
        for settings in (
            {},
            {"without": "median"},
            {"without": "non-local means"},
            {"without": "cosine shrinkage"},
            {"without": "median,non-local means,cosine shrinkage"},
            {"without": "motion"},
            {"without": "kernel,blur"},
            {"without": "contrast,brightness,colour"},
            {"caution": 0.0},
        )
        for c in cifar(
            "cifar10", "soda-e", images=1000, corruptions=SIX, budget=15, settings=settings
        )
    ],
    "elsewhere": lambda: [  # what brought nothing on the six, where it should
        *cifar("cifar10", "soda-e", 1000, TONES, budget=15),
        *cifar(
            "cifar10",
            "soda-e",
            1000,
            TONES,
            budget=15,
            settings={"without": "contrast,brightness,colour"},
        ),
        *imagenet(NOISES),
        *imagenet(NOISES, {"without": "non-local means"}),
        *cifar("cifar10", "soda-e", images=FEW, budget=30),
        *cifar("cifar10", "soda-e", images=FEW, budget=30, settings={"caution": 0.0}),
    ],
    "rates": lambda: [
        c
        for search in ("soda", "per-image", "subspace")
        for lr in (0.01, 0.03, 0.1, 0.3)
        for c in searched(search, ["shot_noise"], images=500, budget=30, lr=lr)
    ],
    "curve": lambda: [
        *(
            c
            for q in economy_curve.BUDGETS[1:]
            for c in cifar("cifar10", "soda-e", images=1000, corruptions=CURVE, budget=q)
        ),
        *(c for search in SEARCHES for c in searched(search, CURVE, images=1000, budget=30)),
    ],
}


Results = list[tuple[Cell, dict[str, Any]]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a part of the benchmark")
    run.add_argument("part", choices=PARTS)
    run.add_argument("--jobs", type=int, default=2)
    page = commands.add_parser("page", help="renew the tables of docs/economy.md")
    page.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is out of date"
    )
    for command in (run, page):
        command.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    store = Store(options.out)
    if options.command == "run":
        run_grid(PARTS[options.part](), store, jobs=options.jobs, report=say)
        return
    old = PAGE.read_text()
    fresh = renewed(old, texts(store))
    if options.check and fresh != old:
        sys.exit("docs/economy.md is out of date: python benchmarks/economy.py page")
    if options.check:
        return
    PAGE.write_text(fresh)
    economy_curve.draw(curve_lines(store), FIGURE)


def say(cell: Cell, result: dict[str, Any]) -> None:
    print(
        f"{cell.data} {cell.corruption:<18} {cell.method:<8} {result['before']:5.1f} -> {result['after']:5.1f} "
        f"at {result['queries_per_image']:6.2f} queries an image, {result['seconds']:.0f} s",
        flush=True,
    )


def texts(store: Store) -> dict[str, str]:
    """Every table of the page by its marker."""
    found = {
        name: [(c, store.results[c.key]["result"]) for c in part() if c in store]
        for name, part in PARTS.items()
    }
    written = {
        name: by_corruption(found[name])
        for name in ("cifar10", "cifar100", "architecture", "imagenet")
    }
    written |= {
        "few": few(found["few"], found["cifar10"]),
        "clean": listed(found["clean"]),
        "pacs": listed(found["pacs"]),
    }
    for script in (objectives, transports, verdicts):
        written[script.__name__] = script.table() if script.OUT.exists() else NOTHING
    return {
        **written,
        "white": by_corruption(found["white"]),
        "yardstick": yardstick(found["cifar10"], found["white"]),
        "curve": economy_curve.table(curve_lines(store)),
        "ablation": ablation(found["ablation"]),
        "elsewhere": elsewhere(found["elsewhere"]),
    }


def by_corruption(results: Results) -> str:
    """One row a corruption, one column a method and budget, and what soda-e (the first column) does to the images."""
    of = {(column(cell), cell.corruption): result for cell, result in results}
    columns = list(dict.fromkeys(column(cell) for cell, _ in results))
    rows = [
        c
        for c in dict.fromkeys(cell.corruption for cell, _ in results)
        if all((m, c) in of for m in columns)
    ]
    if not rows:
        return NOTHING
    lines = [["", "unadapted", *columns, f"what {columns[0]} does"]]
    for c in rows:
        best = max(of[m, c]["after"] for m in columns)
        shown = [emphasised(of[m, c]["after"], best) for m in columns]
        lines.append(
            [
                c.replace("_", " "),
                f"{of[columns[0], c]['before']:.1f}",
                *shown,
                of[columns[0], c]["does"],
            ]
        )
    means = [np.mean([of[m, c]["after"] for c in rows]) for m in columns]
    start = np.mean([of[columns[0], c]["before"] for c in rows])
    lines.append(
        [
            f"**mean of {len(rows)}**",
            f"{start:.1f}",
            *(emphasised(each, max(means)) for each in means),
            "",
        ]
    )
    paid = [f"{np.mean([of[m, c]['queries_per_image'] for c in rows]):.2f}" for m in columns]
    lines.append(["queries an image", "1", *paid, ""])
    return markdown(lines)


def column(cell: Cell) -> str:
    return cell.method if cell.budget is None else f"{cell.method}, budget {cell.budget:g}"


def emphasised(value: float, best: float) -> str:
    return f"**{value:.1f}**" if value == best else f"{value:.1f}"


def few(results: Results, full: Results) -> str:
    """The gain with few images, as a share of the gain with all."""
    whole = {
        c.corruption: r["after"] - r["before"]
        for c, r in full
        if c.method == "soda-e" and c.budget == 5
    }
    some = {c.corruption: r["after"] - r["before"] for c, r in results}
    shared = [c for c in some if c in whole]
    if not shared:
        return NOTHING
    small, large = (float(np.mean([gains[c] for c in shared])) for gains in (some, whole))
    paid = np.mean([result["queries_per_image"] for _, result in results])
    return (
        f"Mean gain over {len(shared)} corruptions: {small:.1f} points with {FEW} images at {paid:.0f} queries an "
        f"image; {large:.1f} with all 10,000 and a budget of 5. That is **{small / large:.0%}** of it."
    )


def listed(results: Results) -> str:
    """One row a cell."""
    if not results:
        return NOTHING
    lines = [["images", "unadapted", "soda-e", "queries an image", "verdict"]]
    for cell, result in results:
        accuracies = [
            f"{result['before']:.2f}",
            f"{result['after']:.2f}",
            f"{result['queries_per_image']:.2f}",
        ]
        verdict = result["verdict"]
        words = (
            "no move helped"
            if verdict is None
            else f"adopt: {verdict['adopt']}, p = {verdict['p_value']:.2g}"
        )
        lines.append([f"{cell.data}, {cell.corruption}, {cell.images:,}", *accuracies, words])
    return markdown(lines)


def ablation(results: Results) -> str:
    """Mean accuracy with a part left out."""
    if not results:
        return NOTHING
    lines = [["", *(c.replace("_", " ") for c in SIX), "mean"]]
    for name in dict.fromkeys(label(cell) for cell, _ in results):
        after = {
            cell.corruption: result["after"] for cell, result in results if label(cell) == name
        }
        if len(after) == len(SIX):
            lines.append(
                [name, *(f"{after[c]:.1f}" for c in SIX), f"{np.mean(list(after.values())):.1f}"]
            )
    return markdown(lines)


def elsewhere(results: Results) -> str:
    """With a part, and without it; few images as a mean of all corruptions."""
    groups: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    whole = {place(cell): result for cell, result in results if not cell.settings}
    for cell, result in results:
        if cell.settings and (full := whole.get(place(cell))):
            many = (
                cell.corruption.replace("_", " ") if cell.images > FEW else "mean of 19 corruptions"
            )
            key = f"{cell.data}, {many}, {cell.images:,} images", changed(cell)
            groups.setdefault(key, []).append((full["before"], full["after"], result["after"]))
    lines = [["images", "unadapted", "soda-e", "changed", "is"]]
    for (name, change), values in groups.items():
        before, after, other = (f"{value:.1f}" for value in np.mean(values, axis=0))
        lines.append([name, before, after, change, other])
    return markdown(lines) if len(lines) > 1 else NOTHING


def place(cell: Cell) -> tuple[str, str, int]:
    return cell.data, cell.corruption, cell.images


def curve_lines(store: Store) -> economy_curve.Lines:
    known = [
        (cell, store.results[cell.key]["result"]) for cell in PARTS["curve"]() if cell in store
    ]
    complete = {
        line for line in (search_of(c) for c, _ in known) if places_of(line, known) == set(CURVE)
    }
    found = economy_curve.lines([(c, r) for c, r in known if search_of(c) in complete], search_of)
    told = chosen_rates()
    first = max(
        (1 + r["curve"][0]["queries"] / c.images for c, r in told), default=0
    )  # not measured before
    for name, points in economy_curve.lines(
        told, lambda _: f"soda to the paper's budget (mean of {len(told)})"
    ).items():
        found[name] = {budget: value for budget, value in points.items() if budget >= first}
    return found


def places_of(line: str, results: Results) -> set[str]:
    return {cell.corruption for cell, _ in results if search_of(cell) == line}


def chosen_rates() -> Results:
    """The paper's SODA to its whole budget, at the rate of those run with the least loss at the end:
    `soda-tta bench run yardstick`. Nothing is paid for choosing."""
    return rate_choice.least_loss(Store(YARDSTICK))


def search_of(cell: Cell) -> str:
    """The line of the figure that a cell belongs to."""
    named = next((name for name, settings in SEARCHES.items() if settings == cell.settings), None)
    return cell.method if named in (None, cell.method) else f"{cell.method}, {named}"


def yardstick(full: Results, some: Results) -> str:
    """soda-e beside the paper's SODA at its whole budget."""
    of_all = {c.corruption: r for c, r in full if c.method == "soda-e" and c.budget == 5}
    of_some = {c.corruption: r for c, r in some if c.method == "soda-e"}
    chosen = [
        (c, r) for c, r in chosen_rates() if c.corruption in of_all and c.corruption in of_some
    ]
    rates = {c.corruption: c.settings.get("lr", soda.step.lr) for c, _ in chosen}
    paper = [(c.corruption, r) for c, r in chosen]
    if not paper:
        return NOTHING
    lines = [["", "unadapted", "soda", "its rate", "soda-e, the same images", "soda-e, all images"]]
    for name, result in paper:
        row = [result["before"], result["after"], of_some[name]["after"], of_all[name]["after"]]
        shown = [f"{value:.1f}" for value in row]
        lines.append([name.replace("_", " "), *shown[:2], f"{rates[name]:g}", *shown[2:]])
    columns = [[r["before"], r["after"], of_some[n]["after"], of_all[n]["after"]] for n, r in paper]
    means = [f"**{value:.1f}**" for value in np.mean(columns, axis=0)]
    lines.append([f"**mean of {len(paper)}**", *means[:2], "", *means[2:]])
    paid = [
        [r["queries_per_image"], of_some[n]["queries_per_image"], of_all[n]["queries_per_image"]]
        for n, r in paper
    ]
    queries = [f"{value:.2f}" for value in np.mean(paid, axis=0)]
    lines.append(["queries an image", "1", queries[0], "", *queries[1:]])
    return markdown(lines)


def label(cell: Cell) -> str:
    return f"{cell.method} ({changed(cell)})" if changed(cell) else cell.method


def changed(cell: Cell) -> str:
    """The settings a cell has of its own, as `--set` takes them."""
    return ", ".join(
        f"{name}={value}" for name, value in cell.settings.items() if name not in ("lr", "epochs")
    )


if __name__ == "__main__":
    main()
