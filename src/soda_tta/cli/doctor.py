"""`soda-tta doctor`: at most two queries an image, and whether adapting is likely to help."""

from __future__ import annotations

import argparse
import json
import shlex
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from soda_tta.cli.adapt import price
from soda_tta.cli.bar import Bar
from soda_tta.cli.options import add_images, add_model, images_from, model_from

if TYPE_CHECKING:
    from soda_tta.doctor import Examination

EXIT = {"go": 0, "try": 0, "leave": 3, "fix": 4, "unknown": 5}
COLOURS = {"good": "green", "caution": "yellow", "bad": "red"}
NOT_FOR_ADAPT = {
    "--clean": 1,
    "--clean-accuracy": 1,
    "--sample": 1,
    "--price": 1,
    "--json": 0,
    "--seed": 1,
}  # words
EPILOG = """\
examples:
  soda-tta doctor --model model.onnx --images night/
  soda-tta doctor --model model.onnx --images night/ --clean day/ --price 1.5
  soda-tta doctor ... --json && soda-tta adapt ...

exit codes, for pipelines:
  0  go, or try: adapting is likely to help, or may
  2  an option, the model or the images cannot be used
  3  leave: the images are not shifted, or there is little to gain
  4  fix: the model's answers cannot be adapted to as they are
  5  the model failed before the examination was complete; what is known is printed
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "doctor",
        help="before a run: is it worth trying, and what would it cost?",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    add_images(parser)
    group = parser.add_argument_group("the examination")
    group.add_argument(
        "--clean", metavar="DIR", help="images as they were before the shift; they need no labels"
    )
    group.add_argument(
        "--clean-accuracy",
        type=float,
        metavar="A",
        help="share of clean images the model gets right, if you know it",
    )
    group.add_argument(
        "--sample", type=int, default=500, metavar="N", help="images to look at (default 500)"
    )
    group.add_argument(
        "--price", type=price, metavar="P", help="money a thousand queries, to print costs"
    )
    group.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="everything random follows from it (default 0)",
    )
    group.add_argument(
        "--json", action="store_true", help="print machine-readable JSON, nothing else"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from soda_tta.data import open_images
    from soda_tta.doctor import examine

    images, box = images_from(options), model_from(options)
    clean = None if options.clean is None else open_images(options.clean, options.size)
    with Bar("examining", quiet=options.json) as bar:
        found = examine(
            images,
            box,
            clean=clean,
            clean_accuracy=options.clean_accuracy,
            price=options.price,
            sample=options.sample,
            seed=options.seed,
            progress=bar.reach,
        )
    command = adapt_command(options.given, found) if EXIT[found.advice] == 0 else None
    if options.json:
        print(json.dumps({**found.facts(), "command": command}))
    else:
        show(found, options, command)
    return EXIT[found.advice]


def adapt_command(given: Sequence[str], found: Examination) -> str:
    """The command that follows the advice, with the options this one was given."""
    words, skip = [], 0
    for word in given[list(given).index("doctor") + 1 :]:
        name, sign, _ = word.partition("=")
        meant = [
            option for option in NOT_FOR_ADAPT if len(name) > 3 and option.startswith(name)
        ]  # may be cut short
        if skip:
            skip -= 1
        elif meant:
            skip = 0 if sign else NOT_FOR_ADAPT[meant[0]]
        else:
            words.append(word)
    more = ["--method", found.method, "--budget", f"{found.budget:g}", "--out", "RUN"]
    return shlex.join(["soda-tta", "adapt", *words, *more])


def show(found: Examination, options: argparse.Namespace, command: str | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from soda_tta.cli.display import money

    console = Console(highlight=False, markup=False)
    spent = (
        ", ".join(f"{purpose} {queries:,}" for purpose, queries in found.queries.items()) or "none"
    )
    console.print(
        f"{options.images}: {found.sampled:,} of {found.images:,} images, {found.total:,} of at most {found.limit:,} "
        f"queries ({spent}{money(found.total, options.price)}), {found.seconds:.1f} s\n",
        soft_wrap=True,
    )
    for finding in found.findings:
        name = Text.assemble(
            (f"{finding.state:<7}", COLOURS[finding.state]), f"  {finding.name:<13}  "
        )
        width = max(40, min(console.width, 120) - len(name))
        lines = textwrap.wrap(finding.sentence, width)
        after = textwrap.wrap(finding.remedy, width, initial_indent="-> ", subsequent_indent="   ")
        console.print(name + Text(lines[0]), soft_wrap=True)
        for line in lines[1:]:
            console.print(" " * len(name) + line, soft_wrap=True)
        for line in after:
            console.print(" " * len(name) + line, style="dim", soft_wrap=True)
    if found.failed:
        console.print(f"\nincomplete: {found.failed}", style="red", soft_wrap=True)
    console.print(f"\n{found.advice}: {found.sentence}", style="bold", soft_wrap=True)
    if command is not None:
        console.print(f"  {command}", soft_wrap=True)
