"""Are the probabilities usable? What the rows themselves tell, and whether the same question gets the same answer."""

from __future__ import annotations

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.types import Array

GRIDS = (
    10,
    100,
    255,
    256,
    1000,
    10_000,
)  # steps in one; finer ones a float32 cannot tell from no rounding
SUM_TOLERANCE = 1e-4  # float16 rows of a thousand classes stay inside
SATURATED = 1e-6  # this near to one, a float32 answer has no slope left to follow
NEXT_TO = 1e-5  # zero and one are on every grid, and so is what a sure model puts next to them
SAME = 1e-5  # threads that add in another order differ by less


def sums(answers: Array) -> Finding:
    """Rows further off than a box allows never get here: the box refuses them with a remedy of its own."""
    worst = float(np.abs(answers.sum(axis=1, dtype=np.float64) - 1).max())
    numbers = {"largest_deviation": worst, "classes": answers.shape[1]}
    if worst <= SUM_TOLERANCE:
        return Finding(name="sum", state="good", sentence="Every row sums to one.", numbers=numbers)
    return Finding(
        name="sum",
        state="caution",
        sentence=f"Rows miss one by up to {worst:.1g}: they were rounded, or something was cut off.",
        numbers=numbers,
        remedy="Ask the model for more digits and for every class, if it can give them.",
    )


def steps_in_one(answers: Array) -> int | None:
    """Of how many equal steps all answers are whole multiples; None if of none that can be told."""
    exact = answers[(answers > NEXT_TO) & (answers < 1 - NEXT_TO)].astype(np.float64)
    if not len(exact):
        return None
    for steps in GRIDS:
        scaled = exact * steps
        if np.abs(scaled - np.rint(scaled)).max() <= 2e-7 * steps + 1e-9:
            return steps
    return None


def digits(answers: Array) -> Finding:
    """Rounding hides what a small change of an image does."""
    if ((answers == 0) | (answers == 1)).all():
        return Finding(
            name="digits",
            state="good",
            sentence="Answers are classes; there are no digits to round.",
        )
    steps = steps_in_one(answers)
    numbers = {"steps": steps}
    if steps is None:
        if (answers == answers.astype(np.float16)).all():
            return Finding(
                name="digits",
                state="good",
                sentence="Answers are half-precision numbers: three to four digits, enough for a search by candidates.",
                numbers={**numbers, "half": True},
                remedy="Finite differences (soda) want full precision, or a larger mu.",
            )
        return Finding(
            name="digits",
            state="good",
            sentence="Answers are not visibly rounded.",
            numbers=numbers,
        )
    told = (
        f"{len(str(steps)) - 1} digits" if str(steps).strip("0") == "1" else f"steps of 1/{steps}"
    )
    told = "1 digit" if steps == 10 else told
    if steps >= 100:
        return Finding(
            name="digits",
            state="caution",
            sentence=f"Answers are rounded to {told}: a probe that moves them by less sees nothing.",
            numbers=numbers,
            remedy="Ask the model for more digits; until then prefer a search by candidates (soda-e) to differences.",
        )
    return Finding(
        name="digits",
        state="bad",
        sentence=f"Answers are rounded to {told}: too coarse to tell a better image from a worse one.",
        numbers=numbers,
        remedy="Ask the model for more digits.",
    )


def completeness(answers: Array) -> Finding:
    """Services often keep the few best classes and fill the rest with one number."""
    classes = answers.shape[1]
    above = answers > answers.min(axis=1, keepdims=True)
    kept = above.sum(axis=1)
    most = int(kept.max())
    numbers = {"kept": most, "classes": classes}
    if most == 0:
        return Finding(
            name="completeness",
            state="bad",
            sentence="The model gives every class the same probability: there is nothing to learn from.",
            numbers=numbers,
            remedy="Check its normalisation and its output (--mean, --std, --pixel-range, --output).",
        )
    hard = bool((answers.max(axis=1) >= 1 - SATURATED).all()) and bool(
        (answers.min(axis=1) == 0).all()
    )
    if most == 1 and classes > 2 and (hard or (kept == 1).all()):
        return Finding(
            name="completeness",
            state="caution",
            sentence="Only the best class is answered, or nothing is left for the others: there is no slope to follow, "
            "but classes can be counted.",
            numbers=numbers,
            remedy="Ask the model for the probabilities of all classes; until then search by candidates (soda-e).",
        )
    if (
        classes - most >= 2 and np.mean(kept == most) >= 0.9
    ):  # rounding alone would leave a varying number
        return Finding(
            name="completeness",
            state="caution",
            sentence=f"Only the best {most} of {classes} classes are answered; the rest is one number for all.",
            numbers=numbers,
            remedy="Ask the model for all classes: what the others gain or lose is part of the objective.",
        )
    return Finding(
        name="completeness",
        state="good",
        sentence=f"All {classes} classes are answered.",
        numbers=numbers,
    )


def saturation(answers: Array) -> Finding:
    """An answer of exactly one does not move when the image does."""
    top = answers.max(axis=1)
    full = float(np.mean(top >= 1 - SATURATED))
    sure = float(np.mean(top >= 0.999))
    numbers = {"saturated": full, "above_0.999": sure, "mean_confidence": float(top.mean())}
    told = f"{full:.0%} of the answers are exactly one, {sure:.0%} above 0.999"
    if full > 0.8:
        return Finding(
            name="saturation",
            state="caution",
            sentence=f"{told}: they do not move with the image until the class does.",
            numbers=numbers,
            remedy="Ask the model for logits (--logits) or a higher temperature; until then prefer soda-e.",
        )
    if full > 0.3 or sure > 0.9:
        return Finding(
            name="saturation",
            state="caution",
            sentence=f"{told}: few images are left to learn from.",
            numbers=numbers,
            remedy="More images help; so do logits (--logits) or a higher temperature.",
        )
    return Finding(name="saturation", state="good", sentence=f"{told}.", numbers=numbers)


def repeatability(first: Array, again: Array, once_more: Array | None) -> Finding:
    """`again` has the same images in other company; `once_more`, if that differed, in the same company as `again`."""
    difference = float(np.abs(first - again).max())
    changed = float(np.mean(first.argmax(axis=1) != again.argmax(axis=1)))
    numbers = {"images": len(first), "largest_difference": difference, "answers_changed": changed}
    if difference <= SAME:
        return Finding(
            name="repeatability",
            state="good",
            sentence="The same image gets the same answer, in whatever company it is asked.",
            numbers=numbers,
        )
    told = f"up to {difference:.2g} apart, another class for {changed:.0%}"
    if once_more is not None and float(np.abs(again - once_more).max()) <= min(
        SAME, difference / 10
    ):
        return Finding(
            name="repeatability",
            state="bad" if changed > 0.05 else "caution",
            sentence=f"An image's answer depends on the other images of its request ({told}).",
            numbers={**numbers, "company": True},
            remedy="Put the model into evaluation mode (its batch norm is in training mode), or ask one image at a "
            "time (--request-size 1).",
        )
    return Finding(
        name="repeatability",
        state="bad" if changed > 0.05 else "caution",
        sentence=f"The same image does not get the same answer twice ({told}).",
        numbers={**numbers, "company": False},
        remedy="Switch off what is random in the model (dropout, random crops); comparing needs more images otherwise.",
    )
