"""Watch a real black-box model fail on hazy and mixed digits and recover. No download needed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta.cli.display import Display, condition_lines, table
from soda_tta.cli.options import add_json

if TYPE_CHECKING:
    from soda_tta.demo import Demo


def add_to(commands: Any) -> None:
    """Add the command and its options to the parser."""
    parser = commands.add_parser(
        "demo",
        help="see a real black-box model fail and recover, in half a minute",
        description=__doc__,
    )
    parser.add_argument(
        "--out",
        default="soda-demo",
        metavar="DIR",
        help="folder for everything the demo makes (default: soda-demo)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="another seed gives another model and other haze (default: 0)",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="live traffic in place of a folder: a model, a proxy in front of it and images that "
        "drift, in two minutes",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the demo and print its results."""
    if options.live:
        from soda_tta.cli.live_demo import run_live

        return run_live(options)
    from soda_tta.demo import run_demo

    with Display(quiet=options.json) as display:
        if not options.json:
            print(
                "Training a small digit classifier, then deploying it to ONNX Runtime ...",
                file=sys.stderr,
            )
        demo = run_demo(Path(options.out), options.seed, display)
    if options.json:
        print(json.dumps(demo.summary()))
    else:
        print_results(demo, options.out)
    return 0


def print_results(demo: Demo, folder: str) -> None:
    """The accuracies as bars, then what each method did and where its files are."""
    from soda_tta.demo import BUDGET, PAPER
    from soda_tta.zoo.digits import CONTRAST, GRAIN, VEIL

    economy = demo.results["soda-e"].run
    images = len(economy.before)
    print("A digit classifier, deployed as an ONNX file and queried only for probabilities.")
    print(
        f"Haze ({VEIL} + {CONTRAST} x image + noise {GRAIN}) on {images} unlabelled test images.\n"
    )
    print(f"  clean images     {demo.clean:6.1%}  {bar(demo.clean)}")
    print(f"  hazy             {demo.before:6.1%}  {bar(demo.before)}")
    for name, result in demo.results.items():
        print(
            f"  adapted, {name:<6}  {result.accuracy:6.1%}  {bar(result.accuracy):<40}  "
            f"{result.run.queries_per_image:3.0f} queries per image, {result.seconds:.1f} s"
        )
    changed = ", ".join(f"{name}={value:g}" for name, value in PAPER.items())
    rows = [
        ("soda-e", f"at most {BUDGET} queries per image: {economy.adaptor.describe()}"),
        ("verdict", economy.verdict.sentence if economy.verdict else economy.reason),
        ("soda", f"the paper's settings except {changed} (a smaller set needs a larger step)"),
        ("picture", f"{demo.picture}  (clean / hazy / adapted)"),
        ("reports", f"{demo.report}, {demo.mixed.report} (of the folder below)"),
        ("runs", f"{folder}/run, {folder}/run-paper, {folder}/run-mixed"),
    ]
    print(f"\n{table(rows)}")
    print_mixed(demo)
    print("\nNo label was used to adapt; labels only measured the accuracies.")
    print("Next, your own model:  soda-tta adapt --model MODEL --images DIR --out RUN --dry-run")


def print_mixed(demo: Demo) -> None:
    """The accuracies on the mixed folder, and what soda-e did to each condition."""
    from soda_tta.zoo.digits import NOISE

    run = demo.mixed.run
    print(
        f"\nNow {len(run.before)} images in one folder, a third each clean, hazy and noisy "
        f"(noise {NOISE}).\n"
    )
    print("           as they are  one adaptor  one for each condition")
    for what, (before, one, each) in demo.mixed.accuracies.items():
        print(f"  {what:<6}   {before:11.1%}  {one:11.1%}  {each:11.1%}  {bar(each)}")
    conditions = 1 if run.conditions is None else len(run.conditions)
    print(
        f"\n  soda-e told {conditions} conditions apart by the pixels, without a label, and adapted"
        f"\n  each by itself ({run.queries_per_image:.0f} queries per image, {run.seconds:.1f} s):"
    )
    for line in condition_lines(run):
        print(f"    {line}")


def bar(share: float) -> str:
    """A bar of up to 40 characters."""
    return "█" * round(40 * share)
