"""`soda-tta adapt`: learn to change the images so that the deployed model does better."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from soda_tta.cli.display import Display, money, table
from soda_tta.cli.interrupt import Interrupt
from soda_tta.cli.options import add_images, add_model, images_from, model_from
from soda_tta.cli.summary import print_summary
from soda_tta.errors import BoxError, BudgetError, MethodError, RunError, SodaError

EXAMPLES = """\
examples:
  soda-tta adapt --model model.onnx --images night/ --out runs/night --budget 5 --dry-run --price 1.5
  soda-tta adapt --model model.onnx --mean 0.49,0.48,0.45 --std 0.2 --logits --images night/ --out runs/b --budget 10
  soda-tta adapt --model http://host:8000/v2/models/cats --images night/ --out runs/night --labels some.csv
  soda-tta adapt ... --method soda --set lr=auto      the paper's method, its learning rate chosen without labels
  soda-tta adapt ... --out runs/night --resume        continue after a kill, a crash or Ctrl-C

Every query is counted. A killed run continues where it was: no step that was paid is paid again.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "adapt",
        help="learn from unlabelled images how to change them so that the model does better",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser)
    add_images(parser)
    group = parser.add_argument_group("the run")
    group.add_argument(
        "--out", metavar="RUN", help="directory for the run (not needed with --dry-run)"
    )
    group.add_argument(
        "--method", default="soda-e", metavar="NAME", help="see 'soda-tta methods' (default soda-e)"
    )
    group.add_argument(
        "--budget",
        type=float,
        metavar="Q",
        help="at most Q queries an image, all purposes together",
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a number of the method, such as level=0.001; see 'soda-tta methods'",
    )
    group.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="everything random follows from it (default 0)",
    )
    group.add_argument("--resume", action="store_true", help="continue the run in --out")
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="say what the run would cost, without spending a query",
    )
    group.add_argument(
        "--price", type=price, metavar="P", help="money a thousand queries, to print costs"
    )
    group.add_argument(
        "--labels",
        metavar="FILE",
        help="true classes of some images (20 to 100 do): certifies the gain afterwards",
    )
    group.add_argument(
        "--classes",
        metavar="FILE",
        help="names of the model's classes, one a line, for --labels by name",
    )
    group.add_argument(
        "--json", action="store_true", help="print machine-readable JSON, nothing else"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from soda_tta.engine.adapt import adapt, check_call
    from soda_tta.engine.plan import plan_run
    from soda_tta.methods import find_method

    recipe = find_method(options.method).but(**changes(options.set))
    images = images_from(options)
    if options.labels:  # what is wrong with them is told before anything is paid
        from soda_tta.report.labels import read_labels

        read_labels(
            options.labels,
            [images.name(index) for index in range(len(images))],
            classes_of(options),
            None,
        )
    elif options.classes:
        raise RunError("--classes names what --labels mean; give --labels too.")
    if options.dry_run:
        check_call(
            recipe, images, model_from(options), options.seed
        )  # loads the model; asks it nothing
        return dry_run(options, plan_run(recipe, len(images), options.budget), recipe)
    if options.out is None:
        raise RunError("give --out RUN, a directory for the run (or --dry-run to see its cost).")
    if options.resume and not (Path(options.out) / "run.json").exists():
        raise RunError(
            f"there is no run in {options.out} to go on with; leave --resume out to begin one."
        )
    box = model_from(options)
    resume_with = shlex.join(
        ["soda-tta", *(word for word in options.given if word != "--resume"), "--resume"]
    )
    with Interrupt() as interrupt, Display(quiet=options.json) as display:
        try:
            result = adapt(
                images,
                box,
                recipe,
                options.budget,
                options.seed,
                out=options.out,
                resume=options.resume,
                stop=interrupt,
                listener=display,
                command=options.given,
            )
        except KeyboardInterrupt:  # the second, in the middle of a question
            raise KeyboardInterrupt(
                f"What was answered before is kept; continue with: {resume_with}"
            ) from None
        except SodaError as error:
            if isinstance(error, BoxError) and anything_paid(Path(options.out)):
                raise BoxError(
                    f"{error}\nWhat was answered before is kept; continue with: {resume_with}"
                ) from error
            if isinstance(error, BudgetError) and anything_paid(Path(options.out)):
                raise BudgetError(
                    f"{error} Another budget is another run: give it another --out."
                ) from error
            raise
    if not options.json:
        known = {"labels": options.labels, "classes": options.classes}
        print_summary(result, images=options.images, out=options.out, price=options.price, **known)
    certified, amiss = None, None
    if options.labels and result.after is not None:
        try:
            certified = certificate(result, options)
        except SodaError as error:
            amiss = error
    if options.json:
        facts = {} if certified is None else {"certificate": certified.facts()}
        facts |= {} if amiss is None else {"certificate_error": str(amiss)}
        print(json.dumps({**result.summary(), "out": options.out, **facts}))
    elif certified is not None:
        print(f"  {certified.sentence}")
    if amiss is not None:
        raise amiss
    if result.stopped == "interrupted":
        if not options.json:
            print(f"continue with: {resume_with}")
        return 130
    return 0


def anything_paid(out: Path) -> bool:
    """Whether answers or steps are on disk that a resume would use."""
    kept = [
        path
        for path in (out / "working").rglob("*")
        if path.suffix in (".answers", ".jsonl", ".transcript")
    ]
    return any(path.stat().st_size for path in kept)


def classes_of(options: argparse.Namespace) -> Any:
    from soda_tta.report.labels import read_classes

    return read_classes(options.classes) if options.classes else None


def certificate(result: Any, options: argparse.Namespace) -> Any:
    """What the labelled images say: after the run has ended, so that they cannot have been part of it."""
    from soda_tta.judging.certificate import certify
    from soda_tta.report.labels import read_labels

    try:
        read = read_labels(
            options.labels, result.names, classes_of(options), result.before.shape[1]
        )
    except SodaError as error:
        named = ["--classes", options.classes] if options.classes else []
        again = shlex.join(["soda-tta", "report", options.out, "--labels", options.labels, *named])
        raise type(error)(
            f"{error} The run itself is finished; with labels that fit: {again}"
        ) from error
    return certify(
        result.before[read.known], result.probabilities[read.known], read.values[read.known]
    )


def dry_run(options: argparse.Namespace, plan: Any, recipe: Any) -> int:
    from soda_tta.methods import Method

    if options.json:
        cost = (
            {}
            if options.price is None
            else {"price": options.price, "money": plan.total / 1000 * options.price}
        )
        facts = {
            "method": recipe.name,
            "settings": recipe.settings,
            "queries_per_image": plan.queries_per_image,
        }
        print(json.dumps({**asdict(plan), "total": plan.total, **facts, **cost}))
        return 0
    parts = ", ".join(f"{purpose} {queries:,}" for purpose, queries in plan.queries.items())
    most = "at most " if isinstance(recipe, Method) else ""
    print(f"{recipe.name} would ask {most}{plan.total:,} queries; nothing was asked.")
    rows = [("images", f"{plan.images:,}")]
    if isinstance(recipe, Method):
        rows += [("plan", recipe.outline(plan.images, plan.limit))]
    else:
        rows += [
            ("epochs", f"{plan.epochs} of {recipe.epochs}" if plan.shortened else f"{plan.epochs}")
        ]
    rows += [
        ("queries", parts),
        ("an image", f"{plan.queries_per_image:.2f}{money(plan.total, options.price)}"),
    ]
    print(table(rows))
    return 0


def price(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text} is no price; give money a thousand queries")
    return value


def changes(pairs: list[str]) -> dict[str, str]:
    """['q=10', 'lr=auto'] as a dictionary."""
    split = [pair.partition("=") for pair in pairs]
    for name, sign, value in split:
        if not (name and sign and value):
            raise MethodError(f"--set takes NAME=VALUE, such as q=10; got {name + sign + value!r}.")
    return {name: value for name, _, value in split}
