"""Learn from unlabelled images how to change them so that the deployed model does better."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING, Any

from soda_tta.cli.answer_all import answer_all
from soda_tta.cli.answer_options import add_answers, answer_settings
from soda_tta.cli.apply_archive import print_answers
from soda_tta.cli.display import Display
from soda_tta.cli.dry_run import dry_run
from soda_tta.cli.image_options import add_clean, add_images, add_sample, clean_from, images_from
from soda_tta.cli.interrupt import Interrupt
from soda_tta.cli.labels import certify_run, check_labels, judged_by_labels
from soda_tta.cli.model_options import add_input, add_model, model_from
from soda_tta.cli.options import add_json, add_price, settings_from
from soda_tta.cli.spelling import as_flags
from soda_tta.errors import (
    BoxError,
    BudgetError,
    ImageError,
    RunError,
    SodaError,
)

if TYPE_CHECKING:
    from soda_tta.data import Images
    from soda_tta.engine.run import Run
    from soda_tta.judging.certificate import Certificate
    from soda_tta.methods import Method

EXAMPLES = """\
examples:
  what would it cost?
    soda-tta adapt --model model.onnx --images night/ --budget 5 --dry-run --price 1.5
  a model of logits that expects normalised images
    soda-tta adapt --model model.onnx --logits --mean 0.49,0.48,0.45 --std 0.2 \\
                   --images night/ --out runs/night
  a model behind an address, and labels of some images to certify the gain
    soda-tta adapt --model http://host:8000/v2/models/cats --images night/ --out runs/night \\
                   --labels some.csv
  the paper's method, with a learning rate that is chosen without labels
    soda-tta adapt --model model.onnx --images night/ --out runs/paper --method soda --set lr=auto
  an archive of millions: learn from some of it, then answer all of it
    soda-tta adapt --model model.onnx --images s3://bucket/2026/ --sample 5000 --answers all \\
                   --out runs/2026
  nothing is known about the model: find what it expects of its pixels first
    soda-tta adapt --model model.onnx --input auto --images night/ --out runs/night
  all classes are equally frequent, and a mirror image shows the same
    soda-tta adapt --model model.onnx --images night/ --out runs/night --prior balanced --views 2
  continue after a crash, a kill or Ctrl-C: the same command and --resume

