"""`soda-tta apply` with a folder as --out: an archive of any size, as Parquet."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from soda_tta.cli.engine_options import add_engine
from soda_tta.cli.interrupt import Interrupt
from soda_tta.cli.model_options import model_options
from soda_tta.cli.options import at_least_one
from soda_tta.cli.spelling import complain
from soda_tta.errors import SodaError
from soda_tta.wording import counted

if TYPE_CHECKING:
    from soda_tta.scale.backend import Backend
    from soda_tta.scale.manifest import Summary

ONLY_ARCHIVES = (".parquet", ".tar", ".tar.gz", ".tgz")
FOLDER = "write to a folder, such as --out answers/"


def add_archive(parser: argparse.ArgumentParser) -> None:
    """Add the options of answers in a folder."""
    group = parser.add_argument_group("an archive: --out is a folder or an address, --images also")
    group.add_argument(
        "--all-probabilities",
        action="store_true",
        help="also write the probabilities of all classes",
    )
    group.add_argument(
        "--shard-size",
        type=at_least_one,
        metavar="N",
        help="image files per file of answers (default: 5000); a tar file is one, and so is a row "
        "group of a Parquet file",
    )
    add_engine(group, jobs="this process alone, with all its threads")


def is_archive(options: argparse.Namespace) -> bool:
    """Whether --out is a folder; what makes sense only then is refused otherwise."""
    out = options.out or ""
    if out.endswith("/") or "://" in out:
        check(options)
        return True
    given = {
        "--all-probabilities": options.all_probabilities,
        "--shard-size": options.shard_size is not None,
        "--backend": options.backend != "local",
        "--address": options.address is not None,
        "--jobs": options.jobs is not None,
    }
    for flag, is_given in given.items():
        if is_given:
            raise SodaError(f"{flag} is for archives; {FOLDER}.")
    if "://" in options.images or options.images.lower().endswith(ONLY_ARCHIVES):
        raise SodaError(f"{options.images} is an archive; {FOLDER}.")
    return False


def check(options: argparse.Namespace) -> None:
    """Refuse options that make no sense for an archive."""
    if options.model is None:
        raise SodaError("give --model to get answers.")
    if options.save_images is not None:
        raise SodaError("--save-images is for answers in a file; give --out answers.csv.")
    if options.force:
        raise SodaError("--force is for answers in a file; choose another folder, or --resume.")


def answer_archive(options: argparse.Namespace) -> int:
    """Answer an archive and print what came of it."""
    facts = {"out": options.out, **asdict(answered(options))}
    if options.json:
        print(json.dumps(facts))
    else:
        print_answers(facts)
    return 0


def answered(options: argparse.Namespace) -> Summary:
    """Answer an archive; an interruption says how to continue."""
    from soda_tta.cli.bar import Bar
    from soda_tta.engine.events import Event, Notice
    from soda_tta.scale.archive import SHARD_SIZE, apply_archive

    def listen(event: Event) -> None:
        if isinstance(event, Notice):
            complain(event.text)

    try:
        with (
            engine_from(options) as backend,
            Interrupt() as interrupt,
            Bar("shards", quiet=options.json) as bar,
        ):
            summary = apply_archive(
                options.adaptor,
                options.images,
                options.model,
                options.out,
                resume=options.resume,
                size=options.size,
                over=options.over,
                all_probabilities=options.all_probabilities,
                shard_size=options.shard_size or SHARD_SIZE,
                backend=backend,
                stop=interrupt,
                listener=listen,
                progress=bar.reach,
                **model_options(options),
            )
    except KeyboardInterrupt:  # the second, in the middle of a shard
        raise KeyboardInterrupt(how_to_continue(options)) from None
    if not summary.complete:
        raise KeyboardInterrupt(how_to_continue(options))
    return summary


def print_answers(facts: dict[str, Any]) -> None:
    """Print what came of the answers for a person."""
    unread = f", {counted(facts['errors'], 'image')} not readable" if facts["errors"] else ""
    files = f", {counted(facts['shards'], 'file')}" if "shards" in facts else ""
    answers = counted(facts["images"], "answer")
    queries = counted(facts["queries"], "query", "queries")
    print(f"{answers}{unread}, {queries}{files} -> {facts['out']}", file=sys.stderr)


def engine_from(options: argparse.Namespace) -> Backend:
    """Where the shards are answered: in this process, unless more is asked for."""
    from soda_tta.scale.backend import Here
    from soda_tta.scale.backends import find_backend

    if (options.backend, options.address, options.jobs) == ("local", None, None):
        return Here()
    return find_backend(options.backend, options.address, options.jobs)


def how_to_continue(options: argparse.Namespace) -> str:
    """The command that continues."""
    words = [word for word in options.words if word != "--resume"]
    command = shlex.join(["soda-tta", *words, "--resume"])
    return f"Finished shards are kept; continue with: {command}"
