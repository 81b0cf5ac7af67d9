"""Judge once more what a run has found: by labels, by more images, or because you accept it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta.cli.display import Display, condition_lines, table
from soda_tta.cli.image_options import add_reading, reading_of, size
from soda_tta.cli.model_options import add_model, model_options
from soda_tta.cli.options import add_json
from soda_tta.cli.spelling import complain
from soda_tta.errors import RunError

if TYPE_CHECKING:
    from soda_tta.engine.run import Run

EXAMPLES = """\
examples:
  fill in some labels in runs/night/label-these.csv; they decide, and no query is sent
    soda-tta judge runs/night --labels runs/night/label-these.csv
  images that the run has not seen, 4 queries each
    soda-tta judge runs/night --more-images tomorrow/ --model model.onnx
  deploy what was found although the verdict is to keep
    soda-tta judge runs/night --accept

Nothing is searched again. The run in RUN gets the new verdict, and its adaptor follows from it; the
verdicts before it are kept in run.json.
"""


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "judge",
        help="judge once more what a run has found: by labels or by more images",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="RUN", help="a run folder")
    group = parser.add_argument_group("the evidence (one of)")
    evidence = group.add_mutually_exclusive_group(required=True)
    evidence.add_argument(
        "--labels", metavar="FILE", help="true classes of some images of the run; they decide"
    )
    evidence.add_argument(
        "--more-images", metavar="PATH", help="unlabelled images that the run has not seen"
    )
    evidence.add_argument(
        "--accept", action="store_true", help="adopt what was found whatever the verdict says"
    )
    group.add_argument(
        "--size",
        type=size,
        metavar="S",
        help="resize every further image to this, as for the run (default: as they are)",
    )
    add_reading(group)
    group.add_argument(
        "--classes",
        metavar="FILE",
        help="names of the model's classes, one per line, if --labels holds names",
    )
    group.add_argument(
        "--budget",
        type=float,
        default=4.0,
        metavar="Q",
        help="queries per further image; each one used costs 4, so fewer use a random part "
        "(default: 4)",
    )
    add_json(group)
    add_model(parser, required=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge, save the run and print its verdict."""
    from soda_tta.engine.rejudge import rejudge
    from soda_tta.engine.run import Run
    from soda_tta.storage.locks import locked
    from soda_tta.storage.run_folder import RunFolder

    folder = RunFolder(options.folder)
    folder.read_card()  # refuses a folder without a run
    busy = f"another process is working on the run in {options.folder}; wait for it."
    with locked(Path(options.folder), busy):
        stored = Run.load(options.folder)
        if options.labels is not None:
            judged = rejudge(stored, labels=labels_of(options, stored))
        elif options.accept:
            judged = rejudge(stored, accept=True)
        else:
            judged = by_images(options, stored)
        judged.save(options.folder)
    show(options, judged)
    return 0


def labels_of(options: argparse.Namespace, run: Run) -> Any:
    """The labels in the order of the run's images."""
    from soda_tta.report.labels import read_classes, read_labels

    classes = read_classes(options.classes) if options.classes else None
    return read_labels(options.labels, run.names, classes, run.before.shape[1]).values


def by_images(options: argparse.Namespace, run: Run) -> Run:
    """The verdict on further images."""
    from soda_tta.box.like import load_box_like
    from soda_tta.data import open_images
    from soda_tta.engine.rejudge import rejudge

    if options.model is None:
        raise RunError("--more-images are sent to the model; give --model.")
    box, notice = load_box_like(run.card.box, options.model, **model_options(options))
    if notice is not None:
        complain(notice)
    images = open_images(options.more_images, options.size, **reading_of(options))
    with Display(quiet=options.json) as display:
        return rejudge(run, images=images, box=box, budget=options.budget, listener=display)


def show(options: argparse.Namespace, run: Run) -> None:
    """Print the verdict and what follows from it."""
    if options.json:
        print(json.dumps({**run.summary(), "out": options.folder}))
        return
    assert run.verdict is not None
    conditions = condition_lines(run)
    rows = [("verdict", run.verdict.sentence), *(("", text) for text in run.next_steps)]
    rows += [("" if place else "conditions", text) for place, text in enumerate(conditions)]
    if run.verdict.adopt and not conditions:
        rows.append(("adaptor", run.adaptor.describe()))
    if run.unreached:
        rows.append(
            ("answers", f"{run.unreached:,} images keep their answer; 'soda-tta apply' adapts them")
        )
    rows.append(("written to", options.folder))
    print(table(rows))
