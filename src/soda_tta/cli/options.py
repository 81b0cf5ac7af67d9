"""Options that many commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from soda_tta.box.price import Price
from soda_tta.errors import MethodError


def argument_type(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """The same function, with a ValueError as the error message of the command line."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def at_least_one(text: str) -> int:
    """A whole number, such as that of --jobs."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def add_json(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add --json, which every command that prints for people has."""
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def add_price(group: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add --price, the same for every command that prints costs."""
    group.add_argument(
        "--price",
        type=argument_type(Price.parse),
        metavar="P",
        help="price, to print costs: per 1,000 queries, or as '0.002 per call' or '2.10 per hour' "
        "(default: that of the model's description, if it has one)",
    )


def settings_from(pairs: list[str]) -> dict[str, str]:
    """['q=10', 'lr=auto'] as a dictionary."""
    settings = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not (name and sign and value):
            raise MethodError(f"--set takes NAME=VALUE, such as q=10; got {pair!r}.")
        settings[name] = value
    return settings
