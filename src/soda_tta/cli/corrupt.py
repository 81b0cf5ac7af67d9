"""Write copies of images under one or more of the 19 corruptions."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from soda_tta.cli.image_options import add_images, reading_of
from soda_tta.cli.interrupt import stopped_like_ctrl_c
from soda_tta.cli.options import add_json

EXAMPLES = """\
examples:
  soda-tta corrupt --images photos/ --corruption fog --severity 3 --out foggy/
  soda-tta corrupt --images cifar10 --corruption all --layout cifar-c --out CIFAR-10-C/
  soda-tta corrupt --images imagenet/val --corruption all --severity all --layout imagenet-c \\
                   --out ImageNet-C/

An image depends on the seed and on its position in the set only. Existing files are never
overwritten.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "corrupt",
        help="write images under one of the 19 corruptions",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_images(parser, for_model=False)
    parser.add_argument(
        "--split", default="test", choices=["test", "train"], help="for data sets that have both"
    )
    parser.add_argument("--domain", metavar="NAME", help="for data sets that have domains")
    parser.add_argument(
        "--corruption",
        required=True,
        metavar="NAME",
        help="one of the 19, several separated by commas, or all",
    )
    parser.add_argument(
        "--severity",
        default="5",
        metavar="N",
        help="1 to 5 (default: 5), several separated by commas, or all",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--layout",
        default="folder",
        choices=["folder", "cifar-c", "imagenet-c"],
        help="folder: PNG files named as the originals (default); cifar-c: one .npy file with all "
        "five severities, and labels.npy; imagenet-c: corruption/severity/class/*.JPEG",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (default: 0)")
    parser.add_argument(
        "--frost", metavar="DIR", help="photographs of frost (default: frost is drawn)"
    )
    parser.add_argument(
        "--constants",
        choices=["cifar", "imagenet"],
        help="strength of the corruptions (default: cifar up to 64 pixels, else imagenet)",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the corrupted images and print what was done."""
    from soda_tta.cli.bar import Bar
    from soda_tta.data import load_dataset
    from soda_tta.data.corruption_names import CORRUPTIONS, SEVERITIES
    from soda_tta.data.write import write_corrupted

    corruptions = parse_choices(options.corruption, "corruption", CORRUPTIONS)
    severity = "all" if options.layout == "cifar-c" else options.severity
    numbers = parse_choices(severity, "severity", tuple(map(str, SEVERITIES)))
    severities = [int(number) for number in numbers]
    dataset = load_dataset(
        options.images,
        split=options.split,
        domain=options.domain,
        size=options.size,
        **reading_of(options),
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
        facts = {
            "images": len(dataset),
            "size": list(dataset.size),
            "resize": str(dataset.resize),
            **dataset.decoding(),
            "skipped": list(dataset.skipped),
            "layout": options.layout,
            "protocol": protocol(options, corruptions, severities, dataset.size),
            "written": list(map(str, written)),
            "seconds": round(seconds, 3),
        }
        print(json.dumps(facts))
    else:
        print(f"{dataset.title}: {total:,} corrupted images in {seconds:.1f} s -> {options.out}")
    return 0


def protocol(
    options: argparse.Namespace,
    corruptions: Sequence[str],
    severities: Sequence[int],
    size: tuple[int, int],
) -> dict[str, Any]:
    """What must be cited with a corrupted accuracy."""
    from soda_tta._version import __version__
    from soda_tta.data.corruptions.constants import constants_for

    return {
        "corruptions": list(corruptions),
        "severities": list(severities),
        "seed": options.seed,
        "constants": options.constants or constants_for(*size),
        "frost": options.frost or "drawn",
        "version": __version__,
    }


def parse_choices(text: str, what: str, choices: Sequence[str]) -> list[str]:
    """'all', or names separated by commas; fails for an unknown name."""
    from soda_tta.data.corruptions.checks import check_choice

    names = list(choices) if text == "all" else text.split(",")
    for name in names:
        check_choice(what, name, choices)
    return names
