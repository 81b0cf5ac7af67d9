"""`soda-tta report`: one page a person can look at after a run, or after a bench."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from soda_tta.cli.adapt import price
from soda_tta.cli.display import table

EXAMPLES = """\
examples:
  soda-tta report runs/night                                     writes runs/night/report.html
  soda-tta report runs/night --images night/ --labels labels.csv --price 1.5
  soda-tta report runs/a runs/b runs/c --out compared.html       side by side
  soda-tta report results/cifar10                                a bench store: tables and curves

Nothing is asked of the model. The page is one file that loads nothing: send it, print it, keep it.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="write one page about a run, several runs or a bench store",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="a run directory, finished or not; or one bench store",
    )
    parser.add_argument(
        "--images", metavar="DIR", help="the images of the run, to show those that changed most"
    )
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="true classes, of all images or some: .csv (file,label), .txt, .npy, .npz, class folders or a data set",
    )
    parser.add_argument(
        "--classes", metavar="FILE", help="names of the model's classes, one a line, in its order"
    )
    parser.add_argument(
        "--price", type=price, metavar="P", help="money a thousand queries, to print costs"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the page (default RUN/report.html; of several, compared.html)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print what the page says as JSON, nothing else"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from soda_tta.report import write_report

    several = len(options.runs) > 1
    out = options.out or ("compared.html" if several else Path(options.runs[0]) / "report.html")
    made = write_report(
        options.runs,
        out,
        images=options.images,
        labels=options.labels,
        classes=options.classes,
        price=options.price,
    )
    if options.json:
        print(json.dumps({"page": str(made.path), **made.facts}))
        return 0
    for facts in made.facts.get("runs", [made.facts]):
        for sentence in facts.get("headline", []):
            print(sentence)
        for sentence in facts.get("missing", []):
            print(f"note: {sentence}")
    print(table([("page", made.path)]))
    return 0
