"""List the methods, what they need and what they cost."""

from __future__ import annotations

import argparse
import json
from typing import Any

from soda_tta.cli.display import print_columns
from soda_tta.cli.options import add_json

IMAGES = 10_000  # the paper's number, for which costs are shown


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "methods", help="list the methods, what they need and what they cost", description=__doc__
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="one method: all its settings and what they mean"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    rows = method_rows(options.name)
    if options.json:
        print(json.dumps(rows))
        return 0
    width = max(len("method"), *(len(row["name"]) for row in rows))
    wide = max(len(row["needs"]) for row in rows)
    print(f"{'method':<{width}}  {'needs':<{wide}}  queries*  what it does")
    for row in rows:
        cost = f"{row['queries_per_image']:>8,.0f}"
        print_columns(f"{row['name']:<{width}}  {row['needs']:<{wide}}  {cost}  ", row["summary"])
    print(f"\n* per image, for {IMAGES:,} images and without a budget")
    if options.name is None:
        print("To see the settings of a method: soda-tta methods NAME")
    else:
        print_settings(rows[0])
    return 0


def method_rows(name: str | None) -> list[dict[str, Any]]:
    """Every method, or the one of this name, as JSON."""
    from soda_tta.engine.plan import plan_run
    from soda_tta.methods import all_methods, find_method

    chosen = list(all_methods().values()) if name is None else [find_method(name)]
    return [
        {
            "name": method.name,
            "needs": method.stated_needs,
            "queries_per_image": plan_run(method, IMAGES).queries_per_image,
            "of_images": IMAGES,
            "summary": method.summary,
            "settings": method.settings,
            "meanings": method.meanings,
        }
        for method in chosen
    ]


def print_settings(row: dict[str, Any]) -> None:
    """The settings of one method, with their meanings."""
    from soda_tta.settings import ALIASES

    settings = row["settings"]
    if not settings:
        print("\nThis method has no settings.")
        return
    print("\nSettings (change one with --set NAME=VALUE):")
    shown = {name: f"{name} ({letter})" for letter, name in ALIASES.items()}
    widest = max(len(str(value)) for value in settings.values())
    for name, value in settings.items():
        margin = f"  {shown.get(name, name):<16} {value!s:<{widest}}  "
        print_columns(margin, row["meanings"][name])
