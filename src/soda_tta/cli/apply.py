"""`soda-tta apply`: a saved adaptor on new images, one query an image."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from soda_tta.box import Box, Ledger, Metered
from soda_tta.box.facts import as_options, carried_over, unusual
from soda_tta.cli.bar import Bar
from soda_tta.cli.display import Display
from soda_tta.cli.interrupt import Interrupt
from soda_tta.cli.options import add_images, add_model, images_from, model_from
from soda_tta.cli.saved import saved_adaptor, say
from soda_tta.engine.events import Planned
from soda_tta.errors import BoxError, BoxUnavailable, SodaError
from soda_tta.storage.atomic import alone, make_folder, replacing, write_text

if TYPE_CHECKING:
    from soda_tta.adaptors import Adaptor
    from soda_tta.data import Images

ANSWERED = "What was answered before is kept"
CARRIED = (
    "mean",
    "std",
    "pixel_range",
    "layout",
    "channels",
    "logits",
    "partial",
)  # from a run to what applies it


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "apply",
        help="a saved adaptor on new images: one query an image",
        description=__doc__,
        epilog="example: soda-tta apply --adaptor runs/night --model model.onnx --images tonight/ --out answers.csv. "
        "What the model was told when the run was made (--mean, --logits ...) need not be told "
        "again; --output, --size and how to reach it must.",
    )
    parser.add_argument(
        "--adaptor", required=True, metavar="RUN", help="a run directory or an adaptor.safetensors"
    )
    add_model(parser, required=False)
    add_images(parser)
    parser.add_argument("--out", metavar="FILE", help="CSV of answers (default: standard output)")
    parser.add_argument("--force", action="store_true", help="write over a file that exists")
    parser.add_argument(
        "--resume", action="store_true", help="go on with answers to --out that were interrupted"
    )
    parser.add_argument(
        "--save-images", metavar="DIR", help="write the adapted images as PNG; needs no model"
    )
    parser.add_argument("--json", action="store_true", help="answers as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.model is None and options.save_images is None:
        raise SodaError("give --model to get answers, or --save-images to get adapted images.")
    if options.model is None and options.out is not None:
        raise SodaError(
            "--out is for answers, and those need --model; leave it out, or name the model."
        )
    if options.resume and (options.out is None or options.save_images is not None):
        raise SodaError(
            "--resume continues answers that go to a file: give --out, and no --save-images."
        )
    adaptor, folder = saved_adaptor(options.adaptor)
    images = images_from(options)
    box = None if options.model is None else deployed(options, folder)
    with answers_kept(options, images, adaptor, box) as kept:
        if options.save_images:
            save_images(options, images, adaptor)
        if box is not None:
            ask(options, images, adaptor, box, kept)
        elif options.json:
            print(json.dumps({"images": len(images), "saved": options.save_images, "queries": 0}))
        else:
            print(f"{len(images):,} adapted images -> {options.save_images}", file=sys.stderr)
    return 0


@contextmanager
def answers_kept(
    options: argparse.Namespace, images: Images, adaptor: Adaptor, box: Box | None
) -> Iterator[Path | None]:
    """Where answers are kept until all are there, beside the file they will end in: what is paid outlives a kill.

    Its name says what they are answers to, so that none of other images, another adaptor or another model is taken.
    Nobody else writes to it until the block ends.
    """
    if box is None or options.out is None:
        yield None
        return
    out = Path(options.out)
    if out.is_dir():
        raise SodaError(f"{out} is a directory; --out is the CSV file to write.")
    if out.exists() and not (options.force or options.resume):
        raise SodaError(f"{out} exists; choose another name, or add --force.")
    make_folder(out.parent)
    told = json.dumps([images.fingerprint(), adaptor.kind, adaptor.settings, box.card()]).encode()
    digest = hashlib.sha256(told + adaptor.parameters.tobytes()).hexdigest()[:12]
    partial = out.with_name(f"{out.name}.{digest}.partial")
    try:
        partial.touch()  # whether it can be written is known before anything is paid
    except OSError as error:
        raise SodaError(
            f"{out} cannot be written: {error.strerror}; choose another --out."
        ) from error
    with alone(
        partial,
        f"another process is getting these answers to {out}; wait for it, or give another --out.",
    ):
        try:
            if options.resume and not paid(partial):
                raise SodaError(
                    f"there is nothing of these images, this adaptor and this model to continue beside {out}."
                )
            if out.exists() and not options.force:
                raise SodaError(
                    f"{out} exists and holds other answers; move it away, or add --force."
                )
            if paid(partial) and not options.resume:
                words = "; leave --save-images out" if options.save_images else ""
                raise SodaError(
                    f"{partial} holds answers that are paid: go on with --resume{words}, or remove it."
                )
            yield partial
        finally:
            if not paid(partial):
                partial.unlink(missing_ok=True)
                book_of(partial).unlink(missing_ok=True)


def paid(partial: Path) -> bool:
    return partial.exists() and partial.stat().st_size > 0


def book_of(partial: Path) -> Path:
    """Where every query is written down before it is asked: one that a kill lost was paid all the same."""
    return partial.with_name(f"{partial.name}.ledger")


def ask(
    options: argparse.Namespace, images: Images, adaptor: Adaptor, box: Box, kept: Path | None
) -> None:
    from soda_tta.engine.passes import Stopped, answer_all
    from soda_tta.engine.plan import Plan

    ledger = Ledger(book=None if kept is None else book_of(kept))
    try:
        with Interrupt() as interrupt, Display(quiet=options.json) as display:
            display(Planned(Plan(len(images), 0, (), {"serve": len(images)}, None, False), ledger))
            answers = answer_all(
                images, adaptor, Metered(box, ledger, "serve"), kept, interrupt, display
            )
    except Stopped:
        raise KeyboardInterrupt(how_to_go_on(options, kept, "Nothing paid is lost")) from None
    except KeyboardInterrupt:  # the second, in the middle of a request
        raise KeyboardInterrupt(how_to_go_on(options, kept, ANSWERED)) from None
    except BoxError as error:
        raise BoxError(f"{error}\n{how_to_go_on(options, kept, ANSWERED)}".rstrip()) from error
    report(options, images, answers, ledger.total)
    if kept is not None:
        kept.unlink(missing_ok=True)
        book_of(kept).unlink(missing_ok=True)


def how_to_go_on(options: argparse.Namespace, kept: Path | None, known: str) -> str:
    """The command, if any answer is kept; images that were to be saved were so before the first was asked for."""
    if kept is None or not paid(kept):
        return ""
    words = [
        word
        for word in options.given
        if word not in ("--resume", f"--save-images={options.save_images}")
    ]
    if "--save-images" in words:
        place = words.index("--save-images")
        del words[place : place + 2]
    return f"{known}; continue with: {shlex.join(['soda-tta', *words, '--resume'])}"


def deployed(options: argparse.Namespace, run: Path) -> Box:
    """The model; what it was told when the adaptor was learnt holds unless something else is stated.

    Another model is told the same, but for what it says itself: an edited function is another one, and so is a file
    that was trained anew.
    """
    from soda_tta.engine.run import read_card

    if not (run / "run.json").exists():
        return model_from(options)
    learnt = read_card(run)["box"]
    every = {
        **(learnt.get("input") or {}),
        "logits": learnt.get("logits"),
        "partial": learnt.get("partial"),
    }
    try:
        box = model_from(told_too(options, {name: every.get(name) for name in CARRIED}))
    except BoxUnavailable:
        raise
    except BoxError:
        box = model_from(options)  # another model need not bear what that one was told
    if box.fingerprint() == learnt["fingerprint"]:
        return box
    told = carried_over(learnt, box.declared)
    if box.declared:
        box = model_from(told_too(options, told))
    taken = as_options(
        {name: value for name, value in told.items() if getattr(options, name) is None}
    )
    left = as_options(dict.fromkeys(sorted(unusual(learnt).keys() - told.keys()), True))
    words = [f"taken over from the run: {' '.join(taken)}"] if taken else []
    words += (
        ["if it normalises by itself, state --mean 0 --std 1"]
        if {"--mean", "--std"} & set(taken)
        else []
    )
    words += [f"as the model says itself and not as in the run: {' '.join(left)}"] if left else []
    say(
        "; ".join(
            ["this is not the model the adaptor was learnt for, or not at the same address", *words]
        )
        + "."
    )
    return box


def told_too(options: argparse.Namespace, facts: dict[str, Any]) -> argparse.Namespace:
    """The options, with these facts where nothing is stated."""
    return argparse.Namespace(
        **{**vars(options), **{n: v for n, v in facts.items() if getattr(options, n) is None}}
    )


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
        writer.writerows(
            [n, c, f"{p:.6f}"] for n, c, p in zip(names, classes, confidence, strict=True)
        )
        text = buffer.getvalue()
    if options.out is None:
        sys.stdout.write(text)
    else:
        write_text(Path(options.out), text)
        print(f"{len(names):,} answers, {queries:,} queries -> {options.out}", file=sys.stderr)


def save_images(options: argparse.Namespace, images: Images, adaptor: Adaptor) -> None:
    folder = Path(options.save_images)
    places = places_for(folder, images)
    with Bar("saving", quiet=options.json) as bar:
        for start in range(0, len(images), images.at_once):
            adapted = adaptor(images[slice(start, start + images.at_once)])
            for place, pixels in zip(places[start : start + len(adapted)], adapted, strict=True):
                with replacing(folder / place) as temporary:
                    Image.fromarray(np.rint(pixels.transpose(1, 2, 0) * 255).astype(np.uint8)).save(
                        temporary, "PNG"
                    )
            bar.reach(start + len(adapted), len(images))


def places_for(folder: Path, images: Any) -> list[PurePath]:
    """Where each adapted image goes; refuses to write over anything, or two images to one place."""
    from soda_tta.data.write import check_free, distinct

    check_free(folder)
    names = [PurePath(images.name(index)) for index in range(len(images))]
    return distinct([name.with_suffix(".png") for name in names], names)
