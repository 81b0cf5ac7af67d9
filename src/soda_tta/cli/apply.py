"""Apply a saved adaptor to new images: one query per image and view."""

from __future__ import annotations

import argparse
import glob
import json
import shlex
import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from soda_tta.cli.apply_archive import add_archive, answer_archive, is_archive
from soda_tta.cli.display import Display
from soda_tta.cli.image_options import add_images, images_from
from soda_tta.cli.interrupt import Interrupt
from soda_tta.cli.model_options import add_model, model_options
from soda_tta.cli.options import add_json
from soda_tta.cli.spelling import complain
from soda_tta.errors import BoxError, ImageError, SodaError
from soda_tta.wording import counted

if TYPE_CHECKING:
    from soda_tta.adaptors import Adaptor
    from soda_tta.data import Images
    from soda_tta.engine.apply import Answers
    from soda_tta.engine.saved import SavedAdaptor

EXAMPLES = """\
examples:
  soda-tta apply --adaptor runs/night --model model.onnx --images tonight/ --out answers.csv
  soda-tta apply --adaptor runs/night --images tonight/ --save-images adapted/
  soda-tta apply --adaptor runs/night --model model.onnx --images s3://bucket/2026/ \\
    --out s3://bucket/answers/ --jobs 8

What was specified about the model for the run (--mean, --logits ...) is taken over; --output,
--size and how to reach the model are not.
"""
KEPT = "What was answered so far is kept"


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "apply",
        help="apply a saved adaptor to new images: one query per image and view",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--adaptor", required=True, metavar="RUN", help="a run folder or an adaptor.safetensors"
    )
    add_model(parser, required=False)
    add_images(parser)
    group = parser.add_argument_group("the answers")
    group.add_argument(
        "--out",
        metavar="OUT",
        help="file for the answers, .csv or .json; or a folder that ends in / or an address, for "
        "Parquet files (default: CSV on standard output)",
    )
    group.add_argument("--force", action="store_true", help="overwrite --out if it exists")
    group.add_argument(
        "--resume", action="store_true", help="continue answers to --out that were interrupted"
    )
    group.add_argument(
        "--save-images", metavar="DIR", help="write the adapted images as PNG; needs no model"
    )
    add_json(group)
    add_archive(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if is_archive(options):
        return answer_archive(options)
    check(options)
    from soda_tta.engine.saved import load_adaptor
    from soda_tta.engine.working_size import at_working_size

    saved = load_adaptor(options.adaptor)
    images = images_from(options)
    if options.model is not None:
        return ask(options, images, saved)
    save_images(options, at_working_size(images, saved.view), saved.adaptor)
    for text in saved.notices:
        complain(text)
    if options.json:
        print(json.dumps({"images": len(images), "saved": options.save_images, "queries": 0}))
    else:
        adapted = counted(len(images), "adapted image")
        print(f"{adapted} -> {options.save_images}", file=sys.stderr)
    return 0


def check(options: argparse.Namespace) -> None:
    """Refuse combinations of options that make no sense."""
    if options.model is None and options.save_images is None:
        raise SodaError("give --model to get answers, or --save-images to get adapted images.")
    if options.model is None and options.out is not None:
        raise SodaError("--out is for answers, which need --model; leave it out, or give a model.")
    if options.resume and (options.out is None or options.save_images is not None):
        raise SodaError("--resume continues answers in a file: give --out, and no --save-images.")


def ask(options: argparse.Namespace, images: Images, saved: SavedAdaptor) -> int:
    """Get the answers and print or write them."""
    from soda_tta.engine.apply import apply, deployed_model
    from soda_tta.engine.events import Event, Planned
    from soda_tta.engine.working_size import at_working_size

    def listen(event: Event) -> None:
        # Now the file of the answers is known to be writable, and nothing is billed yet.
        if isinstance(event, Planned) and options.save_images:
            display.bar.stop()
            save_images(options, at_working_size(images, box.input.view), saved.adaptor)
            display.bar.start()
        display(event)

    try:
        with Interrupt() as interrupt, Display(quiet=options.json) as display:
            box = deployed_model(saved, options.model, model_options(options), display)
            answers = apply(
                options.adaptor,
                images,
                box,
                out=options.out,
                resume=options.resume,
                force=options.force,
                stop=interrupt,
                listener=listen,
            )
    except KeyboardInterrupt:  # the second, in the middle of a request
        raise KeyboardInterrupt(how_to_continue(options)) from None
    except (BoxError, ImageError) as error:
        kind = ImageError if isinstance(error, ImageError) else BoxError
        raise kind(f"{error}\n{how_to_continue(options)}".rstrip()) from error
    if answers.interrupted:
        raise KeyboardInterrupt(how_to_continue(options))
    report(options, answers)
    return 0


def how_to_continue(options: argparse.Namespace) -> str:
    """The command that continues, if any answer is kept.

    Adapted images were saved before the first query, so they are not saved again.
    """
    if options.out is None:
        return ""
    out = Path(options.out)
    partial = [
        path
        for path in out.parent.glob(f"{glob.escape(out.name)}.*.partial")
        if path.stat().st_size
    ]
    if not partial:
        return ""
    saving = f"--save-images={options.save_images}"
    words = [word for word in options.words if word not in ("--resume", saving)]
    if "--save-images" in words:
        place = words.index("--save-images")
        del words[place : place + 2]
    return f"{KEPT}; continue with: {shlex.join(['soda-tta', *words, '--resume'])}"


def report(options: argparse.Namespace, answers: Answers) -> None:
    """Print the answers, or where they were written."""
    if options.json:
        saved = {"saved": options.save_images} if options.save_images else {}
        facts = {"queries": answers.ledger.total, "out": options.out, **saved}
        if answers.routes is not None:
            facts["conditions"] = answers.condition_counts()
        print(json.dumps({**facts, "answers": answers.rows()}))
    elif options.out is not None:
        count = len(answers.names)
        queries = answers.ledger.total
        print(f"{count:,} answers, {queries:,} queries -> {options.out}", file=sys.stderr)
        if answers.routes is not None:
            counts = answers.condition_counts()
            unfamiliar = counts.pop("unfamiliar")
            listed = ", ".join(f"{number}: {size:,}" for number, size in counts.items())
            print(f"images of condition {listed}; unlike all: {unfamiliar:,}", file=sys.stderr)
    else:
        print_csv(answers.csv())


def print_csv(text: str) -> None:
    """Print the same bytes that --out writes, whatever the encoding of standard output.

    The answers are billed by now: a name that a terminal cannot show must not lose them.
    """
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:  # replaced by a text stream in memory
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    binary.write(text.encode(errors="surrogateescape"))
    binary.flush()


def save_images(options: argparse.Namespace, images: Images, adaptor: Adaptor) -> None:
    """Write every adapted image as PNG."""
    from soda_tta.cli.bar import Bar
    from soda_tta.data.png import write_png
    from soda_tta.data.write import check_free, distinct

    folder = Path(options.save_images)
    check_free(folder)
    names = [PurePath(images.name(index)) for index in range(len(images))]
    places = distinct([name.with_suffix(".png") for name in names], names)
    with Bar("saving", quiet=options.json) as bar:
        for start in range(0, len(images), images.at_once):
            adapted = adaptor(images[slice(start, start + images.at_once)])
            for place, pixels in zip(places[start : start + len(adapted)], adapted, strict=True):
                write_png(folder / place, pixels)
            bar.reach(start + len(adapted), len(images))
