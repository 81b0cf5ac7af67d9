"""`soda-tta apply`: a saved adaptor on new images, one query an image."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.atomic import replacing, write_text
from soda_tta.box import Box, Ledger, Metered
from soda_tta.cli.bar import Bar
from soda_tta.cli.display import Display
from soda_tta.cli.options import add_images, add_model, images_from, model_from
from soda_tta.cli.saved import saved_adaptor
from soda_tta.errors import BoxError, SodaError
from soda_tta.events import Answered, Planned
from soda_tta.journal import AnswerFile

PIECE = 256  # images answered together
CARRIED = ("mean", "std", "pixel_range", "layout", "channels", "logits", "partial")  # from a run to what applies it


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "apply",
        help="a saved adaptor on new images: one query an image",
        description=__doc__,
        epilog="example: soda-tta apply --adaptor runs/night --model model.onnx --images tonight/ --out answers.csv. "
        "What the model was told when the run was made (--mean, --logits ...) need not be told "
        "again; --output, --size and how to reach it must.",
    )
    parser.add_argument("--adaptor", required=True, metavar="RUN", help="a run directory or an adaptor.safetensors")
    add_model(parser, required=False)
    add_images(parser)
    parser.add_argument("--out", metavar="FILE", help="CSV of answers (default: standard output)")
    parser.add_argument("--resume", action="store_true", help="go on with answers to --out that were interrupted")
    parser.add_argument("--save-images", metavar="DIR", help="write the adapted images as PNG; needs no model")
    parser.add_argument("--json", action="store_true", help="answers as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.model is None and options.save_images is None:
        raise SodaError("give --model to get answers, or --save-images to get adapted images.")
    if options.resume and (options.out is None or options.save_images is not None):
        raise SodaError("--resume continues answers that go to a file: give --out, and no --save-images.")
    adaptor, folder = saved_adaptor(options.adaptor)
    images, ledger = images_from(options), Ledger()
    box = None if options.model is None else Metered(deployed(options, folder), ledger, "serve")
    file = AnswerFile(None, len(images), PIECE) if box is None else answer_file(options, images, adaptor, box)
    answers, done = [file.kept] if len(file.kept) else [], len(file.kept)
    places = places_for(Path(options.save_images), images) if options.save_images else []
    with progress(len(images), done, ledger, options) as show, resumable(options):
        for start in range(done, len(images), PIECE):
            adapted = adaptor(images[slice(start, start + PIECE)])
            if options.save_images:
                save_images(Path(options.save_images), places[start : start + PIECE], adapted)
            if box is not None:
                answers.append(box(adapted))
                file.append(answers[-1], first=start == 0)
            show(start + len(adapted))
    if box is not None:
        report(options, images, np.concatenate(answers), ledger.total)
        if file.path is not None:
            file.path.unlink(missing_ok=True)
    elif options.json:
        print(json.dumps({"images": len(images), "saved": options.save_images, "queries": 0}))
    else:
        print(f"{len(images):,} adapted images -> {options.save_images}", file=sys.stderr)
    return 0


def answer_file(options: argparse.Namespace, images: Any, adaptor: Any, box: Box) -> AnswerFile:
    """Answers as they come in, beside the file they will end in: what is paid outlives a kill.

    Its name says what they are answers to, so that none of other images, another adaptor or another model is taken.
    """
    if options.out is None:
        return AnswerFile(None, len(images), PIECE)
    out = Path(options.out)
    if out.is_dir():
        raise SodaError(f"{out} is a directory; --out is the CSV file to write.")
    out.parent.mkdir(parents=True, exist_ok=True)
    names = [images.name(index) for index in range(len(images))]
    told = json.dumps([names, adaptor.kind, adaptor.numbers(), box.fingerprint()]).encode()
    digest = hashlib.sha256(told + adaptor.parameters.tobytes()).hexdigest()[:12]
    partial = out.with_name(f"{out.name}.{digest}.partial")
    paid = partial.exists() and partial.stat().st_size > 0
    if options.resume and not paid:
        raise SodaError(f"there is nothing of these images, this adaptor and this model to continue beside {out}.")
    if paid and not options.resume:
        raise SodaError(f"{partial} holds answers that are paid; go on with --resume, or remove it to begin again.")
    partial.touch()  # whether it can be written is known before anything is paid
    return AnswerFile(partial, len(images), PIECE)


@contextmanager
def progress(count: int, done: int, ledger: Ledger, options: argparse.Namespace) -> Iterator[Callable[[int], None]]:
    """A bar over the queries; over the images, where none is asked."""
    from soda_tta.plan import Plan

    if options.model is None:
        with Bar("saving", quiet=options.json) as bar:
            yield lambda reached: bar.reach(reached, count)
        return
    with Display(quiet=options.json) as display:
        display(Planned(Plan(count, 0, (), {"serve": count - done}, None, False), ledger))
        yield lambda reached: display(Answered("serve", reached, count))


@contextmanager
def resumable(options: argparse.Namespace) -> Iterator[None]:
    """Says how to go on, where answers are kept."""
    words = shlex.join(["soda-tta", *(word for word in options.given if word != "--resume"), "--resume"])
    told = f"Nothing paid is lost; continue with: {words}" if options.out and options.save_images is None else ""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(told) from None
    except BoxError as error:
        raise BoxError(f"{error}\n{told}".rstrip()) from error


def deployed(options: argparse.Namespace, run: Path) -> Box:
    """The model; what it was told when the adaptor was learnt holds unless something else is stated."""
    from soda_tta.run import read_card

    if not (run / "run.json").exists():
        return model_from(options)
    learnt = read_card(run)["box"]
    for name, value in {
        **(learnt.get("input") or {}),
        "logits": learnt.get("logits"),
        "partial": learnt.get("partial"),
    }.items():
        if name in CARRIED and getattr(options, name) is None:
            setattr(options, name, value)
    box = model_from(options)
    if box.fingerprint() != learnt["fingerprint"]:
        print(
            "soda-tta: this is not the model the adaptor was learnt for, or not at the same address.", file=sys.stderr
        )
    return box


def report(options: argparse.Namespace, images: Any, answers: Any, queries: int) -> None:
    names = [images.name(index) for index in range(len(images))]
    classes, confidence = answers.argmax(axis=1).tolist(), answers.max(axis=1).tolist()
    if options.json:
        rows = [
            {"image": n, "class": c, "confidence": round(p, 6)}
            for n, c, p in zip(names, classes, confidence, strict=True)
        ]
        saved = {"saved": options.save_images} if options.save_images else {}
        text = json.dumps({"queries": queries, **saved, "answers": rows}) + "\n"
    else:
        import csv

        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["image", "class", "confidence"])
        writer.writerows([n, c, f"{p:.6f}"] for n, c, p in zip(names, classes, confidence, strict=True))
        text = buffer.getvalue()
    if options.out is None:
        sys.stdout.write(text)
    else:
        write_text(Path(options.out), text)
        print(f"{len(names):,} answers, {queries:,} queries -> {options.out}", file=sys.stderr)


def save_images(folder: Path, targets: list[PurePath], adapted: Any) -> None:
    for target, pixels in zip(targets, adapted, strict=True):
        with replacing(folder / target) as temporary:
            Image.fromarray(np.rint(pixels.transpose(1, 2, 0) * 255).astype(np.uint8)).save(temporary, "PNG")


def places_for(folder: Path, images: Any) -> list[PurePath]:
    """Where each adapted image goes; refuses to write over anything, or two images to one place."""
    from soda_tta.data.write import check_free, distinct

    check_free(folder)
    names = [PurePath(images.name(index)) for index in range(len(images))]
    return distinct([name.with_suffix(".png") for name in names], names)
