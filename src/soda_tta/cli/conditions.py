"""Show which conditions a folder of images has: noisy, blurred, dark. No model, no query.

The conditions are told apart by the pixels: noise, sharpness, contrast, brightness and the like.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta.cli.image_options import add_images, add_sample, images_from
from soda_tta.cli.options import add_json, at_least_one
from soda_tta.errors import SodaError
from soda_tta.wording import counted

if TYPE_CHECKING:
    from soda_tta.conditions import Conditions
    from soda_tta.data import Images

EPILOG = """\
examples:
  soda-tta conditions --images frames/
  soda-tta conditions --images frames/ --csv conditions.csv --sheet conditions.png
  soda-tta conditions --images frames/ --condition-by folder --count 3 --json
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "conditions",
        help="show which conditions (noisy, blurred, dark ...) a folder of images has",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_images(parser)
    group = parser.add_argument_group("the conditions")
    group.add_argument(
        "--count",
        type=at_least_one,
        metavar="K",
        help="number of conditions (default: as many as can be told apart)",
    )
    group.add_argument(
        "--condition-by",
        metavar="RULE",
        help="what is known about them: folder, csv:COLUMN, exif:TAG or name:REGEX; each is split "
        "further where its images differ (into K with --count)",
    )
    add_sample(group, "measure")
    group.add_argument("--csv", metavar="FILE", help="write the condition of each image")
    group.add_argument("--sheet", metavar="FILE", help="write a picture with typical images")
    group.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (default: 0)")
    group.add_argument("--force", action="store_true", help="overwrite existing files")
    add_json(group)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Find the conditions, write what was asked for, and print them."""
    from soda_tta.cli.bar import Bar
    from soda_tta.conditions import find_conditions
    from soda_tta.data.grouping import groups_from_rule

    for name in (options.csv, options.sheet):
        if name is not None and Path(name).exists() and not options.force:
            raise SodaError(f"{name} already exists. Choose another name, or add --force.")
    images = images_from(options)
    if options.count is not None and options.count > len(images):
        raise SodaError(
            f"--count {options.count} is not valid for {counted(len(images), 'image')}; use a "
            "number up to that, or leave it out."
        )
    groups = groups_from_rule(images, options.condition_by)
    with Bar("measuring images", quiet=options.json) as bar:
        found = find_conditions(
            images,
            conditions=options.count or "auto",
            groups=groups,
            seed=options.seed,
            progress=bar.reach,
        )
    if options.csv is not None:
        write_table(Path(options.csv), images, found)
    if options.sheet is not None:
        from soda_tta.conditions.sheet import draw_sheet

        draw_sheet(images, found).save(options.sheet)
    if options.json:
        print(json.dumps(found.facts()))
    else:
        show(options, found)
    return 0


def write_table(path: Path, images: Images, found: Conditions) -> None:
    """One line per image: its name, its condition, and how far it is from it."""
    from soda_tta.storage.atomic import replacing

    with (
        replacing(path) as temporary,
        temporary.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file,
    ):
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["image", "condition", "distance", "familiar"])
        rows = zip(found.of_each, found.distances, found.unfamiliar, strict=True)
        for index, (condition, distance, unfamiliar) in enumerate(rows):
            familiar = "no" if unfamiliar else "yes"
            table.writerow([images.name(index), condition, f"{distance:.3f}", familiar])


def show(options: argparse.Namespace, found: Conditions) -> None:
    """Print the conditions for a person."""
    total = len(found.of_each)
    print(f"{options.images}: {counted(total, 'image')}, {counted(len(found), 'condition')}")
    for place, (words, size) in enumerate(zip(found.words, found.sizes(), strict=True)):
        print(f"  {place}  {size / total:>4.0%}  {size:>7,}  {words}")
    unfamiliar = int(found.unfamiliar.sum())
    if unfamiliar:
        print(f"  {counted(unfamiliar, 'image')} unlike all of them")
    for path in (options.csv, options.sheet):
        if path is not None:
            print(f"written: {path}")
