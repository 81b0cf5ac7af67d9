"""What people see while something runs: a bar in a terminal or a notebook, and small charts.

rich and IPython are imported when something is drawn.
"""

from __future__ import annotations

import sys
from typing import Protocol


class Bar(Protocol):
    """A bar with a text beside it and a line below it, wherever it is drawn."""

    encoding: str  # of the characters that can be shown

    def start(self) -> None:
        """Draw from now on."""

    def stop(self) -> None:
        """Draw no longer."""

    def begin(self, name: str, total: int) -> None:
        """Begin a bar of this length."""

    def show(self, name: str, done: int, beside: str, below: str) -> None:
        """Show how much is done."""

    def say(self, text: str) -> None:
        """Show a notice that stays."""


def open_bar(*, quiet: bool = False) -> Bar:
    """A bar in the notebook if this is one, else on standard error if that is a terminal.

    Parameters
    ----------
    quiet : draw nothing, not even notices.
    """
    if not quiet and in_notebook():
        from soda_tta.display.notebook import NotebookBar

        return NotebookBar()
    from soda_tta.display.terminal import TerminalBar

    return TerminalBar(quiet=quiet)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook: Jupyter, VS Code, Colab."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")  # IPython in a terminal has none
