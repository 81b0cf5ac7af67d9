"""Which data sets lie in the data homes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from soda_tta.data.catalogue import KNOWN, homes
from soda_tta.data.files import SUFFIXES
from soda_tta.data.layouts import LAYOUTS, recognise
from soda_tta.errors import SodaError


@dataclass(frozen=True)
class Found:
    """A data set in a data home.

    Attributes
    ----------
    path : Path
        Its file or folder.
    layout : str
        One of `soda_tta.data.layouts.LAYOUTS`, or "unreadable".
    size : int
        In bytes, on disk.
    name : str or None
        Its name in the catalogue.
    problem : str, optional
        Why it cannot be opened. Default: None.
    """

    path: Path
    layout: str
    size: int
    name: str | None
    problem: str | None = None

    def describe(self) -> str:
        """Name and layout, or the problem, in one line."""
        prefix = f"{self.name}: " if self.name else ""
        return f"{prefix}{self.problem or LAYOUTS[self.layout]}"

    def facts(self) -> dict[str, str | int | None]:
        """The same as plain JSON, without the path."""
        return {
            "name": self.name,
            "layout": self.layout,
            "bytes": self.size,
            "problem": self.problem,
        }


def survey() -> list[Found]:
    """Every data set directly below a data home; other files are skipped."""
    candidates = [look_at(path) for home in homes() for path in sorted(home.iterdir())]
    return [candidate for candidate in candidates if candidate is not None]


def look_at(path: Path) -> Found | None:
    """What a file or folder of a data home is; None if it is not a data set."""
    if path.name.startswith("."):
        return None
    if path.is_file() and path.suffix not in (".npz", ".npy", ".csv"):
        return None
    try:
        layout = recognise(path)
        if layout == "folder" and not holds_image_files(path):
            return None
        return Found(path, layout, size_of(path), known_as(path))
    except SodaError as error:
        return Found(path, "unreadable", size_of(path), known_as(path), str(error))


def holds_image_files(folder: Path) -> bool:
    """Whether any image lies below a folder."""
    return any(file.suffix.lower() in SUFFIXES for file in folder.rglob("*"))


def known_as(path: Path) -> str | None:
    """The name of the catalogue that leads to this path."""
    for name, known in KNOWN.items():
        for split in ("test", "train"):
            if path.name in {place.format(split=split) for place in known.places}:
                return name
    return None


def absent() -> list[str]:
    """The data sets of the catalogue that are in no data home."""
    present = {known_as(path) for home in homes() for path in home.iterdir()}
    return [name for name in KNOWN if name not in present]


def size_of(path: Path) -> int:
    """Bytes on disk of a file, or of all files below a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
