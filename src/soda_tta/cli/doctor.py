"""Examine a model and images before a run, with at most two queries per image.

It finds what the model expects of its pixels, with at most 1,000 queries more, and advises whether
adapting is likely to help.
"""

from __future__ import annotations

import argparse
import json
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from soda_tta.cli.image_options import add_clean, add_images, clean_from, images_from
from soda_tta.cli.model_options import add_input, add_model, model_from
from soda_tta.cli.options import add_json, add_price
from soda_tta.cli.spelling import as_flags
from soda_tta.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from soda_tta.doctor import Examination, Finding

# What the input convention consists of: if any of it is stated, it is checked instead of found.
STATED = ("pixel_range", "mean", "std", "channels", "layout", "crop", "turn", "mirror")
EXIT_CODES = {"go": 0, "try": 0, "leave": 3, "fix": 4, "unknown": 5}
COLOURS = {"good": "green", "caution": "yellow", "bad": "red"}
# What a state means, in words. A low accuracy is not good, but it speaks for adapting.
WORTH_IT = ("shift", "accuracy", "trial")
WORTH_IT_WORDS = {"good": "for", "caution": "open", "bad": "against"}
USABLE_WORDS = {"good": "ok", "caution": "note", "bad": "problem"}
# Options that `adapt` does not have or that must not be repeated, and how many values they take.
DOCTOR_OPTIONS = {
    "--sample": 1,
    "--price": 1,
    "--json": 0,
    "--seed": 1,
    "--input": 1,
    "--conventions": 1,
}
EPILOG = """\
examples:
  soda-tta doctor --model model.onnx --images night/
  soda-tta doctor --model model.tflite --images night/ --clean day/ --price 1.5
  soda-tta doctor --model model.onnx --images night/ --input stated --mean 0.5 --std 0.5
  soda-tta doctor ... --json && soda-tta adapt ...

exit codes, for pipelines:
  0  go or try: adapting is likely to help, or it may help
  2  an option, the model or the images cannot be used
  3  leave: the images are not shifted, or there is little to gain
  4  fix: the responses of the model cannot be used for adapting
  5  unknown: the model failed; the findings so far are printed
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "doctor",
        help="check before a run whether adapting is likely to help, and its cost",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    add_images(parser)
    group = parser.add_argument_group("the examination")
    add_input(group, default="auto")
    add_clean(group)
    group.add_argument(
        "--sample", type=int, default=500, metavar="N", help="images to examine (default: 500)"
    )
    add_price(group)
    group.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (default: 0)")
    add_json(group)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Examine, print the result, and return the exit code of the advice."""
    from soda_tta.cli.bar import Bar
    from soda_tta.doctor import examine

    images = images_from(options)
    stated = any(getattr(options, name) is not None for name in STATED)
    search = options.input == "auto"
    box = model_from(options, auto=search and not stated)
    options.price = options.price or box.price
    with Bar("examining", quiet=options.json) as bar:
        examination = examine(
            images,
            box,
            clean=clean_from(options),
            clean_accuracy=options.clean_accuracy,
            price=options.price,
            check_input=search and stated,
            sample=options.sample,
            seed=options.seed,
            progress=bar.reach,
        )
    examination = with_flags(examination)
    exit_code = EXIT_CODES[examination.advice]
    command = adapt_command(options.words, examination) if exit_code == 0 else None
    if options.json:
        print(json.dumps({**examination.facts(), "command": command}))
    else:
        show(examination, options, command)
    return exit_code


def with_flags(examination: Examination) -> Examination:
    """The examination with flags instead of Python arguments in its texts."""
    findings = [
        replace(finding, sentence=as_flags(finding.sentence), remedy=as_flags(finding.remedy))
        for finding in examination.findings
    ]
    failure = examination.failure
    return replace(
        examination,
        sentence=as_flags(examination.sentence),
        findings=findings,
        failure=None if failure is None else as_flags(failure),
    )


def adapt_command(words: Sequence[str], examination: Examination) -> str:
    """The command that follows the advice, with the options of this command.

    Clean images without their accuracy are of no use to it.
    """
    unknown = {"--clean": 1} if examination.clean_accuracy is None else {}
    left_out = {**DOCTOR_OPTIONS, **unknown}
    kept: list[str] = []
    skipped = 0
    for word in words[list(words).index("doctor") + 1 :]:
        name, equals, _ = word.partition("=")
        # options may be abbreviated
        matches = [option for option in left_out if len(name) > 3 and option.startswith(name)]
        if skipped:
            skipped -= 1
        elif matches:
            skipped = 0 if equals else left_out[matches[0]]
        else:
            kept.append(word)
    budget = f"{examination.budget:g}"
    found = examination.convention
    kept += found["options"] if found is not None and found["usable"] else []
    added = ["--method", examination.method, "--budget", budget, "--out", "RUN"]
    return shlex.join(["soda-tta", "adapt", *kept, *added])


def show(examination: Examination, options: argparse.Namespace, command: str | None) -> None:
    """Print the examination for a person."""
    from rich.console import Console

    from soda_tta.cli.display import money

    console = Console(highlight=False, markup=False)
    conclusion = f"{examination.advice}: {examination.sentence}"
    console.print(conclusion, style="bold", soft_wrap=True)
    if command is not None:
        console.print(f"  {command}", soft_wrap=True)
    if examination.failure:
        console.print(f"incomplete: {examination.failure}", style="red", soft_wrap=True)
    by_purpose = [f"{purpose} {count:,}" for purpose, count in examination.queries.items()]
    total = examination.total_queries
    cost = money(options.price, total, calls=examination.calls, seconds=examination.seconds)
    console.print(
        f"\n{options.images}: {examination.sampled:,} of {counted(examination.images, 'image')}, "
        f"{total:,} of at most {examination.query_limit:,} queries "
        f"({', '.join(by_purpose) or 'none'}{cost}), "
        f"{examination.seconds:.1f} s",
        soft_wrap=True,
    )
    worth_it = [each for each in examination.findings if each.name in WORTH_IT]
    usable = [each for each in examination.findings if each.name not in WORTH_IT]
    for heading, findings in (
        ("Is adapting worth it?", worth_it),
        ("Can the model and the images be used?", usable),
    ):
        if findings:
            console.print(f"\n{heading}", style="bold")
        for finding in findings:
            show_finding(finding, console)


def show_finding(finding: Finding, console: Console) -> None:
    """Print one finding: what it means and its name, then its sentence and remedy in a column."""
    from rich.text import Text

    words = WORTH_IT_WORDS if finding.name in WORTH_IT else USABLE_WORDS
    margin = Text.assemble(
        (f"{words[finding.state]:<7}", COLOURS[finding.state]), f"  {finding.name:<13}  "
    )
    width = max(40, min(console.width, 120) - len(margin))
    first, *rest = textwrap.wrap(finding.sentence, width)
    console.print(margin + Text(first), soft_wrap=True)
    for line in rest:
        console.print(" " * len(margin) + line, soft_wrap=True)
    remedy = textwrap.wrap(finding.remedy, width, initial_indent="-> ", subsequent_indent="   ")
    for line in remedy:
        console.print(" " * len(margin) + line, style="dim", soft_wrap=True)
