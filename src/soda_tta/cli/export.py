"""`soda-tta export`: an adaptor as an ONNX file that runs in front of the model anywhere, without this package."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from soda_tta.errors import SodaError


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "export",
        help="write a saved adaptor as an ONNX file to run in front of the model",
        description=__doc__,
        epilog="example: soda-tta export runs/night night.onnx",
    )
    parser.add_argument("adaptor", metavar="RUN", help="a run directory or an adaptor.safetensors")
    parser.add_argument(
        "onnx",
        metavar="FILE",
        help="the ONNX file to write; images in [0, 1], NCHW, RGB, both ways",
    )
    parser.add_argument("--force", action="store_true", help="write over a file that exists")
    parser.add_argument("--json", action="store_true", help="print machine-readable JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    target = Path(options.onnx)
    if target.exists() and not options.force:
        raise SodaError(f"{target} exists; choose another name, or add --force.")
    from soda_tta.engine.saved import load_adaptor

    saved = load_adaptor(options.adaptor)
    for text in saved.notices:
        print(f"soda-tta: {text}", file=sys.stderr)
    deviation = saved.adaptor.to_onnx(options.onnx)
    if options.json:
        print(json.dumps({"onnx": options.onnx, "largest_deviation": deviation}))
    else:
        print(f"{options.onnx}: checked in ONNX Runtime, at most {deviation:.1e} from PyTorch.")
    return 0
