"""`soda-tta corrupt`: write images as a camera in trouble would have taken them."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from soda_tta.cli.interrupt import stopped_like_ctrl_c
from soda_tta.cli.options import size

EXAMPLES = """\
examples:
  soda-tta corrupt --images photos/ --corruption fog --severity 3 --out foggy/
  soda-tta corrupt --images cifar10 --corruption all --layout cifar-c --out CIFAR-10-C/
  soda-tta corrupt --images imagenet/val --corruption all --severity all --layout imagenet-c --out ImageNet-C/

An image depends on the seed and on its position in the set, on nothing else. What exists is never written over.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "corrupt",
        help="write images under one of the 19 corruptions",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--images",
        required=True,
        metavar="DIR",
        help="a folder, a CSV, an .npz file, or a data set by name (cifar10)",
    )
    parser.add_argument(
        "--corruption",
        required=True,
        metavar="NAME",
        help="one of the 19, several by commas, or all",
    )
    parser.add_argument(
        "--severity", default="5", metavar="N", help="1 to 5 (default 5), several by commas, or all"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="where to write")
    parser.add_argument(
        "--layout",
        default="folder",
        choices=["folder", "cifar-c", "imagenet-c"],
        help="folder: PNG files named as the originals (default); cifar-c: one .npy with all five severities, and "
        "labels.npy; imagenet-c: corruption/severity/class/*.JPEG",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="everything random follows from it (default 0)",
    )
    parser.add_argument(
        "--frost", metavar="DIR", help="photographs of frost (default: frost is drawn)"
    )
    parser.add_argument(
        "--constants", choices=["cifar", "imagenet"], help="default: cifar up to 64 pixels"
    )
    parser.add_argument(
        "--size", type=size, metavar="S", help="resize every file first, e.g. 224 or 320x224"
    )
    parser.add_argument(
        "--split", default="test", choices=["test", "train"], help="of a data set that has both"
    )
    parser.add_argument("--domain", metavar="NAME", help="of a data set that has domains")
    parser.add_argument(
        "--json", action="store_true", help="print machine-readable JSON, nothing else"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from soda_tta._version import __version__
    from soda_tta.cli.bar import Bar
    from soda_tta.data import load_dataset
    from soda_tta.data.corruptions import CORRUPTIONS, SEVERITIES
    from soda_tta.data.corruptions.constants import constants_for
    from soda_tta.data.write import write_corrupted

    corruptions = chosen(options.corruption, "corruption", CORRUPTIONS)
    severity = "all" if options.layout == "cifar-c" else options.severity
    severities = [
        int(number) for number in chosen(severity, "severity", tuple(map(str, SEVERITIES)))
    ]
    dataset = load_dataset(
        options.images, split=options.split, domain=options.domain, size=options.size
    )
    began = time.perf_counter()
    total = len(dataset) * len(corruptions) * len(severities)
    with stopped_like_ctrl_c(), Bar("corrupting", total, quiet=options.json) as bar:
        written = write_corrupted(
            dataset,
            Path(options.out),
            corruptions,
            severities,
            options.layout,
            seed=options.seed,
            constants=options.constants,
            frost=None if options.frost is None else Path(options.frost),
            advance=bar.advance,
        )
    seconds = time.perf_counter() - began
    if options.json:
        protocol = {
            "corruptions": corruptions,
            "severities": severities,
            "seed": options.seed,
            "constants": options.constants or constants_for(*dataset.size),
            "frost": options.frost or "drawn",
            "version": __version__,
        }
        facts = {
            "images": len(dataset),
            "size": list(dataset.size),
            "layout": options.layout,
            "protocol": protocol,
        }
        print(
            json.dumps({**facts, "written": list(map(str, written)), "seconds": round(seconds, 3)})
        )
    else:
        print(f"{dataset.title}: {total:,} corrupted images in {seconds:.1f} s -> {options.out}")
    return 0


def chosen(text: str, what: str, known: Sequence[str]) -> list[str]:
    """'all', or names separated by commas."""
    from soda_tta.data.corruptions.checks import check_choice

    names = list(known) if text == "all" else text.split(",")
    for name in names:
        check_choice(what, name, known)
    return names
