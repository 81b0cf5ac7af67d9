"""`examine`: at most two queries per image, and what they say about adapting."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from soda_tta.box import load_box
from soda_tta.box.price import Price, as_price
from soda_tta.data import open_images
from soda_tta.doctor.advice import Advice, advise, check_cost, check_image_count, recommend
from soda_tta.doctor.conditions import check_conditions
from soda_tta.doctor.examiner import Examiner, Progress
from soda_tta.doctor.finding import Finding
from soda_tta.doctor.scenes import check_scenes
from soda_tta.errors import ImageError, MethodError
from soda_tta.judging.estimate import Estimate

SAMPLE = 500  # images; more would not change the advice


@dataclass(kw_only=True)
class Examination:
    """The result of `examine`. `examination["shift"]` is the finding of that name.

    Attributes
    ----------
    advice : {"go", "try", "leave", "fix", "unknown"}
        What to do: "go" and "try" mean adapt, "leave" means do not adapt, "fix" means repair the
        model first, "unknown" means that the model failed.
    sentence : str
        The reason for the advice.
    findings : list of Finding
        The result of every check.
    estimate : Estimate or None
        The accuracy estimated without labels, or an upper bound; None if there is not enough to
        estimate it, which the finding "accuracy" explains.
    method, budget : str and float
        The method to use and its budget in queries per image.
    images, sampled : int
        The number of images, and how many of them were examined.
    queries : dict
        The queries used, by purpose.
    query_limit : int
        The most queries the examination was allowed to use.
    seconds : float
        Its duration.
    failure : str or None
        What went wrong, if the examination is incomplete.
    seed : int
        The seed it was made with.
    clean_accuracy : float or None
        The accuracy on clean images, if it was specified.
    convention : dict or None
        The input convention that was found, and the evidence for it; None if it was not searched.
    calls : int
        The requests in which the queries were sent.
    """

    advice: Advice
    sentence: str
    findings: list[Finding]
    estimate: Estimate | None
    method: str
    budget: float
    images: int
    sampled: int
    queries: dict[str, int]
    query_limit: int
    seconds: float
    failure: str | None = None
    seed: int = 0
    clean_accuracy: float | None = None
    convention: dict[str, Any] | None = None
    calls: int = 0

    def __getitem__(self, name: str) -> Finding:
        """The finding of that name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        names = ", ".join(finding.name for finding in self.findings)
        raise KeyError(f"there is no finding {name!r}; the findings are {names}")

    def __contains__(self, name: object) -> bool:
        return any(finding.name == name for finding in self.findings)

    @property
    def total_queries(self) -> int:
        """The number of queries used."""
        return sum(self.queries.values())

    def facts(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {**asdict(self), "total_queries": self.total_queries}


def examine(
    images: Any,
    box: Any,
    *,
    clean: Any = None,
    clean_accuracy: float | None = None,
    price: Price | float | str | None = None,
    check_input: bool = False,
    sample: int = SAMPLE,
    seed: int = 0,
    progress: Progress = lambda done, limit: None,
) -> Examination:
    """Examine whether adapting images to a deployed model is likely to help.

    No labels are needed. Neither the model nor the images are changed. If the model fails half-way,
    the result contains the findings so far, and `failure` is set.

    Parameters
    ----------
    images : path, array or Images
        The images to adapt.
    box : Box, callable, module, path or address
        The deployed model, as for `load_box`.
    clean : path, array or Images, default=None
        Images as they were before the shift, without labels. They show whether there is a shift.
    clean_accuracy : float, default=None
        The accuracy of the model on the clean images, as a share in (0, 1], if it is known.
        Without it there is at most an upper bound of the accuracy, and no estimate.
    price : float or str, default=None
        Price in any currency: per 1,000 queries, or as "0.002 per call" or "2.10 per hour". By
        default that of the model's description, if it has one; otherwise no cost is reported.
    check_input : bool, default=False
        Whether another input convention is surely better than what is stated about the model, with
        at most 1,000 more queries. A box loaded with `input="auto"` is examined with the
        convention that is found.
    sample : int, default=500
        The most images to examine, and the most clean images. At most two queries are used per
        examined image.
    seed : int, default=0
        Seed of everything random.
    progress : callable, default=no effect
        Called as `progress(queries_used, query_limit)` after every call of the model.

    Returns
    -------
    Examination
        The advice, its reason, and the findings it is based on.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).random((200, 8, 8, 3), np.float32)
    >>> examination = examine(images, lambda batch: np.full((len(batch), 4), 0.25))
    >>> examination.advice, examination["completeness"].state, examination.query_limit
    ('fix', 'bad', 400)
    """
    began = time.perf_counter()
    if sample < 1:
        raise ImageError(f"sample={sample} is not a valid number of images. Use at least 1.")
    if seed < 0:
        raise MethodError(f"seed={seed} is negative. Use 0 or more.")
    if clean_accuracy is not None:
        _check_clean_accuracy(clean_accuracy, clean)
    examiner = Examiner(
        images=open_images(images),
        box=load_box(box),
        clean=None if clean is None else open_images(clean),
        check_input=check_input,
        clean_accuracy=clean_accuracy,
        sample=sample,
        seed=seed,
        progress=progress,
    )
    examiner.run()
    count = len(examiner.images)
    recommendation = recommend(count)
    findings = examiner.findings
    if examiner.probabilities is not None:
        findings.append(check_image_count(count, examiner.probabilities.shape[1]))
        findings.append(check_scenes(examiner.images, examiner.chosen))
    seconds = time.perf_counter() - began
    asked = max(1, examiner.ledger.total)
    findings.append(
        check_cost(
            recommendation,
            count,
            as_price(price) or examiner.box.price,
            calls=examiner.ledger.calls / asked,
            seconds=seconds / asked if examiner.ledger.total else None,
        )
    )
    if examiner.probabilities is not None:
        conditions = check_conditions(examiner.images, examiner.chosen, seed)
        findings += [] if conditions is None else [conditions]
    advice, sentence = advise(
        findings,
        examiner.estimate,
        examiner.failure,
        count,
        looks_right=examiner.looks_right,
    )
    return Examination(
        advice=advice,
        sentence=sentence,
        findings=findings,
        estimate=examiner.estimate,
        method=recommendation.method,
        budget=recommendation.budget,
        images=count,
        sampled=len(examiner.chosen),
        queries=examiner.ledger.by_purpose(),
        query_limit=examiner.ledger.limit or 0,
        seconds=round(time.perf_counter() - began, 3),
        failure=examiner.failure,
        seed=seed,
        clean_accuracy=clean_accuracy,
        convention=None if examiner.convention is None else examiner.convention.card(),
        calls=examiner.ledger.calls,
    )


def _check_clean_accuracy(clean_accuracy: float, clean: Any) -> None:
    if clean is None:
        raise MethodError('clean_accuracy needs clean images. Pass them, too: clean="DIR".')
    if not 0 < clean_accuracy <= 1:
        raise MethodError(
            f"clean_accuracy={clean_accuracy:g} is not a valid share. "
            "Use a number above 0 and at most 1."
        )
