"""Print a script with which a shell completes commands, options and choices.

The script is made from the parser itself, so it is always up to date. It is static: the shell
never starts Python.
"""

from __future__ import annotations

import argparse
from typing import Any

EXAMPLES = """\
examples:
  soda-tta completion bash > ~/.local/share/bash-completion/completions/soda-tta
  soda-tta completion zsh  > ~/.zfunc/_soda-tta    and in ~/.zshrc: fpath+=~/.zfunc; compinit
  soda-tta completion fish > ~/.config/fish/completions/soda-tta.fish
"""
SHELLS = ("bash", "zsh", "fish")
FILES = ("DIR", "FILE", "RUN", "MODEL", "PATH")  # metavars of arguments that are paths


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "completion",
        help="print a completion script for bash, zsh or fish",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=list(SHELLS), metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    import shtab

    complete_paths(options.parser)
    print(shtab.complete(options.parser, options.shell))
    return 0


def complete_paths(parser: argparse.ArgumentParser) -> None:
    """Let the shell complete file names where an argument is a path."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                complete_paths(child)
        elif action.metavar in FILES and action.choices is None:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