Every query is counted. A killed run continues where it stopped: no completed step is billed twice.
"""
KEPT = "What was answered so far is kept"


def add_to(commands: Any) -> None:
    """Register the command."""
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
        "--out", metavar="RUN", help="folder for the run (not needed with --dry-run)"
    )
    group.add_argument(
        "--method",
        default="soda-e",
        metavar="NAME",
        help="see 'soda-tta methods' (default: soda-e)",
    )
    group.add_argument(
        "--budget",
        type=float,
        metavar="Q",
        help="at most Q queries per image, all purposes together",
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="change a setting of the method, such as level=0.001; may be repeated; "
        "see 'soda-tta methods NAME'",
    )
    group.add_argument(
        "--group-by",
        metavar="RULE",
        help="which images belong together and count once in the verdict: folder, csv:COLUMN, "
        "exif:TAG or name:REGEX; none: every image is independent (default: near copies are found "
        "from the pixels)",
    )
    group.add_argument(
        "--conditions",
        metavar="K",
        help="number of conditions among the images (noisy, dark ...), each adapted by itself; 1 "
        "treats all images alike (default: auto, as many as can be told apart)",
    )
    group.add_argument(
        "--condition-by",
        metavar="RULE",
        help="what is known about the conditions: folder, csv:COLUMN, exif:TAG (such as "
        "exif:DateTimeOriginal:hour) or name:REGEX; each is split further where its images differ",
    )
    add_answers(group)
    add_sample(group, "learn from")
    group.add_argument(
        "--answers",
        choices=["none", "sample", "all"],
        help="which images are answered with what was learned: none (as with 'soda-tta apply', "
        "later), those it learns from (default), or with --sample all of --images, in RUN/answers",
    )
    add_clean(group, "; at most 500 are sent, once, within --budget")
    add_input(group, default="stated")
    group.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (default: 0)")
    group.add_argument("--resume", action="store_true", help="continue the run in --out")
    group.add_argument(
        "--dry-run", action="store_true", help="print what the run would cost; no query is sent"
    )
    add_price(group)
    group.add_argument(
        "--labels",
        metavar="FILE",
        help="true classes of some images (20 to 100 are enough); they do not reach the search, "
        "they decide the verdict and measure the gain afterwards",
    )
    group.add_argument(
        "--classes",
        metavar="FILE",
        help="names of the model's classes, one per line, if --labels holds names",
    )
    add_json(group)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    settings = settings_from(options.set)
    if options.conditions is not None:
        settings["conditions"] = options.conditions
    check_out(options)
    settings |= answer_settings(options)
    from soda_tta.methods import find_method  # PyTorch: not before the options are checked
    from soda_tta.storage.run_folder import RunFolder

    method = find_method(options.method).but(**settings)
    folder = RunFolder(None if options.dry_run else options.out)
    folder.check_free(options.resume)
    images = images_from(options, folder.sample_path())
    check_labels(options, images)
    if options.dry_run:
        return dry_run(options, method, images)
    result = judged_by_labels(options, adapted(options, method, images))
    if options.sampled is None or options.answers != "all" or result.stopped == "interrupted":
        return show(options, result)
    if options.json:
        return show(options, result, answers=answer_all(options))
    show(options, result)
    print_answers(answer_all(options))
    return 0


def check_out(options: argparse.Namespace) -> None:
    """Refuse a run without a folder, and a resume without a run."""
    from soda_tta.storage.run_folder import RunFolder

    if options.dry_run:
        return
    if options.out is None:
        raise RunError("give --out RUN, a folder for the run (or --dry-run to see its cost).")
    folder = RunFolder(options.out)
    if options.resume and not folder.holds_run and not folder.holds_billed_work:
        raise RunError(
            f"there is no run in {options.out} to resume; leave out --resume to start one."
        )


def adapted(options: argparse.Namespace, method: Method, images: Images) -> Run:
    """The run; errors say how to continue where something was billed."""
    from soda_tta.engine.adapt import adapt
    from soda_tta.storage.run_folder import RunFolder

    box = model_from(options, auto=options.input == "auto")
    options.price = options.price or box.price
    folder = RunFolder(options.out)
    with Interrupt() as interrupt, Display(quiet=options.json) as display:
        try:
            return adapt(
                images,
                box,
                method=method,
                budget=options.budget,
                clean=clean_from(options),
                clean_accuracy=options.clean_accuracy,
                seed=options.seed,
                groups=options.group_by,
                condition_by=options.condition_by,
                answers="none" if options.answers == "none" else "all",
                out=options.out,
                resume=options.resume,
                stop=interrupt,
                listener=display,
                command=options.words,
            )
        except KeyboardInterrupt:  # the second, in the middle of a query
            raise KeyboardInterrupt(f"{KEPT}; continue with: {resume_with(options)}") from None
        except (BoxError, ImageError) as error:
            if not folder.holds_billed_work:
                raise
            text = f"{error}\n{KEPT}; continue with: {resume_with(options)}"
            kind = ImageError if isinstance(error, ImageError) else BoxError
            raise kind(text) from error
        except BudgetError as error:
            if not folder.holds_billed_work:
                raise
            text = f"{error} Another budget is another run: give it another --out."
            raise BudgetError(text) from error


def resume_with(options: argparse.Namespace) -> str:
    """The command that continues this run."""
    words = [word for word in options.words if word != "--resume"]
    return shlex.join(["soda-tta", *words, "--resume"])


def show(options: argparse.Namespace, result: Run, **more: Any) -> int:
    """Print what came out, and the certificate if there are labels; `more` belongs to the JSON."""
    certificate: Certificate | None = None
    problem: SodaError | None = None
    # Answers that are the unadapted ones cannot be certified against themselves.
    adapted_answers = result.after is not None and bool((result.after != result.before).any())
    if options.labels and adapted_answers:
        try:
            certificate = certify_run(result, options)
        except SodaError as error:
            problem = error
    if options.json:
        print(json.dumps({**run_facts(options, result, certificate, problem), **more}))
    else:
        print_run(options, result, certificate)
    if problem is not None:
        raise problem
    return 130 if result.stopped == "interrupted" else 0


def run_facts(
    options: argparse.Namespace,
    result: Run,
    certificate: Certificate | None,
    problem: SodaError | None,
) -> dict[str, Any]:
    """What came out, as JSON."""
    facts: dict[str, Any] = {**result.summary(), "out": options.out}
    if options.price is not None:
        ledger = result.ledger
        cost = options.price.cost(ledger.total, calls=ledger.calls, seconds=result.seconds)
        facts |= {"price": options.price.number, "cost": cost}
    if certificate is not None:
        facts["certificate"] = certificate.facts()
    if problem is not None:
        facts["certificate_error"] = as_flags(str(problem))
    if result.stopped == "interrupted":
        facts["continue_with"] = resume_with(options)
    return facts


def print_run(options: argparse.Namespace, result: Run, certificate: Certificate | None) -> None:
    """Print what came out for a person."""
    from soda_tta.cli.summary import print_summary

    print_summary(
        result,
        images=options.images,
        out=options.out,
        price=options.price,
        labels=options.labels,
        classes=options.classes,
    )
    if certificate is not None:
        print(f"  {certificate.sentence}")
    if result.stopped == "interrupted":
        print(f"continue with: {resume_with(options)}")
