"""From findings to advice: what to do, with which method, at what cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from soda_tta.box.price import Price, in_digits
from soda_tta.doctor.finding import Finding
from soda_tta.engine.plan import Plan, plan_run
from soda_tta.errors import BudgetError
from soda_tta.judging.estimate import Estimate, NoEstimate
from soda_tta.methods import all_methods
from soda_tta.wording import counted

# go, try: adapt. leave: do not adapt. fix: repair the model first. unknown: the model failed.
Advice = Literal["go", "try", "leave", "fix", "unknown"]

# Findings about the model. If one of them is bad, the model must be repaired first.
MODEL_FINDINGS = (
    "answers",
    "input",
    "logits",
    "digits",
    "completeness",
    "repeatability",
    "sensitivity",
)
# Accuracy, or its stand-in `agreement_score`, above which a restoration that may help is more
# likely to harm.
HIGH_ACCURACY = 0.85
CALIBRATE = (
    'Pass clean images and the accuracy known for them (clean="DIR", clean_accuracy=0.9), or '
    "measure it with labels of some images."
)
SEARCH_QUERIES = 20_000  # enough for a search by candidates, however many images share them
LEAST_BUDGET = 5.0  # queries per image
MOST_BUDGET = 30.0
FEW_IMAGES = 100


@dataclass(frozen=True)
class Recommendation:
    """The run to make. `plan` is None if the budget is too small for the images."""

    method: str
    budget: float  # queries per image
    plan: Plan | None

    @property
    def is_feasible(self) -> bool:
        """Whether there are enough images and queries to learn from."""
        return self.plan is not None and "probe" in self.plan.queries


def recommend(images: int) -> Recommendation:
    """The method that needs the fewest queries, with a budget that is enough for its search."""
    methods = all_methods()
    if "soda-e" in methods:
        method = "soda-e"
        enough = math.ceil(SEARCH_QUERIES / images) + 2.0
        budget = min(MOST_BUDGET, max(LEAST_BUDGET, enough))
    else:
        method = "soda-auto"
        budget = 100.0
    try:
        plan = plan_run(methods[method], images, budget)
    except BudgetError:
        plan = None
    return Recommendation(method, budget, plan)


def images_needed(images: int) -> int:
    """The smallest number of images, from `images` on, that is enough for a run."""
    return next(count for count in range(images, 10_000) if recommend(count).is_feasible)


def check_cost(
    recommendation: Recommendation,
    images: int,
    price: Price | None = None,
    *,
    calls: float = 1.0,
    seconds: float | None = None,
) -> Finding:
    """The queries of the recommended run, and their cost.

    Parameters
    ----------
    recommendation, images : the run, and its number of images.
    price : what the model charges.
    calls : requests per query, as measured.
    seconds : time per query, as measured; None if nothing was.
    """
    method = recommendation.method
    budget = recommendation.budget
    plan = recommendation.plan
    if plan is None or not recommendation.is_feasible:
        return Finding(
            name="cost",
            state="caution",
            sentence=f"{method} cannot learn from {counted(images, 'image')} with {budget:g} "
            "queries per image.",
            measurements={"method": method, "budget": budget},
            remedy=f"Use {images_needed(images)} images or more.",
        )
    measurements = {
        "method": method,
        "budget": budget,
        "queries": plan.total,
        "queries_per_image": plan.queries_per_image,
    }
    money = ""
    if price is not None:
        cost = price.cost(
            plan.total,
            calls=math.ceil(plan.total * calls),
            seconds=None if seconds is None else plan.total * seconds,
        )
        measurements |= {"price": price.number, "cost": cost}
        money = ", its cost is not known" if cost is None else f", {in_digits(cost)} at {price}"
    return Finding(
        name="cost",
        state="good",
        sentence=f"{method} with a budget of {budget:g} queries per image would use "
        f"{plan.total:,} queries for {counted(images, 'image')} "
        f"({plan.queries_per_image:.1f} per image{money}).",
        measurements=measurements,
    )


def check_accuracy(estimate: Estimate | NoEstimate, agreement: float) -> Finding:
    """High accuracy is a caution, because it leaves little to gain; so is an unknown one.

    `agreement` is the `agreement_score` of the same responses.
    """
    if isinstance(estimate, NoEstimate):
        return Finding(
            name="accuracy",
            state="caution",
            sentence=estimate.sentence,
            measurements={"accuracy": None, "low": None, "high": None, "agreement": agreement},
            remedy=CALIBRATE,
        )
    is_high = estimate.accuracy >= HIGH_ACCURACY and not estimate.bound
    remedy = CALIBRATE if estimate.bound else ""
    if is_high:
        remedy = "There is little to gain here. See the finding 'trial'."
    return Finding(
        name="accuracy",
        state="caution" if is_high else "good",
        sentence=estimate.sentence,
        measurements={
            "accuracy": estimate.accuracy,
            "low": estimate.low,
            "high": estimate.high,
            "error": estimate.error,
            "bound": estimate.bound,
            "agreement": agreement,
        },
        remedy=remedy,
    )


def check_image_count(images: int, classes: int) -> Finding:
    """Whether there are enough images to learn from."""
    measurements = {"images": images, "classes": classes}
    if images >= max(FEW_IMAGES, 2 * classes):
        return Finding(
            name="images",
            state="good",
            sentence=f"{images:,} images are enough to learn from.",
            measurements=measurements,
        )
    return Finding(
        name="images",
        state="caution",
        sentence=f"{counted(images, 'image')} for {classes} classes: mutual information needs a "
        "few hundred, and these findings are rough.",
        measurements=measurements,
        remedy="Collect more images from the same camera. They need no labels.",
    )


def advise(
    findings: list[Finding],
    estimate: Estimate | None,
    failure: str | None,
    images: int | None = None,
    *,
    looks_right: bool = False,
) -> tuple[Advice, str]:
    """The advice and its reason.

    `images` is their number, None if it is certainly enough. `looks_right` means that predictions
    are confident and evenly spread over the classes, which counts where there is no estimate.
    """
    by_name = {finding.name: finding for finding in findings}
    obstacle = _obstacle(by_name, images)
    if obstacle is not None:
        return obstacle
    if "trial" in by_name and by_name["trial"].state == "good":
        sentence = "Adapting is likely to help: even a simple restoration does."
        return "go", sentence + _separately(by_name)
    if failure is not None or "accuracy" not in by_name:
        return "unknown", "The examination is incomplete."
    restorations = "simple restorations could not be tried"
    if "trial" in by_name:
        restorations = "no simple restoration helps with certainty"
    correct, little_to_gain = _correct(estimate, looks_right)
    if little_to_gain:
        return "leave", f"There is little to gain: {correct}, and {restorations}."
    sentence = f"Adapting may help: {correct}, but {restorations}. Rely on the run's own verdict."
    if "shift" not in by_name:
        sentence += ' Pass clean images (clean="DIR") to check whether these are shifted at all.'
    return "try", sentence + _separately(by_name)


def _separately(by_name: dict[str, Finding]) -> str:
    """That several conditions are adapted separately, as a sentence; else nothing."""
    if "conditions" not in by_name:
        return ""
    number = by_name["conditions"].measurements["adapted_separately"]
    return f" The {number} conditions of the images are adapted separately." if number > 1 else ""


def _correct(estimate: Estimate | None, looks_right: bool) -> tuple[str, bool]:
    """How many predictions are correct, as far as it is known; and whether that is nearly all."""
    if estimate is not None and not estimate.bound:
        text = f"about {estimate.accuracy:.0%} of the predictions are correct"
        return text, estimate.accuracy >= HIGH_ACCURACY
    if estimate is not None:
        return f"at most {estimate.accuracy:.0%} of the predictions can be correct", False
    if looks_right:
        return "predictions are confident and evenly spread over the classes", True
    return "how many predictions are correct is not known", False


def _obstacle(by_name: dict[str, Finding], images: int | None) -> tuple[Advice, str] | None:
    """The first reason not to adapt; None if there is none."""
    bad = [name for name, finding in by_name.items() if finding.state == "bad"]
    for name in MODEL_FINDINGS:
        if name in bad:
            reason = by_name[name].sentence
            return "fix", f"The model cannot be used for adapting as it is: {reason}"
    if "shift" in bad:
        return "leave", "The images are not shifted, as far as can be measured: do not adapt."
    if "balance" in bad:
        return (
            "leave",
            "The classes are unbalanced, and the objective would push images into rare classes: "
            "do not adapt.",
        )
    if "scenes" in bad and images is not None and recommend(images).is_feasible:
        return "leave", by_name["scenes"].sentence
    if images is not None and not recommend(images).is_feasible:
        needed = images_needed(images)
        return (
            "leave",
            f"{counted(images, 'image')}: too few to learn from and to judge by. "
            f"Collect {needed} or more.",
        )
    return None
