"""The class prior that a user states: how frequent the classes are among the images."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.engine.run import Run
from soda_tta.errors import MethodError
from soda_tta.foreign_text import quoted
from soda_tta.storage.run_folder import RunFolder
from soda_tta.types import Array

UNKNOWN = "unknown"  # nothing is stated, and answers are not reweighted
BALANCED = "balanced"  # all classes are equally frequent
REMEDY = (
    "give 'balanced', 'unknown', shares or counts such as 0.7,0.2,0.1 (one per class), a file of "
    "them (.json, or one line per class), or the folder of a run on images from before the shift"
)


def stated_prior(prior: Any) -> str:
    """A stated prior as text: "unknown", "balanced", or one share per class with commas.

    Parameters
    ----------
    prior : str, path, Run, or sequence of float
        "unknown", "balanced", shares or counts in the order of the classes, a file of them, or a
        run (or its folder) on images from before the shift, see `shares_of_run`.

    Examples
    --------
    >>> stated_prior([30, 10]), stated_prior("balanced")
    ('0.75,0.25', 'balanced')
    """
    if prior is None:
        return UNKNOWN
    if isinstance(prior, str) and prior in (UNKNOWN, BALANCED):
        return prior
    if isinstance(prior, Run):
        return as_text(shares_of_run(prior))
    if isinstance(prior, str | Path) and not is_list(str(prior)):
        return as_text(read_shares(Path(prior)))
    if isinstance(prior, str):
        return as_text([float(each) for each in prior.split(",")])
    return as_text(prior)


def prior_from(run: Run | str | Path) -> str:
    """The class shares that the model answered in a run on images from before the shift.

    Parameters
    ----------
    run : a Run, or the folder of one. `adapt(images, box, method="deployed", out=...)` makes one
        for a query per image.
    """
    if not isinstance(run, Run):
        run = Run.load(run)
    return as_text(shares_of_run(run))


def shares_of_run(run: Run) -> Array:
    """The mean of the answers of a run."""
    rows = run.probabilities[~np.isnan(run.probabilities[:, 0])]
    if not len(rows):
        raise MethodError("the run that the prior is taken from has no answers; finish it first.")
    shares: Array = rows.mean(axis=0, dtype=np.float64)
    return shares


def shares_of(prior: str, classes: int) -> Array | None:
    """The share of each class, as stated; None if nothing is.

    Parameters
    ----------
    prior : as `stated_prior` returns it.
    classes : of the model.

    Examples
    --------
    >>> shares_of("balanced", 4).tolist(), shares_of("unknown", 4)
    ([0.25, 0.25, 0.25, 0.25], None)
    """
    if prior == UNKNOWN:
        return None
    if prior == BALANCED:
        return np.full(classes, 1 / classes)
    shares = np.array([float(each) for each in prior.split(",")])
    if len(shares) != classes:
        raise MethodError(
            f"the prior has {len(shares)} shares and the model {classes} classes; give one share "
            "for each class, in the order of the model's classes."
        )
    total: Array = shares / shares.sum()
    return total


def is_list(text: str) -> bool:
    """Whether a text is numbers with commas between them."""
    try:
        return len([float(each) for each in text.split(",")]) > 1
    except ValueError:
        return False


def as_text(shares: Any) -> str:
    """Shares or counts as text, divided by their sum."""
    try:
        exact = np.asarray(shares, np.float64)
    except (TypeError, ValueError) as error:
        raise MethodError(f"prior={quoted(shares)} is not valid; {REMEDY}.") from error
    valid = exact.ndim == 1 and len(exact) >= 2 and np.isfinite(exact).all() and exact.min() >= 0
    if not valid or not exact.sum() > 0:
        raise MethodError(
            f"the prior is {quoted(shares)}; its shares must be finite numbers of 0 or more, one "
            f"per class, not all 0: {REMEDY}."
        )
    return ",".join(f"{share:.6g}" for share in exact / exact.sum())


def read_shares(path: Path) -> Array:
    """The shares in a file, or of the run in a folder."""
    if path.is_dir() and RunFolder(path).holds_run:
        return shares_of_run(Run.load(path))
    try:
        text = path.read_text(encoding="utf-8")
        values = parsed(text, is_json=path.suffix.lower() == ".json")
    except (OSError, UnicodeDecodeError) as error:
        raise MethodError(f"prior={path} is neither a word nor a file; {REMEDY}.") from error
    except (TypeError, ValueError) as error:
        raise MethodError(f"{path} does not hold one share per class: {REMEDY}.") from error
    return np.array(values, np.float64)


def parsed(text: str, *, is_json: bool) -> Sequence[float]:
    """One share per class: a JSON list, or lines of a share or of a class and its share.

    >>> parsed("class,share\\n1,0.25\\n0,0.75\\n", is_json=False)
    [0.75, 0.25]
    """
    if is_json:
        return [float(each) for each in json.loads(text)]
    lines = [line.split(",") for line in text.split("\n") if line.strip()]
    if lines and not is_number(lines[0][-1]):
        lines = lines[1:]  # a header
    if lines and all(len(line) == 1 for line in lines):
        return [float(line[0]) for line in lines]
    if not lines:
        raise ValueError("the file is empty")
    by_class = {int(number): float(share) for number, share in lines}
    return [by_class.get(number, 0.0) for number in range(max(by_class) + 1)]


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
