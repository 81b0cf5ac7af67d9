"""Labels on the command line of `adapt`: they measure and judge afterwards, and reach no search."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from soda_tta.errors import RunError, SodaError

if TYPE_CHECKING:
    from soda_tta.data import Images
    from soda_tta.engine.run import Run
    from soda_tta.judging.certificate import Certificate


def check_labels(options: argparse.Namespace, images: Images) -> None:
    """Report what is wrong with the labels before anything is billed."""
    if options.labels:
        from soda_tta.report.labels import read_labels

        names = [images.name(index) for index in range(len(images))]
        read_labels(options.labels, names, classes_of(options), None)
    elif options.classes:
        raise RunError("--classes explains the names in --labels; give --labels too.")


def judged_by_labels(options: argparse.Namespace, result: Run) -> Run:
    """Let labels decide about what was found; the run has ended, so they cannot influence it."""
    if not options.labels or result.candidate is None or result.after is None:
        return result
    from soda_tta.engine.rejudge import rejudge
    from soda_tta.report.labels import read_labels

    classes = result.before.shape[1]
    try:
        read = read_labels(options.labels, result.names, classes_of(options), classes)
    except SodaError:
        return result  # `show` says what is wrong with them
    judged = rejudge(result, labels=read.values)
    judged.save(options.out)
    return judged


def classes_of(options: argparse.Namespace) -> Any:
    """The names of the model's classes, if given."""
    from soda_tta.report.labels import read_classes

    return read_classes(options.classes) if options.classes else None


def certify_run(result: Run, options: argparse.Namespace) -> Certificate:
    """What the labelled images say. The run has ended, so they cannot have influenced it."""
    from soda_tta.judging.certificate import certify
    from soda_tta.report.labels import read_labels

    classes = result.before.shape[1]
    try:
        read = read_labels(options.labels, result.names, classes_of(options), classes)
    except SodaError as error:
        words = ["soda-tta", "report", options.out, "--labels", options.labels]
        if options.classes:
            words += ["--classes", options.classes]
        text = f"{error} The run itself is finished; with labels that fit: {shlex.join(words)}"
        raise type(error)(text) from error
    import numpy as np

    known = read.known & ~np.isnan(result.before[:, 0])
    if not known.any():
        raise SodaError(
            f"{result.card.method} did not send these images as they are, so labels show no gain; "
            "measure the model alone with --method deployed."
        )
    return certify(result.before[known], result.probabilities[known], read.values[known])
