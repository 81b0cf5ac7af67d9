"""`soda-tta demo`: see a real black-box model fail on hazy digits, and recover. Nothing is downloaded."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from soda_tta.cli.display import Display, table


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="see a real black box fail and recover, in a minute", description=__doc__
    )
    parser.add_argument(
        "--out",
        default="soda-demo",
        metavar="DIR",
        help="where to put what it makes (default soda-demo)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="another seed, another model and haze"
    )
    parser.add_argument(
        "--json", action="store_true", help="print machine-readable JSON, nothing else"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from soda_tta.demo import BUDGET, CONTRAST, GRAIN, PAPER, VEIL, run_demo

    with Display(quiet=options.json) as display:
        if not options.json:
            display.console.print(
                "training a small digit classifier, deploying it to ONNX Runtime ...", style="dim"
            )
        demo = run_demo(Path(options.out), options.seed, display)
    if options.json:
        print(json.dumps(demo.summary()))
        return 0
    economy, paper = demo.results["soda-e"], demo.results["soda"]
    print("A digit classifier, deployed as an ONNX file and seen only through its probabilities.")
    print(
        f"Haze ({VEIL} + {CONTRAST} x image + noise {GRAIN}) over {len(paper.run.before)} unlabelled test images.\n"
    )
    print(f"  clean images     {demo.clean:6.1%}  {bar(demo.clean)}")
    print(f"  hazy             {demo.before:6.1%}  {bar(demo.before)}")
    for name, result in demo.results.items():
        print(
            f"  adapted, {name:<6}  {result.accuracy:6.1%}  {bar(result.accuracy):<40}  "
            f"{result.run.queries_per_image:3.0f} queries an image, {result.seconds:.1f} s"
        )
    changed = ", ".join(f"{name}={value:g}" for name, value in PAPER.items())
    rows = [
        ("soda-e", f"at most {BUDGET} queries an image: {economy.run.adaptor.describe()}"),
        ("verdict", economy.run.verdict.sentence if economy.run.verdict else economy.run.reason),
        ("soda", f"the paper's numbers but {changed} (a smaller set needs a larger step)"),
        ("picture", f"{demo.picture}  (clean / hazy / adapted)"),
        ("report", str(demo.report)),
        ("runs", f"{options.out}/run, {options.out}/run-paper"),
    ]
    print(f"\n{table(rows)}")
    print("\nNo label was used to adapt; labels only measured the accuracies.")
    print("Next, your own model:  soda-tta adapt --model M --images DIR --out RUN --dry-run")
    return 0


def bar(share: float) -> str:
    return "█" * round(40 * share)
