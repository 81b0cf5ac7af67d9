"""Tables of a store: rows by corruption, columns by method, as Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, stdev
from typing import Any

from soda_tta.bench.cell import CLEAN, ORDERS, Cell
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.errors import SodaError
from soda_tta.methods import all_methods
from soda_tta.settings import ALIASES

ORDER = (*CORRUPTIONS, CLEAN)
Entry = tuple[Cell, dict[str, Any]]
CUT = "ended by its budget"


@dataclass
class Table:
    """Accuracy in per cent by corruption and by method, with all else that differs; several values are seeds."""

    heading: str = "corruption"
    columns: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    queries: dict[str, list[float]] = field(default_factory=dict)
    protocol: dict[str, list[str]] = field(
        default_factory=dict
    )  # of each column, what its name does not tell

    def add(self, cell: Cell, result: dict[str, Any], column: str, protocol: list[str]) -> None:
        row = str(getattr(cell, self.heading))
        if column not in self.columns:
            self.columns.append(column)
        if row not in self.rows:
            self.rows.append(row)
            self.rows.sort(key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
        self.values.setdefault((row, column), []).append(result["after"])
        self.queries.setdefault(column, []).append(result["queries_per_image"])
        cut = result.get("stopped") == "budget" or CUT in self.protocol.get(column, ())
        self.protocol[column] = [*protocol, CUT] if cut else protocol

    @property
    def shared(self) -> list[str]:
        """The rows every column has; clean images, shown to see what a method harms, are no corruption to average."""
        everywhere = [
            row for row in self.rows if all((row, column) in self.values for column in self.columns)
        ]
        return [row for row in everywhere if row != CLEAN] or everywhere

    def cells(self) -> list[list[str]]:
        """Head, a row a corruption, the mean over the corruptions every column has, and the queries an image."""
        shared = self.shared
        head = [self.heading, *self.columns]
        body = [
            [row.replace("_", " "), *(written(self.values.get((row, c))) for c in head[1:])]
            for row in self.rows
        ]
        means = [
            f"{mean(mean(self.values[row, c]) for row in shared):.1f}" if shared else ""
            for c in self.columns
        ]
        last = [f"mean of {len(shared)}", *means]
        return [
            head,
            *body,
            last,
            ["queries an image", *(f"{mean(self.queries[c]):,.0f}" for c in self.columns)],
        ]

    def fields(self) -> list[list[str]]:
        """The same for spreadsheets: the mean of the seeds and their deviation are fields of their own."""

        def pair(facts: dict[str, Any] | None) -> list[str]:
            known = facts or {"accuracy": None, "deviation": None}
            return [
                "" if known[name] is None else f"{known[name]:.3f}"
                for name in ("accuracy", "deviation")
            ]

        told = self.facts()
        head = [
            self.heading,
            *(name for column in self.columns for name in (column, f"{column} deviation")),
        ]
        body = [
            [row, *(v for c in self.columns for v in pair(told["rows"][row].get(c)))]
            for row in self.rows
        ]
        means = [
            v for c in self.columns for v in (f"{told['mean'][c]:.3f}" if told["mean"] else "", "")
        ]
        paid = [v for c in self.columns for v in (f"{told['queries_per_image'][c]:.3f}", "")]
        return [head, *body, [f"mean of {len(self.shared)}", *means], ["queries an image", *paid]]

    def told(self) -> str:
        """The protocol in words: what all columns share, then what some have beside it."""
        return in_common(self.protocol)

    def facts(self) -> dict[str, Any]:
        """The same for programs: settings, unrounded."""
        shared = self.shared
        return {
            "heading": self.heading,
            "columns": self.columns,
            "rows": {
                row: {
                    c: {
                        "accuracy": mean(values),
                        "deviation": stdev(values) if len(values) > 1 else None,
                        "seeds": len(values),
                    }
                    for c in self.columns
                    if (values := self.values.get((row, c)))
                }
                for row in self.rows
            },
            "averaged": shared,
            "mean": {c: mean(mean(self.values[row, c]) for row in shared) for c in self.columns}
            if shared
            else {},
            "queries_per_image": {c: mean(self.queries[c]) for c in self.columns},
            "protocol": self.protocol,
        }


def make_table(results: Iterable[Entry]) -> Table:
    """Only seeds share a place: whatever else differs between cells goes into the names of their columns."""
    entries = once(results)
    table = Table("data" if domains_are_rows(entries) else "corruption")
    everywhere = with_clean_everywhere(entries)
    told = {table.heading, *what_varies(everywhere)}  # by the names of rows and columns
    if all(cell.corruption == CLEAN for cell, _ in entries):
        told.add("severity")
    alike = by_method(everywhere)
    for (cell, result), column in zip(everywhere, column_names(everywhere), strict=True):
        table.add(
            cell, result, column, protocol_of((cell, result), told | differing(alike[cell.method]))
        )
    return table


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Methods as `soda-tta methods` lists them, others after them, each by its settings.

    A store has the order in which cells happened to end.
    """
    places = {name: place for place, name in enumerate(all_methods())}

    def rank(entry: Entry) -> tuple[Any, ...]:
        cell = entry[0]
        settings = [
            (name, isinstance(value, int | float), value) for name, value in cell.settings.items()
        ]
        own = sorted(
            (name, not plain, value if plain else str(value)) for name, plain, value in settings
        )
        return places.get(cell.method, len(places)), cell.method, own

    return sorted(entries, key=rank)


