"""Tables of a store: one row per corruption, one column per method; Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, stdev
from typing import Any

from soda_tta.bench.cell import CLEAN, Cell
from soda_tta.bench.columns import (
    column_names,
    differing_facts,
    differing_scaling,
    distinct,
    domains_are_rows,
    protocol_line,
    protocol_of,
)
from soda_tta.bench.result import CellResult, Entry
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.storage.spreadsheet import as_cell

ROW_ORDER = (*CORRUPTIONS, CLEAN)
QUERIES = "queries per image"
CUT_SHORT = "ended by its budget"


@dataclass
class Table:
    """Accuracies in per cent by row and column; several values in one place are seeds.

    Parameters
    ----------
    heading : what the rows are: "corruption" (default) or "data".
    columns, rows : their names in order.
    values : accuracies by row and column.
    queries : queries per image of every cell, by column.
    protocol : by column, the facts that its name does not state.
    """

    heading: str = "corruption"
    columns: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    queries: dict[str, list[float]] = field(default_factory=dict)
    protocol: dict[str, list[str]] = field(default_factory=dict)

    def add(self, cell: Cell, result: CellResult, column: str, protocol: list[str]) -> None:
        """Put one result into its place."""
        row = str(getattr(cell, self.heading))
        if column not in self.columns:
            self.columns.append(column)
        if row not in self.rows:
            self.rows.append(row)
            self.rows.sort(key=row_rank)
        self.values.setdefault((row, column), []).append(result.after)
        self.queries.setdefault(column, []).append(result.queries_per_image)
        cut_short = result.stopped == "budget" or CUT_SHORT in self.protocol.get(column, ())
        self.protocol[column] = [*protocol, CUT_SHORT] if cut_short else protocol

    @property
    def averaged_rows(self) -> list[str]:
        """The rows that every column has.

        Clean images show what a method harms. They are averaged only if there is nothing else.
        """
        complete = [
            row for row in self.rows if all((row, column) in self.values for column in self.columns)
        ]
        return [row for row in complete if row != CLEAN] or complete

    def means(self) -> dict[str, float]:
        """The mean over the averaged rows by column; nothing if no row is complete."""
        rows = self.averaged_rows
        if not rows:
            return {}
        return {
            column: mean(mean(self.values[row, column]) for row in rows) for column in self.columns
        }

    def cells(self) -> list[list[str]]:
        """The table as text: a head, one row per corruption, the means, and the queries."""
        head = [self.heading, *self.columns]
        body = [
            [
                row.replace("_", " "),
                *(with_deviation(self.values.get((row, c))) for c in self.columns),
            ]
            for row in self.rows
        ]
        means = self.means()
        last = [f"{means[c]:.1f}" if means else "" for c in self.columns]
        queries = [f"{mean(self.queries[c]):,.0f}" for c in self.columns]
        return [head, *body, [self._mean_title(), *last], [QUERIES, *queries]]

    def spreadsheet(self) -> list[list[str]]:
        """The same for CSV: the mean of the seeds and their deviation are separate fields."""
        head = [self.heading]
        for column in self.columns:
            head += [column, f"{column} deviation"]
        body = []
        for row in self.rows:
            line = [row]
            for column in self.columns:
                values = self.values.get((row, column))
                line.append(f"{mean(values):.3f}" if values else "")
                line.append(f"{stdev(values):.3f}" if values and len(values) > 1 else "")
            body.append(line)
        means = self.means()
        last = [self._mean_title()]
        queries = [QUERIES]
        for column in self.columns:
            last += [f"{means[column]:.3f}" if means else "", ""]
            queries += [f"{mean(self.queries[column]):.3f}", ""]
        return [head, *body, last, queries]

    def _mean_title(self) -> str:
        return f"mean of {len(self.averaged_rows)}"

    def protocol_text(self) -> str:
        """The protocol in one line: what all columns share, then what some of them have."""
        return protocol_line(self.protocol)

    def facts(self) -> dict[str, Any]:
        """The table as a JSON object with unrounded numbers."""
        return {
            "heading": self.heading,
            "columns": self.columns,
            "rows": {
                row: {
                    column: {
                        "accuracy": mean(values),
                        "deviation": stdev(values) if len(values) > 1 else None,
                        "seeds": len(values),
                    }
                    for column in self.columns
                    if (values := self.values.get((row, column)))
                }
                for row in self.rows
            },
            "averaged": self.averaged_rows,
            "mean": self.means(),
            "queries_per_image": {column: mean(self.queries[column]) for column in self.columns},
            "protocol": self.protocol,
        }


def make_table(entries: Iterable[Entry]) -> Table:
    """Make the table of some results, for example of a `Store`.

    Only seeds share a place: everything else in which cells differ is part of the column names.

    >>> cells = [Cell(method="soda", corruption="fog", seed=seed) for seed in (0, 1)]
    >>> results = [CellResult(before=20, after=after, queries_per_image=9) for after in (50, 52)]
    >>> print(render(make_table(zip(cells, results))))
    | corruption | soda |
    |---|---|
    | fog | 51.0 ± 1.4 |
    | mean of 1 | 51.0 |
    | queries per image | 9 |
    <BLANKLINE>
    Protocol: cifar10, cifar10_resnet20, severity 5, 500 images. Accuracy in %.
    <BLANKLINE>
    """
    listed = with_clean_at_every_severity(distinct(entries))
    cells = [cell for cell, _ in listed]
    table = Table("data" if domains_are_rows(cells) else "corruption")
    in_names = {table.heading, *differing_facts(cells)}
    if all(cell.corruption == CLEAN for cell in cells):
        in_names.add("severity")  # clean images have none
    scaling = {
        method: differing_scaling(cells, method) for method in {cell.method for cell in cells}
    }
    for (cell, result), column in zip(listed, column_names(cells), strict=True):
        protocol = protocol_of((cell, result), in_names | scaling[cell.method])
        table.add(cell, result, column, protocol)
    return table


def with_clean_at_every_severity(entries: Sequence[Entry]) -> list[Entry]:
    """Repeat clean images for every severity in the table, because they have none themselves."""
    severities = sorted({cell.severity for cell, _ in entries if cell.corruption != CLEAN})
    repeated = []
    for cell, result in entries:
        is_clean = cell.corruption == CLEAN
        for severity in severities if is_clean and severities else [cell.severity]:
            repeated.append((replace(cell, severity=severity), result))
    return repeated


def row_rank(row: str) -> int:
    """Corruptions in the paper's order; everything else last."""
    return ROW_ORDER.index(row) if row in ROW_ORDER else len(ROW_ORDER)


