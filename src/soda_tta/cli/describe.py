"""Print a description of a REST API, as a TOML file to fill in and to pass as --model."""

from __future__ import annotations

import argparse
import json
from typing import Any

from soda_tta.cli.display import print_columns
from soda_tta.cli.options import add_json

EPILOG = """examples:
  soda-tta describe
  soda-tta describe hugging-face > api.toml
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "describe",
        help="print a description of a REST API, to fill in and to pass as --model",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="an API (default: list them)")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print one description, or the list of all."""
    from soda_tta.box.shipped import shipped_description, shipped_descriptions

    if options.name is not None:
        text = shipped_description(options.name)
        shown = json.dumps({"name": options.name, "toml": text}) if options.json else text.rstrip()
        print(shown)
        return 0
    summaries = shipped_descriptions()
    if options.json:
        print(json.dumps([{"name": name, "summary": text} for name, text in summaries.items()]))
        return 0
    width = max(map(len, summaries))
    for name, text in summaries.items():
        print_columns(f"{name:<{width}}  ", text)
    return 0
