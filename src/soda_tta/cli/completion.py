"""`soda-tta completion`: what a shell needs to complete commands, options, choices and file names.

The script is made from the parser itself, so it cannot fall behind; it is static, so the shell never starts Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = """\
examples:
  soda-tta completion bash > ~/.local/share/bash-completion/completions/soda-tta
  soda-tta completion zsh  > ~/.soda-tta.zsh       and in ~/.zshrc: source ~/.soda-tta.zsh
  soda-tta completion fish > ~/.config/fish/completions/soda-tta.fish
"""


def add_to(commands: Any) -> None:
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
    from soda_tta.cli import build_parser

    print(SHELLS[options.shell](list(commands_of(build_parser()))), end="")
    return 0


@dataclass
class Command:
    """Words that lead to a parser (none: the top), and what may follow them."""

    words: tuple[str, ...]
    below: list[str] = field(default_factory=list)  # further commands
    options: dict[str, str] = field(default_factory=dict)  # with their help
    choices: dict[str, list[str]] = field(
        default_factory=dict
    )  # of options that take one of a few values


def commands_of(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[Command]:
    command = Command(words, options={"--debug": "show the whole trace of an error"})
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            command.below = list(action.choices)
            for name, child in action.choices.items():
                yield from commands_of(child, (*words, name))
        elif not action.option_strings and action.choices is not None:
            command.below = [str(choice) for choice in action.choices]
        for option in action.option_strings:
            command.options[option] = (action.help or "").replace("%%", "%")
            if action.choices is not None:
                command.choices[option] = [str(choice) for choice in action.choices]
    yield command


def bash(commands: list[Command]) -> str:
    """Plain enough for a Mac's bash, and for zsh: the words so far lead to a place, which knows what may follow."""
    places = {" ".join(["soda-tta", *command.words]): command for command in commands}
    known = "|".join(f'"{place}"' for place in places if " " in place)
    values = "".join(
        f'        "{place}:{option}") COMPREPLY=($(compgen -W "{" ".join(choices)}" -- "$current")); return ;;\n'
        for place, command in places.items()
        for option, choices in command.choices.items()
    )
    following = "".join(
        f'        "{place}") below="{" ".join(command.below)}" options="{" ".join(command.options)}" ;;\n'
        for place, command in places.items()
    )
    return f"""\
_soda_tta() {{
    local place="soda-tta" word below="" options="" number=1
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    while [ "$number" -lt "$COMP_CWORD" ]; do
        word="${{COMP_WORDS[number]}}" number=$((number + 1))
        case "$place $word" in
        {known}) place="$place $word" ;;
        esac
    done
    COMPREPLY=()
    case "$place:$previous" in
{values}    esac
    case "$place" in
{following}    esac
    case "$current" in
        -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
        *) [ -z "$below" ] || COMPREPLY=($(compgen -W "$below" -- "$current")) ;;
    esac
}}
complete -o default -F _soda_tta soda-tta
"""


def zsh(commands: list[Command]) -> str:
    """zsh understands bash's way of completing."""
    return f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{bash(commands)}"


def fish(commands: list[Command]) -> str:
    lines = []
    for command in commands:
        seen = " and ".join(f"__fish_seen_subcommand_from {word}" for word in command.words)
        if command.below:
            none_yet = f"not __fish_seen_subcommand_from {' '.join(command.below)}"
            lines += [
                f"complete -c soda-tta -f -n {quoted(' and '.join(filter(None, [seen, none_yet])))} -a {quoted(word)}"
                for word in command.below
            ]
        for option, text in command.options.items():
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            condition = f" -n {quoted(seen)}" if seen else ""
            few = (
                f" -xa {quoted(' '.join(command.choices[option]))}"
                if option in command.choices
                else ""
            )
            lines.append(f"complete -c soda-tta{condition} {flag}{few} -d {quoted(text)}")
    return "\n".join([*lines, ""])


def quoted(text: str) -> str:
    """For fish, between single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