def protocol_of(entry: Entry, told: set[str]) -> list[str]:
    """The facts of a cell in words, but for those told elsewhere.

    What a local network begins from decides how it ends (dine, beta), so it is told even where nobody chose it.
    """
    cell, result = entry
    words = {"data": cell.data, "model": cell.model, "severity": f"severity {cell.severity}"}
    words["images"] = f"{cell.images:,} images"
    words |= {} if cell.order == ORDERS[0] else {"order": f"in the order of their {cell.order}"}
    words |= {} if cell.budget is None else {"budget": f"at most {cell.budget:g} queries an image"}
    words |= {name: f"{name} {cell.settings[name]}" for name in SCALING if name in cell.settings}
    target = result.get("card", {}).get("settings", {}).get("target")
    words |= {"target": f"target {target}"} if target and "target" not in cell.settings else {}
    return [fact for name, fact in words.items() if name not in told]


def in_common(facts: dict[str, list[str]]) -> str:
    """Facts of several names in a line: what they share, then what some have beside it."""
    first = next(iter(facts.values()), [])
    shared = [fact for fact in first if all(fact in others for others in facts.values())]
    others: dict[str, list[str]] = {}
    for name, own in facts.items():
        others.setdefault(", ".join(fact for fact in own if fact not in shared), []).append(name)
    rest = [f"{own} ({', '.join(names)})" for own, names in others.items() if own]
    return "; ".join(filter(None, [", ".join(shared), *rest]))


def domains_are_rows(entries: Sequence[Entry]) -> bool:
    return "data" in what_varies(entries) and all(cell.corruption == CLEAN for cell, _ in entries)


def with_clean_everywhere(entries: Sequence[Entry]) -> list[Entry]:
    """Clean images have no severity: they stand beside each one there is."""
    severities = {cell.severity for cell, _ in entries if cell.corruption != CLEAN}
    return [
        (replace(cell, severity=severity), result)
        for cell, result in entries
        for severity in (
            sorted(severities) if cell.corruption == CLEAN and severities else [cell.severity]
        )
    ]


def column_names(entries: Sequence[Entry], beside: Sequence[str] = ()) -> list[str]:
    """The column of every cell; facts told `beside` it are left out.

    One experiment has one name: where its settings were put in several ways, those that are the method's own are left
    out.
    """
    rows = "data" if domains_are_rows(entries) else None
    varying = [name for name in what_varies(entries) if name != rows and name not in beside]
    alike = by_method(entries)
    kinds = [
        (cell.method, resolved(cell), *(getattr(cell, name) for name in varying))
        for cell, _ in entries
    ]
    names: dict[tuple[Any, ...], str] = {}
    for kind, (cell, _) in zip(kinds, entries, strict=True):
        full, bare = (
            label(each, varying, alike[cell.method]) for each in (cell, without_own(cell))
        )
        names[kind] = full if names.get(kind, full) == full else bare
    return [names[kind] for kind in kinds]


