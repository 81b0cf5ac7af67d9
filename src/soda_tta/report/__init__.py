"""What a person looks at after a run: one self-contained HTML page. Labels enter here and in the bench only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta.errors import SodaError
from soda_tta.storage.atomic import write_text

if TYPE_CHECKING:
    from soda_tta.engine.run import Run

__all__ = ["Report", "write_report"]


@dataclass(frozen=True)
class Report:
    """Where the page is, and what it says for a pipeline."""

    path: Path
    facts: dict[str, Any]


def write_report(
    subjects: Run | str | Path | Sequence[Run | str | Path],
    path: str | Path,
    *,
    images: Any = None,
    labels: Any = None,
    classes: Any = None,
    price: float | None = None,
) -> Report:
    """Write the page of a run, of several runs side by side, or of a bench store, to `path`.

    `subjects`: runs, run directories, or the folder of one store. `images`: those the run was made with, for its
    pictures. `labels`: of all images or some, for measuring. `classes`: their names. `price`: of a thousand queries.
    """
    try:
        from soda_tta.report.contents import page_of
    except ImportError as error:
        raise SodaError(f"a report needs {error.name}: pip install 'soda-tta[report]'.") from error
    several = list(subjects) if isinstance(subjects, list | tuple) else [subjects]
    html, facts = page_of(several, images=images, labels=labels, classes=classes, price=price)
    write_text(Path(path), html)
    return Report(Path(path), facts)
