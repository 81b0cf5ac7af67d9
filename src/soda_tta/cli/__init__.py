"""The command `soda-tta`: one file per command, each thin: parse, call the library, print."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
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
    conditions,
    corrupt,
    data,
    demo,
    describe,
    doctor,
    export,
    judge,
    methods,
    report,
    serve,
    simulate,
)
from soda_tta.cli.spelling import complain
from soda_tta.devices import CPU, using_device
from soda_tta.errors import SodaError

COMMANDS = (
    *(demo, doctor, adapt, judge, apply, serve, simulate, export, report),
    *(methods, describe, conditions, corrupt, data, bench, completion),
)
NO_SPACE = "No space left on device: free some and run again"
UNEXPECTED = 70  # EX_SOFTWARE: a bug of ours


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, instead of listing everything that would be right."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with status 2."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    parser = Parser(
        prog="soda-tta",
        description="Adapt the images, not the model: for image classifiers that return only "
        "probabilities.",
        epilog="Start with 'soda-tta demo'. Each command explains itself: soda-tta COMMAND --help.",
    )
    parser.add_argument("-V", "--version", action="version", version=f"soda-tta {__version__}")
    parser.add_argument(
        "--debug", action="store_true", help="show the traceback of an error; also after a command"
    )
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    for module in COMMANDS:
        module.add_to(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words  # wherever it stands
    words = [word for word in words if word != "--debug"]
    show_any_character(sys.stdout)
    parser = build_parser()
    options = parser.parse_args(words)
    options.parser = parser
    options.words = words
    warnings.showwarning = lambda message, *_, **__: complain(str(message))
    try:
        with using_device(getattr(options, "device", None) or CPU):
            return int(options.run(options))
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        sys.stderr.close()
        return 0
    except KeyboardInterrupt as interruption:
        complain(f"interrupted. {interruption}")
        return 130
    except Exception as error:
        if debug:
            raise
        return failed(error, resumable=hasattr(options, "resume"))


def failed(error: Exception, *, resumable: bool) -> int:
    """Print what went wrong in one line; returns the exit status.

    Parameters
    ----------
    error : what was raised.
    resumable : whether the command has the option --resume.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        complain(f"{NO_SPACE} with --resume." if resumable else f"{NO_SPACE}.")
        silence(sys.stdout)
        return 2
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        complain(f"{error.filename}: {error.strerror}; check this file or folder and run again.")
        return 2
    if isinstance(error, SodaError):
        complain(str(error))
        return 2
    text = " ".join(f"{type(error).__name__}: {error}".split())
    complain(f"{text}. This is a bug in soda-tta; run again with --debug and report the traceback.")
    return UNEXPECTED


def show_any_character(stream: TextIO) -> None:
    """Print what the encoding of a stream lacks as escapes, instead of failing after the work."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def silence(stream: TextIO) -> None:
    """Keep Python from writing again at its end what could not be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
