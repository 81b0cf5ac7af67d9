"""Answers as a Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from soda_tta.data.archives.parquet import arrow, open_parquet, parquet

GROUP = 8192  # rows per row group


def answer_schema(all_probabilities: bool) -> Any:
    """The columns of the answers."""
    pa = arrow()
    fields = [
        pa.field("name", pa.string()),
        pa.field("class", pa.int32()),
        pa.field("confidence", pa.float32()),
        pa.field("condition", pa.int32()),
        pa.field("distance", pa.float32()),
        pa.field("error", pa.string()),
    ]
    if all_probabilities:
        fields.append(pa.field("probabilities", pa.list_(pa.float32())))
    return pa.schema(fields)


class AnswerWriter:
    """Writes rows to a Parquet file, a few thousand in memory at a time.

    Parameters
    ----------
    path : Path
    all_probabilities : bool
        Whether there is a column for the probabilities of all classes.
    """

    def __init__(self, path: Path, all_probabilities: bool) -> None:
        self.schema = answer_schema(all_probabilities)
        self.file = parquet().ParquetWriter(path, self.schema)
        self.rows: list[Sequence[Any]] = []

    def __enter__(self) -> AnswerWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._flush()
        self.file.close()

    def write(self, row: Sequence[Any]) -> None:
        """Add one row, in the order of the schema."""
        self.rows.append(row)
        if len(self.rows) >= GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self.rows:
            return
        pa = arrow()
        columns = [
            pa.array(values, field.type)
            for values, field in zip(zip(*self.rows, strict=True), self.schema, strict=True)
        ]
        self.file.write_table(pa.table(columns, schema=self.schema))
        self.rows = []


def count_rows(file: BinaryIO, path: str) -> tuple[int, int]:
    """The rows of a part of the answers, and how many of them hold an error."""
    opened = open_parquet(file, path)
    place = opened.schema_arrow.get_field_index("error")
    rows = errors = 0
    for group in range(opened.num_row_groups):
        facts = opened.metadata.row_group(group)
        nulls = facts.column(place).statistics.null_count
        rows += facts.num_rows
        errors += facts.num_rows - nulls
    return rows, errors
