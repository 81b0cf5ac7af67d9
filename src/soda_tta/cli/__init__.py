"""The command `soda-tta`: one file a command, each thin."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from soda_tta._version import __version__
from soda_tta.cli import adapt, apply, bench, corrupt, data, demo, export, methods
from soda_tta.errors import SodaError

COMMANDS = (demo, adapt, apply, export, methods, corrupt, data, bench)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="soda-tta",
        description="Adapt the images, not the model: for image classifiers that answer only with probabilities.",
        epilog="Start with 'soda-tta demo'. Each command explains itself: soda-tta COMMAND --help.",
    )
    parser.add_argument("--version", action="version", version=f"soda-tta {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the whole trace of an error")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_to(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = build_parser().parse_args(given)
    options.given = given
    try:
        return int(options.run(options))
    except SodaError as error:
        if options.debug:
            raise
        print(f"soda-tta: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interruption:
        print(f"soda-tta: interrupted. {interruption}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        sys.stderr.close()
        return 0
