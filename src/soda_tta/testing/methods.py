"""`check_method`: whether a method keeps its plan, its budget, its seed and its promises."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box import Box
from soda_tta.engine.adapt import adapt
from soda_tta.engine.plan import plan_run
from soda_tta.engine.run import Run
from soda_tta.errors import BudgetError, MethodError
from soda_tta.methods import Method, find_method
from soda_tta.testing.data import make_black_box, make_images, make_white_box
from soda_tta.types import Array


def check_method(
    method: str | Method, images: Array | None = None, box: Box | None = None, **settings: Any
) -> None:
    """Check a method by running it several times on small data.

    Parameters
    ----------
    method : a Method, a name, or "file.py:name".
    images : float32 (n, 3, height, width) in [0, 1]; by default 64 small ones.
    box : the model; by default a small one that shows what the method needs.
    settings : changes that make the method fast, such as epochs=2.

    Raises
    ------
    AssertionError
        With what is wrong.

    Examples
    --------
    >>> check_method("lame")
    """
    chosen = find_method(method).but(**settings)
    images = make_images() if images is None else images
    if box is None:
        box = make_black_box() if chosen.needs == "probabilities" else make_white_box()
    check_settings(chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = adapt(images, box, method=chosen, seed=1)
        check_run(run, chosen, images)
        again = adapt(images, box, method=chosen, seed=1)
        same = np.array_equal(run.probabilities, again.probabilities)
        assert same, "the same seed gives other answers"
        check_budget(chosen, images, box)
        check_stop(chosen, images, box, run)


def check_settings(method: Method) -> None:
    """Settings are JSON, have help text, and survive a round trip through `but`."""
    assert method.name and method.summary, "a method has a name and a summary"
    settings = method.settings
    json.dumps(settings)
    assert set(method.meanings) == set(settings), "meanings has one line per setting"
    plain = {name: value for name, value in settings.items() if value is not None}
    assert method.but(**plain).settings == settings, "but(**settings) changes something"
    text = {name: str(value) for name, value in plain.items()}
    assert method.but(**text).settings == settings, "settings given as text change something"
    method.check()  # the bench calls it without images
    try:
        method.but(no_such_setting=1)
    except MethodError:
        return
    raise AssertionError("an unknown setting must be refused with MethodError")


def check_run(run: Run, method: Method, images: Array) -> None:
    """Probabilities are valid, and no more was spent than planned."""
    assert run.probabilities.shape == run.before.shape, "there is one row per image"
    assert np.isfinite(run.probabilities).all(), "probabilities are finite"
    sums = run.probabilities.sum(axis=1)
    assert np.allclose(sums, 1, atol=1e-2), "every row of probabilities sums to 1"
    planned = plan_run(method, len(images)).queries
    for purpose, queries in run.ledger.queries.items():
        assert queries <= planned.get(purpose, 0), (
            f"{queries} queries were spent on {purpose}, {planned.get(purpose, 0)} were planned; "
            "state them in queries() or plan()"
        )
    assert run.reason, "a run says why it ended"


def check_budget(method: Method, images: Array, box: Box) -> None:
    """A budget is kept, or refused before the first query."""
    for budget in (1, 3):
        try:
            run = adapt(images, box, method=method, budget=budget, seed=1)
        except BudgetError:
            continue
        assert run.ledger.total <= budget * len(images), "the budget was exceeded"


def check_stop(method: Method, images: Array, box: Box, whole: Run) -> None:
    """A run that is stopped is returned, and resuming it ends like one that was not."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        steps = iter([False, True])
        stopped = adapt(images, box, method=method, seed=1, out=out, stop=lambda: next(steps, True))
        if stopped.stopped != "interrupted":
            return  # it has fewer than two steps
        run = adapt(images, box, method=method, seed=1, out=out, resume=True)
    same = np.array_equal(run.probabilities, whole.probabilities)
    assert same, "a run that was stopped and resumed gives other answers"
