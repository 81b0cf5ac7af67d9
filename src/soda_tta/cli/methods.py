"""`soda-tta methods`: every method, what it needs and what it costs."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "methods", help="list the methods, what they need and what they cost", description=__doc__
    )
    parser.add_argument("--json", action="store_true", help="print machine-readable JSON, with every number")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from soda_tta.plan import plan_run
    from soda_tta.recipes import methods

    rows = [
        {
            "name": recipe.name,
            "needs": recipe.needs,
            "queries_an_image": plan_run(recipe, images=10_000).queries_an_image,
            "summary": recipe.summary,
            "numbers": recipe.numbers(),
        }
        for recipe in methods().values()
    ]
    if options.json:
        print(json.dumps(rows))
        return 0
    print(f"{'method':<12} {'needs':<14} {'queries an image':>16}  what it does")
    for row in rows:
        print(f"{row['name']:<12} {row['needs']:<14} {row['queries_an_image']:>16,.0f}  {row['summary']}")
    print("\nChange a number with --set NAME=VALUE: " + ", ".join(rows[1]["numbers"]))  # type: ignore[arg-type]
    return 0
