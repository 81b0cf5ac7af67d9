"""Every command explains itself, and every command that prints for people has --json."""

import argparse
from collections.abc import Iterator

import pytest

from soda_tta.cli import build_parser

from .conftest import Soda

WITHOUT_JSON = {"completion"}  # its output is a script


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command and subcommand with its parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield child.prog.removeprefix("soda-tta "), child
                yield from commands(child)


PARSERS = dict(commands(build_parser()))
LEAVES = {name: parser for name, parser in PARSERS.items() if parser.get_default("run")}


@pytest.mark.parametrize("command", ["", *PARSERS])
def test_the_help_starts_with_the_usage(soda: Soda, command: str) -> None:
    done = soda(*command.split(), "--help")
    assert done.code == 0
    assert done.out.startswith(f"usage: soda-tta {command}".rstrip())


@pytest.mark.parametrize("command", LEAVES)
def test_every_option_has_a_help_text(command: str) -> None:
    for action in LEAVES[command]._actions:
        assert action.help, action.dest


@pytest.mark.parametrize("command", sorted(LEAVES.keys() - WITHOUT_JSON))
def test_every_output_for_people_has_json_beside_it(command: str) -> None:
    assert "--json" in LEAVES[command].format_help()


@pytest.mark.parametrize("command", PARSERS)
def test_examples_fit_a_terminal(command: str) -> None:
    for text in (PARSERS[command].description, PARSERS[command].epilog):
        assert all(len(line) <= 100 for line in (text or "").splitlines())


def test_the_command_needs_a_subcommand(soda: Soda) -> None:
    done = soda()
    assert done.code == 2 and "COMMAND" in done.err
