"""Export what a run has learned, to run without this package: the adaptor as an ONNX file, one ONNX
file from plain images to probabilities (--merge), or a model repository of Triton (--triton)."""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta.box.facts import FACTS, as_options, unusual
from soda_tta.cli.model_options import add_facts
from soda_tta.cli.options import add_json
from soda_tta.cli.spelling import complain
from soda_tta.errors import SodaError

if TYPE_CHECKING:
    from soda_tta.engine.export import Exported

EXAMPLES = """\
examples:
  soda-tta export runs/night night.onnx
  soda-tta export runs/night --merge model.onnx --out adapted.onnx
  soda-tta export runs/night --merge model.onnx --out adapted.onnx --takes float
  soda-tta export runs/night --merge model.onnx --triton repository/

The first file takes and returns NCHW RGB images in [0, 1]; the model behind it gets them as before.
With --merge, what was specified about the model for the run (--mean, --logits ...) is taken over
and becomes part of the file: it takes images of any size and returns probabilities.
Every file is checked in ONNX Runtime before it is kept.
"""
TAKES = {
    "uint8": "uint8 NHWC, RGB bytes",
    "float": "float32 NCHW, RGB in [0, 1]",
}
EXPORTED_FACTS = (*(name for name, fact in FACTS.items() if fact.flag is not None), "output")


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "export",
        help="export what a run has learned as ONNX: the adaptor alone, or with the model",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("adaptor", metavar="RUN", help="a run folder or an adaptor.safetensors")
    file = parser.add_argument("file", metavar="[FILE]", help="the ONNX file to write")
    file.required = False  # unlike nargs="?", this also allows options in front of FILE
    parser.add_argument("--out", metavar="FILE", help="the same as FILE")
    parser.add_argument(
        "--merge",
        metavar="MODEL",
        help="the ONNX file of the model, to be put behind the adaptor in the same file",
    )
    parser.add_argument(
        "--triton",
        metavar="DIR",
        help="write an ensemble into this model repository of Triton instead of one file; without "
        "--merge, of the ONNX file that the run was started with",
    )
    parser.add_argument(
        "--takes",
        choices=list(TAKES),
        help="images that the file takes: uint8 NHWC as cameras and decoders give them, or float "
        "NCHW in [0, 1]; both RGB (default: uint8)",
    )
    parser.add_argument(
        "--images",
        metavar="PATH",
        help="images to check the file with, besides random ones: a folder, or as for adapt",
    )
    parser.add_argument(
        "--views",
        type=int,
        metavar="V",
        help="with --merge: 1 computes the model once per image, without the mirror image that "
        "the run averaged over (default: as the run)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing files")
    add_json(parser)
    group = parser.add_argument_group("the model, where the facts of the run do not hold")
    add_facts(group)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Export, and print the largest deviation."""
    check(options)
    if options.merge is None and options.triton is None:
        return export_adaptor(options)
    return export_with_model(options)


def check(options: argparse.Namespace) -> None:
    """Refuse combinations of options that make no sense."""
    if options.file is not None and options.out is not None:
        raise SodaError("FILE and --out are the same; give one of them.")
    options.out = options.out or options.file
    if options.triton is not None and options.out is not None:
        raise SodaError("--triton writes a folder and --out a file; give one of them.")
    if options.triton is None and options.out is None:
        raise SodaError("name the file to write, for example: --out adapted.onnx.")
    if options.merge is None and options.triton is None:
        about_model = ("takes", "images", "views", *EXPORTED_FACTS)
        given = [name for name in about_model if is_given(options, name)]
        if given:
            flag = f"--{given[0].replace('_', '-')}"
            raise SodaError(f"{flag} is about the model; name it with --merge model.onnx.")


def is_given(options: argparse.Namespace, name: str) -> bool:
    """Whether the user specified an option."""
    return getattr(options, name) is not None


def export_adaptor(options: argparse.Namespace) -> int:
    """Write the adaptor alone."""
    from soda_tta.engine.saved import load_adaptor

    target = Path(options.out)
    if target.suffix.lower() != ".onnx":
        raise SodaError(
            f"{target} does not end in .onnx, and ONNX is the only format; write "
            f"{target.with_suffix('.onnx')}, and convert that file if you need another format."
        )
    if target.exists() and not options.force:
        raise SodaError(f"{target} already exists. Choose another name, or add --force.")
    saved = load_adaptor(options.adaptor)
    for text in saved.notices:
        complain(text)
    deviation = saved.adaptor.to_onnx(options.out)
    size = None if saved.card is None else saved.card.images["size"]
    facts = {"onnx": options.out, "largest_deviation": deviation, "learned_at_size": size}
    if options.json:
        print(json.dumps(facts))
        return 0
    print(
        f"{options.out}: checked with ONNX Runtime, "
        f"which deviates from PyTorch by at most {deviation:.1e}."
    )
    if not saved.adaptor.answering.is_plain:
        print(f"Not in this file, and part of the answers: {saved.adaptor.answering.describe()}.")
        print("Both are in the file that --merge writes, and in what apply does.")
    needed = [] if saved.card is None else as_options(unusual(saved.card.box))
    if needed:
        print(f"Not in this file, and still needed in front of the model: {' '.join(needed)}.")
    if size is not None:
        print(f"It was learned on images of {size[1]}x{size[0]}: resize images to that first.")
    return 0


def export_with_model(options: argparse.Namespace) -> int:
    """Write one file, or a model repository of Triton."""
    from soda_tta.cli.bar import Bar
    from soda_tta.engine.export import export_merged
    from soda_tta.engine.triton import export_triton

    model = options.merge or model_of_run(options.adaptor)
    export = export_merged if options.triton is None else export_triton
    with Bar("exporting", quiet=options.json) as bar:
        done = export(
            options.adaptor,
            model,
            options.out or options.triton,
            takes=options.takes or "uint8",
            images=options.images,
            views=options.views,
            force=options.force,
            progress=bar.reach,
            **{name: getattr(options, name) for name in EXPORTED_FACTS},
        )
    for text in done.notices:
        complain(text)
    if options.json:
        print(json.dumps(done.facts()))
    else:
        report(done, is_repository=options.triton is not None)
    return 0


def model_of_run(adaptor: str) -> str:
    """The ONNX file that the run was started with."""
    from soda_tta.engine.saved import load_adaptor

    card = load_adaptor(adaptor).card
    words = [] if card is None else card.command or []
    models = [word for flag, word in pairwise(words) if flag == "--model"]
    models += [word.removeprefix("--model=") for word in words if word.startswith("--model=")]
    if not models or not models[0].endswith(".onnx") or not Path(models[0]).is_file():
        raise SodaError(
            f"{adaptor} does not name an ONNX file of its model that is here; "
            "name it with --merge model.onnx."
        )
    return models[0]


def report(done: Exported, *, is_repository: bool) -> None:
    """Print what was written, and how it was checked."""
    what = f"the ensemble {done.path.name}" if is_repository else "the file"
    print(
        f"{done.path}: checked with ONNX Runtime on {done.images_checked} images; its "
        f"probabilities deviate from adaptor and model by at most {done.largest_deviation:.1e}."
    )
    shape = " x ".join(str(extent) for extent in done.shape)
    print(f"images: {TAKES[done.takes]}, {shape}; {what} needs no further preparation of them.")
    if done.learned_at_size is not None:
        height, width = done.learned_at_size
        print(f"It was learned on images of {width}x{height}.")