def resolved(cell: Cell) -> str:
    """All settings of a cell; only those it names where its method, of the user's own, is not at hand."""
    try:
        return str(sorted(cell.recipe.settings.items()))
    except SodaError:
        return str(sorted(cell.settings.items()))


def without_own(cell: Cell) -> Cell:
    """The same with the settings alone that its method does not have anyway."""
    try:
        own = replace(cell, settings={}).recipe.settings
    except SodaError:
        return cell
    changed = {
        name: value
        for name, value in cell.settings.items()
        if own.get(ALIASES.get(name, name)) != value
    }
    return replace(cell, settings=changed)


def once(entries: Iterable[Entry]) -> list[Entry]:
    """Each experiment once, watched rather than not: merged stores may have it twice, its settings put in other ways."""
    found: dict[str, Entry] = {}
    for cell, result in entries:
        severity = 1 if cell.corruption == CLEAN else cell.severity
        place = f"{replace(cell, settings={}, curve=0, severity=severity).key} {resolved(cell)}"
        known, kept = found.setdefault(place, (cell, result))
        if known != cell:  # both ways to put its settings give way to the plain one
            watched = result if result.get("curve") and not kept.get("curve") else kept
            found[place] = (without_own(cell), watched)
    return list(found.values())


def by_method(entries: Sequence[Entry]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell, _ in entries:
        found.setdefault(cell.method, []).append(cell)
    return found


PAPERS_NAME = {"directions": "q"}  # one column, whichever of its names a number was given by
TOLD_APART = ("data", "model", "severity", "images", "order", "budget")
SCALING = (
    "epochs",
    "finetune_epochs",
    "lr",
)  # of the size of an experiment, unless cells of a method differ in it


def what_varies(entries: Iterable[Entry]) -> list[str]:
    """The facts in which these cells differ, beside the method, its settings, the corruption and the seed."""
    cells = [cell for cell, _ in entries]
    corrupted = [cell for cell in cells if cell.corruption != CLEAN]
    of = {name: corrupted if name == "severity" else cells for name in TOLD_APART}
    return [name for name in TOLD_APART if len({str(getattr(cell, name)) for cell in of[name]}) > 1]


def label(cell: Cell, varying: Sequence[str] = (), alike: Sequence[Cell] = ()) -> str:
    """The method, what was changed in it, and in what the store varies."""
    scaling = set(SCALING) - differing(alike)
    own = sorted((PAPERS_NAME.get(name, name), value) for name, value in cell.settings.items())
    beside = [(name, getattr(cell, name)) for name in varying]
    changed = [f"{name}={value}" for name, value in own if name not in scaling]
    changed += [
        "no budget" if (name, value) == ("budget", None) else f"{name}={value}"
        for name, value in beside
    ]
    return cell.method + (f" ({', '.join(changed)})" if changed else "")


def differing(cells: Sequence[Cell]) -> set[str]:
    return {name for name in SCALING if len({str(cell.settings.get(name)) for cell in cells}) > 1}


def written(values: list[float] | None) -> str:
    if not values:
        return ""
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def render(table: Table, form: str = "markdown") -> str:
    rows = table.cells()
    if form == "csv":
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(table.fields())
        return buffer.getvalue()
    if form == "latex":
        return latex(rows, table.told())
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join([*lines, "", f"Protocol: {table.told()}. Accuracy in %.", ""])


def latex(rows: list[list[str]], protocol: str) -> str:
    """A booktabs table."""
    escape = str.maketrans({"_": r"\_", "%": r"\%", "&": r"\&", "±": r"$\pm$"})
    lines = [" & ".join(value.translate(escape) for value in row) + r" \\" for row in rows]
    columns = "l" + "r" * (len(rows[0]) - 1)
    inside = [
        r"\toprule",
        lines[0],
        r"\midrule",
        *lines[1:-2],
        r"\midrule",
        *lines[-2:],
        r"\bottomrule",
    ]
    return "\n".join(
        [f"% {protocol}", rf"\begin{{tabular}}{{{columns}}}", *inside, r"\end{tabular}", ""]
    )
