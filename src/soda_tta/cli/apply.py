"""`soda-tta apply`: a saved adaptor on new images, one query an image."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from PIL import Image

from soda_tta.atomic import replacing, write_text
from soda_tta.box import Box
from soda_tta.cli.display import Display
from soda_tta.cli.options import add_images, add_model, images_from, model_from
from soda_tta.errors import SodaError
from soda_tta.events import Answered, Planned

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
    parser.add_argument("--save-images", metavar="DIR", help="write the adapted images as PNG; needs no model")
    parser.add_argument("--json", action="store_true", help="answers as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from soda_tta.adaptors import Adaptor
    from soda_tta.box import Ledger, Metered
    from soda_tta.plan import Plan

    if options.model is None and options.save_images is None:
        raise SodaError("give --model to get answers, or --save-images to get adapted images.")
    path = Path(options.adaptor)
    adaptor = Adaptor.load(path / "adaptor.safetensors" if path.is_dir() else path)
    folder = path if path.is_dir() else path.parent
    images = images_from(options)
    ledger = Ledger()
    box = None if options.model is None else Metered(deployed(options, folder), ledger, "serve")
    answers = []
    places = places_for(Path(options.save_images), images) if options.save_images else []
    with Display(quiet=options.json) as display:
        display(Planned(Plan(len(images), 0, (), {"serve": len(images)}, None, False), ledger))
        for start in range(0, len(images), 256):
            adapted = adaptor(images[slice(start, start + 256)])
            if options.save_images:
                save_images(Path(options.save_images), places[start : start + 256], adapted)
            if box is not None:
                answers.append(box(adapted))
            display(Answered("serve", start + len(adapted), len(images)))
    if box is not None:
        report(options, images, np.concatenate(answers), ledger.total)
    elif options.json:
        print(json.dumps({"images": len(images), "saved": options.save_images, "queries": 0}))
    return 0


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
            dict(image=n, label=c, confidence=round(p, 6)) for n, c, p in zip(names, classes, confidence, strict=True)
        ]
        text = json.dumps({"queries": queries, "answers": rows}) + "\n"
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
