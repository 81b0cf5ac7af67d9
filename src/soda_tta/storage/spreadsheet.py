"""Names in CSV files: a spreadsheet must not take the name of a file for a formula."""

from __future__ import annotations

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
HERE = "./"  # the same file, and no formula


def as_cell(name: str) -> str:
    """The name as it is written to a cell: `./=x.png` for `=x.png`, the same file.

    >>> as_cell("=HYPERLINK(1).png"), as_cell("night/1.png"), as_cell("-1.5")
    ('./=HYPERLINK(1).png', 'night/1.png', '-1.5')
    """
    return f"{HERE}{name}" if name.startswith(FORMULA) and not _is_number(name) else name


def from_cell(cell: str) -> str:
    """The name in a cell that `as_cell` wrote; any other text is returned as it is.

    >>> from_cell("./=x.png"), from_cell("./x.png")
    ('=x.png', './x.png')
    """
    name = cell.removeprefix(HERE)
    return name if as_cell(name) == cell else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
