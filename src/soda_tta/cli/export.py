"""Export an adaptor as an ONNX file that runs in front of the model without this package."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from soda_tta.cli.options import add_json
from soda_tta.cli.spelling import complain
from soda_tta.errors import SodaError


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "export",
        help="export a saved adaptor as an ONNX file to run in front of the model",
        description=__doc__,
        epilog="example: soda-tta export runs/night night.onnx",
    )
    parser.add_argument("adaptor", metavar="RUN", help="a run folder or an adaptor.safetensors")
    parser.add_argument(
        "onnx",
        metavar="FILE",
        help="the ONNX file to write; its input and output are NCHW RGB images in [0, 1]",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Export the adaptor and print the largest deviation from PyTorch."""
    from soda_tta.engine.saved import load_adaptor

    target = Path(options.onnx)
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
    deviation = saved.adaptor.to_onnx(options.onnx)
    size = None if saved.card is None else saved.card.images["size"]
    facts = {"onnx": options.onnx, "largest_deviation": deviation, "learned_at_size": size}
    if options.json:
        print(json.dumps(facts))
        return 0
    print(
        f"{options.onnx}: checked with ONNX Runtime, "
        f"which deviates from PyTorch by at most {deviation:.1e}."
    )
    if size is not None:
        print(f"It was learned on images of {size[1]}x{size[0]}: resize images to that first.")
    return 0
