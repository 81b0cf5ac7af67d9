"""Results, one JSON line a cell: survives a kill at any moment, and stores from several machines can be merged."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from soda_tta.bench.cell import Cell
from soda_tta.errors import RunError, SodaError, StorageError
from soda_tta.storage.atomic import append_bytes, make_folder
from soda_tta.storage.locks import locked

FORMAT = 1
MEASURED = ("before", "after", "queries_per_image")  # what every table shows of a result


class Store:
    """A folder with `results.jsonl`. Finished cells are never run again."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "results.jsonl"
        self.results: dict[str, dict[str, Any]] = {}
        self.torn: int | None = (
            None  # where a torn last line begins; it is cut off by whoever writes next
        )
        if self.path.exists():
            raw = self._bytes()
            whole = raw[: raw.rfind(b"\n") + 1]
            if whole != raw:
                warnings.warn(f"{self.path}: the last line is torn and is dropped.", stacklevel=2)
                self.torn = len(whole)
            for number, line in enumerate(whole.splitlines(), start=1):
                if line.strip():  # editors like to end a file with an empty one
                    self._take(line, number)

    def _bytes(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be read: {error.strerror}; choose another folder."
            ) from error

    def _take(self, line: bytes, number: int) -> None:
        try:
            entry = json.loads(line)
            form = entry["format"]
            if form == FORMAT:
                Cell.from_facts(entry["cell"])
                if not all(isinstance(entry["result"][fact], int | float) for fact in MEASURED):
                    raise ValueError("a result has " + ", ".join(MEASURED))
                self.results[entry["key"]] = {
                    name: entry[name] for name in ("format", "key", "cell", "result")
                }
        except (ValueError, KeyError, TypeError, SodaError) as error:
            begins, why = line[:60].decode(errors="replace"), str(error).rstrip(".")
            raise RunError(
                f"{self.path}, line {number}, is no result ({why}): {begins!r}; mend it or choose another folder."
            ) from None
        if form != FORMAT:
            raise RunError(
                f"{self.path} was written by another version (format {form}); it is not read, to avoid misreading."
            )

    def __contains__(self, cell: Cell) -> bool:
        return cell.key in self.results

    def __len__(self) -> int:
        return len(self.results)

    def add(self, cell: Cell, result: dict[str, Any]) -> None:
        """Append one result; it is on disk when this returns."""
        make_folder(self.folder)
        if self.torn is not None:
            with self.path.open("r+b") as file:
                file.truncate(self.torn)
            self.torn = None
        entry = {"format": FORMAT, "key": cell.key, "cell": asdict(cell), "result": result}
        append_bytes(self.path, (json.dumps(entry) + "\n").encode())
        self.results[cell.key] = entry

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else runs a grid into this folder meanwhile; one that cannot be written is told of at once."""
        make_folder(self.folder)
        try:
            self.path.open("ab").close()
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be written: {error.strerror}; choose another --out."
            ) from error
        finally:
            if self.path.exists() and not self.path.stat().st_size:
                self.path.unlink()
        otherwise = f"another process is running cells into {self.folder}; wait for it, or give another folder and merge."
        with locked(self.folder, otherwise):
            yield

    def adaptor_path(self, cell: Cell) -> Path:
        """Where what a cell has learned is kept, for the figures that show it."""
        return self.folder / "adaptors" / f"{cell.key}.safetensors"

    def keep_adaptor(self, cell: Cell, path: Path) -> None:
        if path.exists():
            self.adaptor_path(cell).parent.mkdir(parents=True, exist_ok=True)
            path.replace(self.adaptor_path(cell))

    def __iter__(self) -> Iterator[tuple[Cell, dict[str, Any]]]:
        for entry in self.results.values():
            yield Cell.from_facts(entry["cell"]), entry["result"]

    def take(self, cell: Cell, other: Store, same: Cell, changed: dict[str, Any]) -> dict[str, Any]:
        """Copy a result of another store, where it is that of the same cell, with the adaptor that is kept."""
        result: dict[str, Any] = {**other.results[same.key]["result"], **changed}
        self.add(cell, result)
        if other.adaptor_path(same).exists():
            self.adaptor_path(cell).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(other.adaptor_path(same), self.adaptor_path(cell))
        return result

    def merge(self, other: Store) -> tuple[list[Cell], list[Cell]]:
        """Take what the other has and this has not; returns what was taken, and what both have with other answers."""
        self._refuse_strangers(other)
        taken, differing = [], []
        for cell, result in list(other):
            if cell not in self:
                self.take(cell, other, cell, {})
                taken.append(cell)
            elif not same_answers(self.results[cell.key]["result"], result):
                differing.append(cell)
        return taken, differing

    def _refuse_strangers(self, other: Store) -> None:
        """Two models, or two methods of one's own, of one name would be shown as two seeds of one."""
        seen: dict[str, str] = {}
        for store in (self, other):
            for cell, result in store:
                model = (
                    {cell.model: result["card"]["box"]["fingerprint"]} if cell.of_own_model else {}
                )
                method = {cell.method: result["code"]} if result.get("code") else {}
                for name, known in {**model, **method}.items():
                    if seen.setdefault(name, known) != known:
                        raise RunError(
                            f"{name} was one thing for {self.folder} and another for {other.folder}; give the two "
                            "different names and run one of the grids again."
                        )


def same_answers(one: dict[str, Any], two: dict[str, Any]) -> bool:
    """Whether two runs of a cell came out alike, as far as it is known."""
    fact = "right" if "right" in one and "right" in two else "after"
    return bool(one[fact] == two[fact])
