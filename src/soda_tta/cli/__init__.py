"""The command `soda-tta`: one file a command, each thin."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn, TextIO

from soda_tta._version import __version__
from soda_tta.cli import (
    adapt,
    apply,
    bench,
    completion,
    corrupt,
    data,
    demo,
    doctor,
    export,
    methods,
    report,
)
from soda_tta.errors import SodaError

COMMANDS = (demo, doctor, adapt, apply, export, report, methods, corrupt, data, bench, completion)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, instead of all that would be right."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="soda-tta",
        description="Adapt the images, not the model: for image classifiers that answer only with probabilities.",
        epilog="Start with 'soda-tta demo'. Each command explains itself: soda-tta COMMAND --help.",
    )
    parser.add_argument("--version", action="version", version=f"soda-tta {__version__}")
    parser.add_argument(
        "--debug",
        action="store_true",
        help="show the whole trace of an error; also after a command",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_to(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given  # wherever it stands
    given = [word for word in given if word != "--debug"]
    options = build_parser().parse_args(given)
    warnings.showwarning = lambda message, *_, **__: print(f"soda-tta: {message}", file=sys.stderr)
    options.given = given
    try:
        return int(options.run(options))
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        sys.stderr.close()
        return 0
    except KeyboardInterrupt as interruption:
        print(f"soda-tta: interrupted. {interruption}", file=sys.stderr)
        return 130
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            print(
                "soda-tta: there is no room left where this was to be written; make some.",
                file=sys.stderr,
            )
            silence(sys.stdout)
            return 2
        expected = isinstance(error, SodaError)
        print(f"soda-tta: {error if expected else unexpected(error)}", file=sys.stderr)
        return 2 if expected else 70  # EX_SOFTWARE


def silence(stream: TextIO) -> None:
    """What could not be written is not tried again at the end of the process."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def unexpected(error: Exception) -> str:
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{what}. This is not your doing; run it again with --debug and report what it prints."
