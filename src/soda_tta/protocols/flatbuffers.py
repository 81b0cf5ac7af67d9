"""FlatBuffers: read single fields of a file without its schema's generated code.

A file is a tree of tables. The fields of a table are numbered, in the order of the schema.
"""

from __future__ import annotations

import struct
from typing import Any


class Table:
    """One table of a FlatBuffers file. A position outside of the file is a ValueError.

    Parameters
    ----------
    data : bytes
        The whole file.
    position : int, optional
        Where the table begins. Default: the root table.
    """

    def __init__(self, data: bytes, position: int | None = None) -> None:
        self.data = data
        self.position = self._read("I", 0) if position is None else position

    def number(self, field: int, form: str, default: int = 0) -> Any:
        """A number; `form` is its format in the notation of `struct`."""
        place = self._place(field)
        return default if place is None else self._read(form, place)

    def numbers(self, field: int, form: str) -> list[Any]:
        """A vector of numbers."""
        start, length = self._vector(field, struct.calcsize(f"<{form}"))
        return list(struct.unpack_from(f"<{length}{form}", self.data, start))

    def content(self, field: int) -> bytes:
        """A vector of bytes, or a text."""
        start, length = self._vector(field, 1)
        return self.data[start : start + length]

    def text(self, field: int) -> str:
        """A text."""
        return self.content(field).decode("utf-8", "replace")

    def table(self, field: int) -> Table | None:
        """A table inside this one, if there is one."""
        place = self._place(field)
        return None if place is None else self._table_at(place)

    def tables(self, field: int) -> list[Table]:
        """A vector of tables."""
        start, length = self._vector(field, 4)
        return [self._table_at(start + 4 * index) for index in range(length)]

    def _table_at(self, place: int) -> Table:
        return Table(self.data, place + self._read("I", place))

    def _vector(self, field: int, width: int) -> tuple[int, int]:
        """Where the elements of a vector begin, and how many there are."""
        place = self._place(field)
        if place is None:
            return 0, 0
        start = place + self._read("I", place)
        length = self._read("I", start)
        if start + 4 + length * width > len(self.data):
            raise ValueError(f"a vector of {length} elements does not fit into the file")
        return start + 4, length

    def _place(self, field: int) -> int | None:
        """Where the value of a field is; None if the table does not have it."""
        layout = self.position - self._read("i", self.position)
        entry = 4 + 2 * field
        if entry >= self._read("H", layout):
            return None
        offset = self._read("H", layout + entry)
        return self.position + offset if offset else None

    def _read(self, form: str, place: int) -> Any:
        if not 0 <= place <= len(self.data) - struct.calcsize(f"<{form}"):
            raise ValueError(f"position {place} is outside of the file")
        return struct.unpack_from(f"<{form}", self.data, place)[0]
