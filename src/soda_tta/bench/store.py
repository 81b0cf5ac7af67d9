"""The results store: one JSON line per cell, safe against crashes, and stores can be merged."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from soda_tta.bench.cell import Cell
from soda_tta.bench.result import CellResult, Entry
from soda_tta.errors import RunError, SodaError, StorageError
from soda_tta.foreign_json import parse_json
from soda_tta.storage.atomic import append_bytes, make_folder, write_bytes
from soda_tta.storage.locks import locked

FORMAT = 2
RESULTS = "results.jsonl"


class Store:
    """A folder with `results.jsonl`. Finished cells are never run again.

    Parameters
    ----------
    folder : the folder; it is created with the first result.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> cell = Cell(method="soda", seed=1)
    >>> store.add(cell, CellResult(before=20.0, after=60.0, queries_per_image=902.0))
    >>> cell in Store(store.folder), store[cell].after
    (True, 60.0)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / RESULTS
        self._entries: dict[str, Entry] = {}
        self._torn_at: int | None = None  # where an incomplete last line begins
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        """Read every complete line; the next write cuts off an incomplete last one."""
        try:
            raw = self.path.read_bytes()
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be read: {error.strerror}; choose another folder."
            ) from error
        complete = raw[: raw.rfind(b"\n") + 1]
        if complete != raw:
            warnings.warn(f"{self.path}: the last line is incomplete and is dropped.", stacklevel=3)
            self._torn_at = len(complete)
        for number, line in enumerate(complete.splitlines(), start=1):
            if line.strip():  # some editors end a file with an empty line
                self._read_line(line, number)

    def _read_line(self, line: bytes, number: int) -> None:
        try:
            entry = parse_json(line)
            form = entry["format"]
            if form == FORMAT:
                cell = Cell.from_facts(entry["cell"])
                self._entries[cell.key] = (cell, CellResult.from_facts(entry["result"]))
        except (ValueError, KeyError, TypeError, SodaError) as error:
            start = line[:60].decode(errors="replace")
            reason = str(error).rstrip(".")
            raise RunError(
                f"{self.path}, line {number}, is not a result ({reason}): {start!r}; "
                "repair it or choose another folder."
            ) from None
        if form != FORMAT:
            raise RunError(
                f"{self.path} was written by another version (format {form}); "
                f"this version reads format {FORMAT}. Choose another folder."
            )

    def __contains__(self, cell: Cell) -> bool:
        return cell.key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def __getitem__(self, cell: Cell) -> CellResult:
        return self._entries[cell.key][1]

    def add(self, cell: Cell, result: CellResult) -> None:
        """Append one result; it is on disk when this returns."""
        make_folder(self.folder)
        if self._torn_at is not None:
            with self.path.open("r+b") as file:
                file.truncate(self._torn_at)
            self._torn_at = None
        entry = {
            "format": FORMAT,
            "key": cell.key,  # the name of its file in adaptors/, for readers of the file
            "cell": asdict(cell),
            "result": result.facts(),
        }
        append_bytes(self.path, (json.dumps(entry) + "\n").encode())
        self._entries[cell.key] = (cell, result)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock: only one process at a time may run cells into it.

        Raises `StorageError` at once if the folder is locked or cannot be written.
        """
        make_folder(self.folder)
        try:
            self.path.open("ab").close()
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be written: {error.strerror}; choose another folder."
            ) from error
        finally:
            if self.path.exists() and not self.path.stat().st_size:
                self.path.unlink()
        message = (
            f"another process is running cells into {self.folder}; "
            "wait for it, or use another folder and merge."
        )
        with locked(self.folder, message):
            yield

    def adaptor_path(self, cell: Cell) -> Path:
        """The file of a cell's adaptor; the figures that show adapted images need it."""
        return self.folder / "adaptors" / f"{cell.key}.safetensors"

    def keep_adaptor(self, cell: Cell, adaptor: bytes | None) -> None:
        """Write the file of a cell's adaptor, if there is one."""
        if adaptor is not None:
            write_bytes(self.adaptor_path(cell), adaptor)

    def copy_from(self, other: Store, source: Cell, cell: Cell | None = None) -> CellResult:
        """Copy the result and the adaptor of `source` from another store.

        `cell` is the name under which it is stored here: the same experiment, perhaps with other
        settings spelled out (default: `source`). A cell without a curve gets none.
        """
        cell = source if cell is None else cell
        result = other[source] if cell.curve else replace(other[source], curve=[])
        self.add(cell, result)
        if other.adaptor_path(source).exists():
            self.adaptor_path(cell).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(other.adaptor_path(source), self.adaptor_path(cell))
        return result

    def merge(self, other: Store) -> tuple[list[Cell], list[Cell]]:
        """Copy every result that this store does not have.

        Returns the copied cells, and the cells that both stores have with different answers. The
        results in this store are kept.
        """
        self._check_same_names(other)
        copied = []
        different = []
        for cell, result in other:
            if cell not in self:
                self.copy_from(other, cell)
                copied.append(cell)
            elif not same_answers(self[cell], result):
                different.append(cell)
        return copied, different

    def _check_same_names(self, other: Store) -> None:
        """Refuse two model files, or two user methods, that share a name but not their content."""
        hashes: dict[str, str] = {}
        for cell, result in (*self, *other):
            own = {cell.method: result.code} if result.code else {}
            if cell.uses_model_file:
                own[cell.model] = result.card["box"]["fingerprint"]
            for name, digest in own.items():
                if hashes.setdefault(name, digest) != digest:
                    raise RunError(
                        f"{name} is not the same in {self.folder} and in {other.folder}; "
                        "rename one of the two and run its grid again."
                    )


def same_answers(one: CellResult, two: CellResult) -> bool:
    """Whether two runs of a cell agree, image by image if both recorded that."""
    if one.correct is not None and two.correct is not None:
        return one.correct == two.correct
    return one.after == two.after


def open_store(folder: str | Path, *, filled: bool = False) -> Store:
    """Open a store that exists; with `filled`, one with at least one result.

    Raises `SodaError` otherwise, unlike `Store`, which starts an empty one.
    """
    remedy = f"run 'soda-tta bench run GRID --out {folder}' first."
    if not (Path(folder) / RESULTS).exists():
        raise SodaError(f"{folder} holds no {RESULTS}; {remedy}")
    store = Store(folder)
    if filled and not len(store):
        raise SodaError(f"{folder} holds no result yet; {remedy}")
    return store


def open_stores(folder: str | Path) -> list[Store]:
    """Open a store, or every store directly inside a folder."""
    inside = sorted(path.parent for path in Path(folder).glob(f"*/{RESULTS}"))
    if inside and not (Path(folder) / RESULTS).exists():
        return [open_store(each) for each in inside]
    return [open_store(folder)]
