"""Judge once more what a run has found: by labels, by more images, or as the user decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from soda_tta.adaptors import Identity
from soda_tta.box import Box, Ledger, Meter, load_box
from soda_tta.data import Images, open_images
from soda_tta.data.resizing import size_text
from soda_tta.data.scenes import scenes_among
from soda_tta.engine.class_matching import unmatched
from soda_tta.engine.events import Answered, Listener
from soda_tta.engine.plan import query_limit
from soda_tta.engine.rejudge_conditions import judged_by_condition, with_answers
from soda_tta.engine.run import Run
from soda_tta.engine.stated_prior import UNKNOWN, shares_of
from soda_tta.engine.working_size import at_working_size
from soda_tta.errors import BudgetError, ImageError, RunError
from soda_tta.judging.candidate import Candidate
from soda_tta.judging.labelled import judge_labelled
from soda_tta.judging.verdict import Verdict, judge, moved
from soda_tta.randomness import RandomStream, generator
from soda_tta.storage.book import Book
from soda_tta.types import Array

QUERIES = 4  # per further image: as it is, shifted, adapted, adapted and shifted
ACCEPTED = "Adopt: accepted by the user."
UNLABELLED = -1  # in an array of labels


def rejudge(
    run: Run,
    *,
    labels: Array | None = None,
    images: Any = None,
    box: Any = None,
    budget: float = QUERIES,
    accept: bool = False,
    listener: Listener | None = None,
) -> Run:
    """Judge once more what a run has found, without searching again.

    Parameters
    ----------
    run : a run with a candidate; see `Run.candidate`.
    labels : true classes, one per image of the run, -1 where unknown. They decide.
    images, box : further unlabelled images to judge by, and the deployed model.
    budget : queries per further image, see `judge_by_images`.
    accept : adopt what was found because the user says so.
    listener : receives events while further images are sent.

    Returns
    -------
    The run with its new verdict, and with the answers and the adaptor that follow from it. Images
    that were never adapted keep their answer; `apply` answers them.
    """
    chosen = (labels is not None, images is not None, accept)
    if sum(chosen) != 1:
        raise RunError("judge by one of labels=, images= (with box=) and accept=True.")
    if labels is not None:
        return judge_by_labels(run, labels)
    if images is not None:
        return judge_by_images(run, images, box, budget=budget, listener=listener)
    return accepted(run)


def judge_by_labels(run: Run, labels: Array) -> Run:
    """Let labels decide whether to deploy what the run has found.

    Only images that the search did not use count, and of a run that kept its images as they are
    only those that the verdict was based on: the others were not adapted. No query is sent.

    Parameters
    ----------
    run : a run with a candidate.
    labels : integer array, one per image of the run; -1 where the class is not known.

    Returns
    -------
    The run with its new verdict, and with the answers and the adaptor that follow from it.
    """
    if run.conditions is not None:
        return judged_by_condition(
            run,
            lambda alone, own, level: verdict_by_labels(
                alone, np.where(own, labels, UNLABELLED), level
            ),
            level_of(run),
        )
    return decided(run, candidate_of(run), verdict_by_labels(run, labels, level_of(run)))


def verdict_by_labels(run: Run, labels: Array, level: float) -> Verdict:
    """What labels say about the one candidate of a run."""
    candidate = candidate_of(run)
    adopted = run.verdict is not None and run.verdict.adopt and run.after is not None
    if adopted:  # both as the model returned them: a stated prior applies to either
        after = unmatched(run.probabilities, run.adaptor.answering.weights)
    else:
        after = candidate.answers(len(run.before))
    usable = np.asarray(labels) != UNLABELLED
    usable &= ~np.isnan(after[:, 0])
    usable[candidate.searched] = False
    scenes = np.arange(len(run.before)) + len(candidate.scenes)  # further images: each its own
    scenes[candidate.judged] = candidate.scenes
    return judge_labelled(
        run.before[usable],
        after[usable],
        np.asarray(labels)[usable],
        level=level,
        scenes=scenes[usable],
        otherwise=run.verdict,
    )


def judge_by_images(
    run: Run,
    images: Any,
    box: Any,
    *,
    budget: float = QUERIES,
    seed: int = 0,
    listener: Listener | None = None,
) -> Run:
    """Judge what the run has found on further images, together with those of its own verdict.

    Each further judgement halves the accepted rate of wrong adoptions, so that over all of them
    it stays below twice the first.

    Parameters
    ----------
    run : a run with a candidate.
    images : further unlabelled images, which the run has not seen.
    box : the deployed model.
    budget : queries per image; each image that is used costs 4, so fewer use a random part.
    seed : chooses that part.
    listener : receives an `Answered` event for every piece.
    """
    if run.conditions is not None:
        raise RunError(
            "further images cannot judge a run over several conditions yet; judge by labels=, or "
            "make a run of its own with these images."
        )
    candidate = candidate_of(run)
    deployed = load_box(box)
    source = at_working_size(open_images(images), deployed.input.view)
    if source.fingerprint() == run.card.images.get("fingerprint"):
        raise ImageError("these are the images of the run itself; give others.")
    if source.size != tuple(run.card.images.get("size", source.size)):
        raise ImageError(
            f"these images are {size_text(source.size)} pixels and those of the run "
            f"{size_text(run.card.images['size'])}; give them the same size."
        )
    used = min(len(source), query_limit(budget, len(source)) // QUERIES)
    if not used:
        raise BudgetError(f"each further image costs {QUERIES} queries; raise the budget.")
    order = generator(seed, RandomStream.SPLIT).permutation(len(source))
    places = np.sort(order[:used])
    meter = Meter(deployed, Ledger(QUERIES * used, Book(None)), None)
    views = asked(source, places, meter.asking("judge"), candidate, listener)
    found = scenes_among(source, places)
    before, moved_before = candidate.views_before(run.before)
    verdict = judge(
        (np.concatenate([before, views[0]]), np.concatenate([moved_before, views[1]])),
        (
            np.concatenate([candidate.after, views[2]]),
            np.concatenate([candidate.moved_after, views[3]]),
        ),
        level_of(run) / 2 ** (1 + len(run.earlier_verdicts)),
        scenes=np.concatenate([candidate.scenes, found + candidate.scenes.max() + 1]),
        prior=shares_of(str(run.card.settings.get("prior", UNKNOWN)), run.before.shape[1]),
    )
    ledger = Ledger()
    ledger.queries = dict(run.ledger.queries)
    ledger.queries["judge"] = ledger.queries.get("judge", 0) + QUERIES * used
    ledger.calls = run.ledger.calls + meter.ledger.calls
    return replace(decided(run, candidate, verdict), ledger=ledger)


def asked(
    images: Images,
    places: Array,
    box: Box,
    candidate: Candidate,
    listener: Listener | None,
) -> list[Array]:
    """Responses to the images as they are, shifted, adapted, and adapted and shifted."""
    pieces = []
    for start in range(0, len(places), images.at_once):
        original = images[places[start : start + images.at_once]]
        adapted = candidate.adaptor(original)
        views = (original, moved(original), adapted, moved(adapted))
        pieces.append([box(view) for view in views])
        if listener is not None:
            done = min(len(places), start + images.at_once)
            listener(Answered("judge", done, len(places)))
    return [np.concatenate(rows) for rows in zip(*pieces, strict=True)]


def accepted(run: Run) -> Run:
    """Adopt what the run has found because the user says so; the verdict records that."""
    if run.verdict is None:
        raise RunError("this run has no verdict; there is nothing to overrule.")
    if run.conditions is not None:
        return judged_by_condition(run, lambda alone, own, level: overruled(alone), 1.0)
    return decided(run, candidate_of(run), overruled(run))


def overruled(run: Run) -> Verdict:
    """The verdict as the user decides it."""
    assert run.verdict is not None
    sentence = f"{ACCEPTED} The verdict was: {run.verdict.sentence}"
    return replace(run.verdict, adopt=True, sentence=sentence, basis="user")


def candidate_of(run: Run) -> Candidate:
    """What the run has found; RunError if there is nothing."""
    if run.candidate is None:
        raise RunError(
            "this run has no candidate to judge: its method gives no verdict, or its search found "
            "no change that helps."
        )
    return run.candidate


def level_of(run: Run) -> float:
    """The accepted rate of wrong adoptions."""
    return float(run.card.settings.get("level", 0.01))


def decided(run: Run, candidate: Candidate, verdict: Verdict) -> Run:
    """The run as it follows from a verdict; images that were never adapted keep their answer."""
    earlier = list(run.earlier_verdicts)
    was_adopted = run.verdict is not None and run.verdict.adopt
    if run.verdict is not None:
        earlier.append(run.verdict)
    new = replace(run, verdict=verdict, earlier_verdicts=earlier)
    if verdict.adopt == was_adopted:
        return new
    if not verdict.adopt:
        return with_answers(new, Identity(), run.before.copy(), 0)
    rows = candidate.answers(len(run.before))
    unknown = np.isnan(rows[:, 0])
    rows[unknown] = run.before[unknown]
    return with_answers(new, candidate.adaptor, rows, int(unknown.sum()))
