"""`soda-tta methods`: every method, what it needs and what it costs."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "methods", help="list the methods, what they need and what they cost", description=__doc__
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="one method: every number of it and what it means"
    )
    parser.add_argument(
        "--json", action="store_true", help="print machine-readable JSON, with every number"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from soda_tta.engine.plan import plan_run
    from soda_tta.methods import all_methods, find_method
    from soda_tta.methods.loop_method import ALIASES
    from soda_tta.methods.meanings import meanings

    images = 10_000  # as in the paper
    chosen = list(all_methods().values()) if options.name is None else [find_method(options.name)]
    rows: list[dict[str, Any]] = [
        {
            "name": recipe.name,
            "needs": recipe.needs,
            "queries_per_image": plan_run(recipe, images).queries_per_image,
            "of_images": images,
            "summary": recipe.summary,
            "settings": recipe.settings,
            "meanings": meanings(recipe),
        }
        for recipe in chosen
    ]
    if options.json:
        print(json.dumps(rows))
        return 0
    width = max(len("method"), *(len(row["name"]) for row in rows))
    print(f"{'method':<{width}} {'needs':<14} {'queries an image':>16}  what it does")
    for row in rows:
        print(
            f"{row['name']:<{width}} {row['needs']:<14} {row['queries_per_image']:>16,.0f}  {row['summary']}"
        )
    print(f"\nQueries an image: of {images:,} images, without a budget.")
    if options.name is None:
        print("The settings of one of them: soda-tta methods NAME")
        return 0
    settings, meant = rows[0]["settings"], rows[0]["meanings"]
    print(
        "\nIts settings; change one with --set NAME=VALUE:" if settings else "\nIt has no settings."
    )
    short = {name: f"{name} ({letter})" for letter, name in ALIASES.items()}
    widest = max((len(str(value)) for value in settings.values()), default=0)
    for name, value in settings.items():
        print(f"  {short.get(name, name):<16} {value!s:<{widest}}  {meant[name]}".rstrip())
    return 0
