"""Write one HTML page about a run, several runs or a bench store."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from soda_tta.cli.display import table
from soda_tta.cli.image_options import add_clean_accuracy
from soda_tta.cli.options import add_json, add_price
from soda_tta.foreign_text import printable

EXAMPLES = """\
examples:
  soda-tta report runs/night                                     writes runs/night/report.html
  soda-tta report runs/night --images night/ --labels labels.csv --price 1.5
  soda-tta report runs/a runs/b runs/c --out compared.html       side by side
  soda-tta report results/cifar10                                a bench store: tables and curves

The model is not queried. The page is a single file that loads nothing, so it can be sent,
printed and archived.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "report",
        help="write an HTML page about a run, several runs or a bench store",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="a run folder, finished or not; or one bench store",
    )
    parser.add_argument(
        "--images", metavar="DIR", help="the images of the run, to show those that changed most"
    )
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="true classes of all images or of some: a .csv (file,label), .txt, .npy or .npz file, "
        "class folders, or a data set",
    )
    parser.add_argument(
        "--classes",
        metavar="FILE",
        help="names of the model's classes, one per line, in the model's order",
    )
    parser.add_argument(
        "--clean",
        metavar="RUN",
        help="a run on clean images (adapt --method deployed), for runs made without --clean",
    )
    add_clean_accuracy(parser)
    add_price(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the page (default: RUN/report.html, or compared.html for several runs)",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the page and print its headline."""
    from soda_tta.report import write_report

    if options.out:
        out = Path(options.out)
    elif len(options.runs) > 1:
        out = Path("compared.html")
    else:
        out = Path(options.runs[0]) / "report.html"
    report = write_report(
        options.runs,
        out,
        images=options.images,
        labels=options.labels,
        classes=options.classes,
        price=options.price,
        clean=options.clean,
        clean_accuracy=options.clean_accuracy,
    )
    if options.json:
        print(json.dumps({"page": str(report.path), **report.facts}))
        return 0
    for facts in report.facts.get("runs", [report.facts]):
        for sentence in facts.get("headline", []):
            print(printable(sentence))
        for sentence in facts.get("missing", []):
            print(f"note: {printable(sentence)}")
    print(table([("page", report.path)]))
    return 0
