"""From findings to what to do, with which method, at what price."""

from __future__ import annotations

import math
from dataclasses import dataclass

from soda_tta.doctor.finding import Finding
from soda_tta.engine.plan import Plan, plan_run
from soda_tta.errors import BudgetError
from soda_tta.judging.estimate import Estimate
from soda_tta.methods import all_methods

# In order of what a pipeline must know first: go and try are both a run, leave is none, fix is the model's, not ours
ADVICE = ("go", "try", "leave", "fix", "unknown")
MODEL_TRAITS = ("answers", "digits", "completeness", "repeatability", "sensitivity")
LITTLE_TO_GAIN = 0.85  # estimated accuracy above which a restoration that is not sure to help is more likely to harm
SEARCH = 20_000  # queries a search by candidates is content with, however many images share them
FEWEST, MOST = 5.0, 30.0  # queries an image
FEW_IMAGES = 100


@dataclass(frozen=True)
class Prescription:
    """What to run, and what it costs; `plan` is None if the budget does not reach."""

    method: str
    budget: float
    plan: Plan | None

    @property
    def searches(self) -> bool:
        """Whether there is enough to learn from."""
        return self.plan is not None and "probe" in self.plan.queries


def prescribe(images: int) -> Prescription:
    """The method of least queries that is there, with a budget that gives its search enough of them."""
    known = all_methods()
    method = "soda-e" if "soda-e" in known else "soda-auto"
    budget = (
        min(MOST, max(FEWEST, math.ceil(SEARCH / images) + 2.0)) if method == "soda-e" else 100.0
    )
    try:
        plan = plan_run(known[method], images, budget)
    except BudgetError:
        plan = None
    return Prescription(method, budget, plan)


def images_needed(images: int) -> int:
    """From how many on there is something to prescribe."""
    return next(count for count in range(images, 10_000) if prescribe(count).searches)


def cost(prescription: Prescription, images: int, price: float | None) -> Finding:
    method, budget, plan = prescription.method, prescription.budget, prescription.plan
    if plan is None or not prescription.searches:
        return Finding(
            name="cost",
            state="caution",
            sentence=f"{method} cannot work with {budget:g} queries an image on {images:,} images.",
            numbers={"method": method, "budget": budget},
            remedy=f"Give {images_needed(images)} images or more.",
        )
    numbers = {
        "method": method,
        "budget": budget,
        "queries": plan.total,
        "queries_per_image": plan.queries_per_image,
    }
    money = ""
    if price is not None:
        numbers |= {"price": price, "money": plan.total / 1000 * price}
        money = f", {numbers['money']:,.2f} at {price:g} a thousand"
    return Finding(
        name="cost",
        state="good",
        sentence=f"{method} with a budget of {budget:g} would ask {plan.total:,} queries for {images:,} images "
        f"({plan.queries_per_image:.1f} an image{money}).",
        numbers=numbers,
    )


def accuracy(estimate: Estimate) -> Finding:
    """Seen from adapting, a model that is right already has little to gain."""
    little = estimate.accuracy >= LITTLE_TO_GAIN and not estimate.bound
    return Finding(
        name="accuracy",
        state="caution" if little else "good",
        sentence=estimate.sentence,
        numbers={
            "accuracy": estimate.accuracy,
            "low": estimate.low,
            "high": estimate.high,
            "error": estimate.error,
        },
        remedy="There is little to gain here; look at the trial below." if little else "",
    )


def enough(images: int, classes: int) -> Finding:
    numbers = {"images": images, "classes": classes}
    if images >= max(FEW_IMAGES, 2 * classes):
        return Finding(
            name="images",
            state="good",
            sentence=f"{images:,} images are enough to learn from.",
            numbers=numbers,
        )
    return Finding(
        name="images",
        state="caution",
        sentence=f"{images:,} images of {classes} classes are few: mutual information needs a few hundred, and "
        "what this page says is rough.",
        numbers=numbers,
        remedy="Collect more images of the same camera; they need no labels.",
    )


def advise(
    findings: list[Finding],
    estimate: Estimate | None,
    failed: str | None,
    images: int | None = None,
) -> tuple[str, str]:
    """One word of ADVICE, and why; `images` there are, if they may be too few."""
    found = {finding.name: finding for finding in findings}
    bad = [finding.name for finding in findings if finding.state == "bad"]
    broken = [name for name in MODEL_TRAITS if name in bad]
    if broken:
        return (
            "fix",
            f"The model cannot be adapted to as it answers now: {found[broken[0]].sentence}",
        )
    if "shift" in bad:
        return "leave", "The images are not shifted as far as can be seen: leave them as they are."
    if "balance" in bad:
        return (
            "leave",
            "The classes are unbalanced, and the objective would push images into the rare ones: do not adapt.",
        )
    if images is not None and not prescribe(images).searches:
        needed = images_needed(images)
        return (
            "leave",
            f"{images} images are too few to learn from and to judge by: collect {needed} or more.",
        )
    if "trial" in found and found["trial"].state == "good":
        return "go", "Adapting is likely to help: even a plain restoration does."
    if failed is not None or estimate is None:
        return "unknown", "The examination is incomplete."
    tried = "trial" in found
    restoration = (
        "no plain restoration is sure to help"
        if tried
        else "there were too few to try plain restorations on"
    )
    right = f"{'at most ' if estimate.bound else ''}about {estimate.accuracy:.0%} of the answers are right"
    if estimate.accuracy >= LITTLE_TO_GAIN and not estimate.bound:
        return "leave", f"There is little to gain: {right} already, and {restoration}."
    reason = (
        ""
        if "shift" in found
        else " Give clean images (--clean) to know whether these are shifted at all."
    )
    return (
        "try",
        f"Adapting may help: {right}, but {restoration}. Trust the run's own verdict.{reason}",
    )