def with_deviation(values: list[float] | None) -> str:
    """The mean of the seeds, and their deviation if there are several.

    >>> with_deviation([50.0, 52.0]), with_deviation([50.0]), with_deviation(None)
    ('51.0 ± 1.4', '50.0', '')
    """
    if not values:
        return ""
    deviation = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{deviation}"


def render(table: Table, form: str = "markdown") -> str:
    """The table as "markdown" (default), "csv" or "latex"."""
    if form == "csv":
        buffer = io.StringIO()
        cells = [[as_cell(value) for value in row] for row in table.spreadsheet()]
        csv.writer(buffer, lineterminator="\n").writerows(cells)
        return buffer.getvalue()
    rows = table.cells()
    if form == "latex":
        return latex(rows, table.protocol_text())
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    protocol = f"Protocol: {table.protocol_text()}. Accuracy in %."
    return "\n".join([*lines, "", protocol, ""])


def latex(rows: list[list[str]], protocol: str) -> str:
    """A booktabs table."""
    escape = str.maketrans({"_": r"\_", "%": r"\%", "&": r"\&", "±": r"$\pm$"})
    lines = [" & ".join(value.translate(escape) for value in row) + r" \\" for row in rows]
    alignment = "l" + "r" * (len(rows[0]) - 1)
    return "\n".join(
        [
            f"% {protocol}",
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:-2],
            r"\midrule",
            *lines[-2:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
