"""What lies in the data homes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from soda_tta.data.catalogue import KNOWN, homes
from soda_tta.data.files import SUFFIXES
from soda_tta.data.load import LAYOUTS, recognise
from soda_tta.errors import SodaError


@dataclass(frozen=True)
class Found:
    """A data set in a home: where, its layout, its size in bytes, and its name in the catalogue if it has one."""

    path: Path
    layout: str
    size: int
    name: str | None
    problem: str | None = None

    def describe(self) -> str:
        what = f"{self.name}: " if self.name else ""
        return f"{what}{self.problem or LAYOUTS[self.layout]}"

    def facts(self) -> dict[str, str | int | None]:
        return {
            "name": self.name,
            "layout": self.layout,
            "bytes": self.size,
            "problem": self.problem,
        }


def survey() -> list[Found]:
    """Every data set right below a home; other files are passed over."""
    return [
        found for home in homes() for path in sorted(home.iterdir()) if (found := look_at(path))
    ]


def look_at(path: Path) -> Found | None:
    if path.name.startswith("."):
        return None
    if path.is_file() and path.suffix not in (".npz", ".npy", ".csv"):
        return None
    try:
        layout = recognise(path)
        if layout == "folder" and not any(
            file.suffix.lower() in SUFFIXES for file in path.rglob("*")
        ):
            return None
        return Found(path, layout, size_of(path), known_as(path))
    except SodaError as error:
        return Found(path, "unreadable", size_of(path), known_as(path), str(error))


def known_as(path: Path) -> str | None:
    """The name of the catalogue that leads to this path."""
    for name, known in KNOWN.items():
        if path.name in {
            place.format(split=split) for place in known.places for split in ("test", "train")
        }:
            return name
    return None


def absent() -> list[str]:
    """The data sets of the catalogue that are in no home."""
    here = {known_as(path) for home in homes() for path in home.iterdir()}
    return [name for name in KNOWN if name not in here]


def size_of(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
