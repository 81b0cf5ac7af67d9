"""Reports: one self-contained HTML page about a run, several runs or a bench store.

Labels are used here, in the bench and in certificates, and never by the engine.
"""

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
    """A written report.

    Attributes
    ----------
    path : Path
        The HTML file.
    facts : dict
        The content of the page as plain JSON, for pipelines.
    """

    path: Path
    facts: dict[str, Any]


def write_report(
    subjects: Run | str | Path | Sequence[Run | str | Path],
    path: str | Path,
    *,
    images: Any = None,
    labels: Any = None,
    classes: Any = None,
    price: float | str | None = None,
    clean: Any = None,
    clean_accuracy: float | None = None,
) -> Report:
    """Write a report about a run, about several runs side by side, or about a bench store.

    The model is not queried.

    Parameters
    ----------
    subjects : Run, path, or a list of them
        A run, a run directory (finished or not), or the folder of one bench store. Several runs
        are compared on one page.
    path : str or Path
        The HTML file to write.
    images : path, array or Images, default=None
        The images the run was made with. A run does not store its images; with them the page
        shows the images whose predictions changed most. By default they are looked up where the
        recorded command found them.
    labels : path, array or data set name, default=None
        True classes of all images or of some of them. They turn estimates into measurements.
    classes : path or list of str, default=None
        Names of the model's classes, in the model's order.
    clean : Run or path of a run folder, default=None
        A run of "deployed" on clean images by the same model. By default the clean images of the
        run itself, if it was given any.
    clean_accuracy : float, default=None
        The accuracy known for the clean images, as a share in (0, 1]. Without it the page shows at
        most an upper bound of the accuracy. By default what the run was given.
    price : float or str, default=None
        Price in any currency: per 1,000 queries, or as "0.002 per call" or "2.10 per hour". By
        default no cost is shown.

    Returns
    -------
    Report
        The path of the page and its content as plain JSON.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from soda_tta import adapt
    >>> images = np.random.default_rng(0).random((20, 8, 8, 3), np.float32)
    >>> model = lambda batch: np.stack([batch.mean((1, 2, 3)), 1 - batch.mean((1, 2, 3))], axis=1)
    >>> run = adapt(images, model, method="lame")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = write_report(run, f"{folder}/page.html", price=1.5)
    >>> report.facts["images"], report.facts["total_queries"], report.facts["cost"]
    (20, 20, 0.03)
    """
    try:
        from soda_tta.report.build import build_page
    except ImportError as error:
        message = f"a report needs {error.name}: pip install 'soda-tta[report]'."
        raise SodaError(message) from error
    several = list(subjects) if isinstance(subjects, list | tuple) else [subjects]
    html, facts = build_page(
        several,
        images=images,
        labels=labels,
        classes=classes,
        price=price,
        clean=clean,
        clean_accuracy=clean_accuracy,
    )
    write_text(Path(path), html)
    return Report(Path(path), facts)
