"""What a person sees during a run. Progress goes to standard error, results to standard output."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from soda_tta.box.price import Price, as_price
from soda_tta.cli.spelling import as_flags
from soda_tta.engine import progress
from soda_tta.foreign_text import printable
from soda_tta.wording import counted

if TYPE_CHECKING:
    from soda_tta.engine.run import Run


class Display(progress.Display):
    """The display of a run, with flags in place of Python arguments in its notices."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__(quiet=quiet, spelling=as_flags)


def table(rows: list[tuple[str, Any]]) -> str:
    """Two aligned columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {printable(value)}" for name, value in rows)


def condition_lines(run: Run) -> list[str]:
    """The conditions of a run: two lines for each, and the number of unfamiliar images."""
    from soda_tta.judging.condition_table import condition_rows, unfamiliar_sentence

    if run.conditions is None:
        return []
    rows = condition_rows(run.conditions, run.before, run.after)
    width = max(len(row.words) for row in rows)
    lines = []
    for row in rows:
        words, share, verdict, _, does = row.cells()
        changed = "" if row.changed is None else f"{counted(row.changed, 'answer')} changed"
        lines.append(f"{words:<{width}}  {share:>4}  {verdict:<16}  {changed}".rstrip())
        lines.append(f"    {does}")
    unfamiliar = unfamiliar_sentence(run.conditions.unfamiliar)
    return lines if unfamiliar is None else [*lines, unfamiliar]


def print_columns(margin: str, text: str) -> None:
    """Print a text beside a margin, wrapped if standard output is a terminal."""
    text = printable(text)
    if not sys.stdout.isatty():
        print(f"{margin}{text}".rstrip())
        return
    width = max(30, shutil.get_terminal_size().columns - len(margin))
    first, *rest = textwrap.wrap(text, width) or [""]
    print(f"{margin}{first}".rstrip())
    for line in rest:
        print(" " * len(margin) + line)


def money(
    price: Price | float | str | None,
    queries: int,
    *,
    calls: int | None = None,
    seconds: float | None = None,
) -> str:
    """What queries cost, to append to their number; nothing without a price."""
    known = as_price(price)
    return "" if known is None else f"; {known.sentence(queries, calls=calls, seconds=seconds)}"
