"""`adapt`: learn from unlabelled images how to change them so that the model does better."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from soda_tta.box import Box, load_box
from soda_tta.data import Images, open_images
from soda_tta.engine.card import make_card
from soda_tta.engine.clean import open_clean
from soda_tta.engine.convention import decide, most_queries
from soda_tta.engine.events import Listener, Notice
from soda_tta.engine.execution import Execution, notify
from soda_tta.engine.groups import make_groups, make_kinds
from soda_tta.engine.plan import plan_run
from soda_tta.engine.progress import shown
from soda_tta.engine.run import Run
from soda_tta.engine.working_size import at_working_size
from soda_tta.errors import MethodError
from soda_tta.methods.method import Method
from soda_tta.methods.registry import find_method
from soda_tta.storage.run_folder import RunFolder
from soda_tta.storage.stopwatch import Stopwatch


def adapt(  # noqa: PLR0913 - the front door: every choice of a run has a name
    images: Any,
    box: Any,
    *,
    method: str | Method = "soda-e",
    budget: float | None = None,
    clean: Any = None,
    clean_accuracy: float | None = None,
    seed: int = 0,
    groups: Any = None,
    condition_by: Any = None,
    sample: int | None = None,
    answers: str = "all",
    out: str | Path | None = None,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
    listener: Listener | None = None,
    progress: bool = False,
    command: list[str] | None = None,
    **settings: Any,
) -> Run:
    """Adapt unlabelled images to a deployed model. Neither labels nor the model's weights are used.

    Parameters
    ----------
    images : an array, a folder, a list of files, an .npy or .npz file, or a data set.
    box : the deployed model: whatever `load_box` takes.
    method : a name from `soda-tta methods`, your own as "file.py:name", or a Method.
    budget : the most queries per image, all purposes together; by default what the method needs.
    clean : images from before the shift, without labels; at most 500 of them are sent once, within
        the budget. With `clean_accuracy` they calibrate estimates of the accuracy. They do not
        change what is learned.
    clean_accuracy : the accuracy of the model on such images, as a share in (0, 1].
    seed : everything random follows from it.
    groups : which images belong together, such as frames of one scene: a sequence with one value
        per image, or a rule for image files ("folder", "csv:COLUMN", "exif:TAG", "name:REGEX");
        "none" makes every image independent. By default near copies are found from the pixels.
    condition_by : what is known about the conditions of the images, such as their camera or the
        hour: a sequence or a rule, as for `groups`. Each is split further where its images differ.
    sample : learn from so many of the images, chosen at random; the pixels of the others are not
        read. `images` may then also be an archive: tar or Parquet files, or an address (s3:// ...).
        The budget is per image of the sample.
    answers : "all" answers every image that it learns from in the end; "none" leaves that out.
        `apply` and `apply_archive` answer any images with what was learned.
    out : a folder for the run and, while it works, for all that is needed to resume it.
    resume : continue the run in `out`, if there is one, after a crash or a stop.
    stop : called after every step. Once it returns True, `adapt` returns the unfinished run, with
        `stopped="interrupted"`. Without it, Ctrl-C raises KeyboardInterrupt as usual.
        `resume=True` continues either way.
    listener : receives events (see `soda_tta.engine.events`); without one, notices are warnings.
    progress : show a bar, in a terminal or a notebook, and notices in place of warnings.
    command : what the user typed, for the report to repeat.
    settings : changes to the method's settings, such as q=10 or lr="auto".

    Examples
    --------
    >>> import numpy as np
    >>> def model(images):  # yours: "model.onnx", "http://host:8000/v2/models/NAME" ...
    ...     share = images.mean(axis=(1, 2, 3))
    ...     return np.stack([share, 1 - share], axis=1)
    >>> images = np.random.default_rng(0).random((40, 3, 8, 8), np.float32)
    >>> run = adapt(images, model, method="deployed")
    >>> run.probabilities.shape, run.ledger
    ((40, 2), Ledger(40 queries: select 40))
    """
    watch = Stopwatch()
    chosen = find_method(method).but(**settings)
    deployed = load_box(box)
    check_answers(answers, chosen)
    opened = open_for_run(images, sample, seed, out, resume)
    known = open_clean(clean, clean_accuracy, seed)
    clean_count = 0 if known is None else len(known.images)
    aside = {"clean": clean_count, "convention": most_queries(deployed)}
    check_call(chosen, at_working_size(opened, deployed.input.view), deployed, seed)
    grouping = make_groups(opened, groups, chosen)
    kinds = make_kinds(opened, condition_by, chosen)
    plan_run(chosen, len(opened), budget, aside)  # refuses a budget that is too small
    with ExitStack() as stack:
        audience = stack.enter_context(shown(listener, progress=progress))
        examples = opened if known is None else known.images
        deployed, found = decide(deployed, examples, seed, out, partial(notify, audience))
        aside["convention"] = 0 if found is None else found.queries
        source = at_working_size(opened, deployed.input.view)
        plan = plan_run(chosen, len(source), budget, aside, answers)
        card = make_card(chosen, plan, source, deployed, budget, seed, command, grouping, answers)
        card = card.with_parts(clean=known, convention=found, condition_by=kinds)
        folder = stack.enter_context(RunFolder.open(out, card.facts(), resume=resume))
        if folder.path is not None and folder.ended:
            folder.finish()  # a crash may have come between the last file and this
            notify(audience, Notice(f"{folder.path} holds a finished run; no query was sent."))
            return Run.load(folder.path)
        execution = Execution(chosen, source, deployed, plan, card, folder, watch)
        execution.groups = None if grouping is None else grouping.numbers
        execution.kinds = None if kinds is None else kinds.numbers
        execution.clean = known
        execution.convention = found
        execution.listen(audience, stop)
        run = execution.execute(is_new=not resume)
        if folder.path is not None:
            run.save(folder.path)
            if run.stopped != "interrupted":
                folder.finish()
        return run


def check_answers(answers: str, method: Method) -> None:
    """Raise an error for a value that `answers` cannot have."""
    if answers == "none" and not method.learns_adaptor:
        raise MethodError(
            f"{method.name} leaves no adaptor to answer with later; leave out answers='none'."
        )
    if answers not in ("all", "none"):
        raise MethodError(
            f"answers={answers!r} is not valid; give 'all', every image that is learned from, or "
            "'none'. apply_archive() answers an archive with what was learned."
        )


def open_for_run(
    images: Any, sample: int | None, seed: int, out: str | Path | None, resume: bool
) -> Images:
    """The images that a run learns from; a sample is the same when the run is resumed."""
    if sample is None:
        return open_images(images)
    folder = RunFolder(out)
    folder.check_free(resume)
    return open_images(images, sample=sample, seed=seed, kept=folder.sample_path())


def check_call(method: Method, images: Images, box: Box, seed: int) -> None:
    """Raise an error for what can be known to fail before the first query."""
    if seed < 0:
        raise MethodError(f"seed is {seed}; give 0 or more.")
    if method.needs != "probabilities":
        _ = box.module  # refuses a box that shows only probabilities
    method.check(images)
