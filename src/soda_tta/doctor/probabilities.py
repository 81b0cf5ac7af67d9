"""Checks of the probabilities: sums, digits, completeness, saturation and repeatability."""

from __future__ import annotations

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.types import Array

# Steps per unit that are recognised; float32 cannot distinguish finer ones from no rounding.
GRIDS = (10, 100, 255, 256, 1000, 10_000)
BYTE_GRIDS = (255, 256)  # of models that return bytes; the highest value of the second is 255/256
COARSEST = 100  # steps per unit a search can work with
SUM_TOLERANCE = 1e-4  # float16 rows of a thousand classes stay within it
SATURATED = 1e-6  # this close to 1, a float32 probability does not follow the image any more
NEXT_TO = 1e-5  # 0 and 1 are on every grid, and so are the values next to them
SAME = 1e-5  # threads that add in a different order differ by less
FILLED = 0.1  # share of rows with a filled-up rest above which it is no coincidence


def check_sums(probabilities: Array, *, partial: bool = False) -> Finding:
    """Whether rows sum to 1. The box has already refused rows that are far off.

    `partial` means that the box itself completes rows, so that their sums say nothing.
    """
    worst = float(np.abs(probabilities.sum(axis=1, dtype=np.float64) - 1).max())
    measurements = {"largest_deviation": worst, "classes": probabilities.shape[1]}
    if partial:
        return Finding(
            name="sum",
            state="good",
            sentence="Rows that do not sum to 1 are completed (partial=True): the classes without "
            "a value share the rest.",
            measurements={**measurements, "partial": True},
        )
    if worst <= SUM_TOLERANCE:
        return Finding(
            name="sum",
            state="good",
            sentence="Every row sums to 1.",
            measurements=measurements,
        )
    return Finding(
        name="sum",
        state="caution",
        sentence=f"Rows deviate from a sum of 1 by up to {worst:.1g}: probabilities were rounded, "
        "or classes were cut off.",
        measurements=measurements,
        remedy="Request more digits and all classes from the model, if it can return them.",
    )


def steps_per_unit(probabilities: Array) -> int | None:
    """The number of equal steps between 0 and 1 to which all probabilities are rounded.

    None if they are not rounded to any of GRIDS.

    >>> steps_per_unit(np.array([[0.25, 0.75]])), steps_per_unit(np.array([[1 / 7, 6 / 7]]))
    (100, None)
    """
    kept = returned_values(probabilities)
    inner = (kept > NEXT_TO) & (kept < 1 - NEXT_TO)
    exact = kept[inner].astype(np.float64)
    if not len(exact):
        return None
    for steps in GRIDS:
        scaled = exact * steps
        if np.abs(scaled - np.rint(scaled)).max() <= 2e-7 * steps + 1e-9:
            return steps
    return None


def returned_values(probabilities: Array) -> Array:
    """The values that the model returned, without those that complete a row to a sum of 1.

    Whoever completes rows (`partial=True`, or a service) gives the same value to all classes that
    have none. That value is on no grid, and it hides that the others are. Rows without it summed to
    more than 1 and were scaled, which also takes them off the grid: they are left out.

    >>> returned_values(np.array([[0.5, 0.25, 0.125, 0.125]])).tolist()
    [0.5, 0.25]
    """
    lowest = probabilities.min(axis=1, keepdims=True)
    is_lowest = probabilities == lowest
    filled = (is_lowest.sum(axis=1) > 1) & (lowest[:, 0] > 0)
    if filled.mean() < FILLED or is_lowest[filled].all():
        return probabilities.ravel()
    values: Array = probabilities[filled][~is_lowest[filled]]
    return values


def _precision(steps: int) -> str:
    """The precision of a grid in words."""
    if steps == 10:
        return "1 digit"
    is_decimal = str(steps).strip("0") == "1"
    return f"{len(str(steps)) - 1} digits" if is_decimal else f"steps of 1/{steps}"


def _finer(steps: int) -> str:
    """How to get probabilities in smaller steps."""
    if steps in BYTE_GRIDS:
        return "These are the steps of a quantised model: use its float version, if there is one."
    return "Request more digits from the model."


def check_digits(probabilities: Array) -> Finding:
    """Whether probabilities are rounded, which hides the effect of small changes of an image."""
    if ((probabilities == 0) | (probabilities == 1)).all():
        return Finding(
            name="digits",
            state="good",
            sentence="The model returns classes only, so there are no digits to round.",
        )
    steps = steps_per_unit(probabilities)
    if steps is None:
        return _unrounded(probabilities)
    precision = _precision(steps)
    if steps >= COARSEST:
        return Finding(
            name="digits",
            state="caution",
            sentence=f"Probabilities are rounded to {precision}: smaller changes are invisible.",
            measurements={"steps": steps},
            remedy=f"{_finer(steps)} Until then prefer soda-e, which compares candidates, to "
            "finite differences (soda).",
        )
    return Finding(
        name="digits",
        state="bad",
        sentence=f"Probabilities are rounded to {precision}: too coarse to compare two versions of "
        "an image.",
        measurements={"steps": steps},
        remedy="Request more digits from the model.",
    )


def _unrounded(probabilities: Array) -> Finding:
    """Probabilities on no grid, in full or in half precision."""
    kept = returned_values(probabilities)
    if (kept == kept.astype(np.float16)).all():
        return Finding(
            name="digits",
            state="good",
            sentence="Probabilities are half-precision numbers. Their three to four digits are "
            "enough for soda-e, which compares candidates.",
            measurements={"steps": None, "half_precision": True},
            remedy="Finite differences (soda) need full precision, or a larger mu.",
        )
    return Finding(
        name="digits",
        state="good",
        sentence="Probabilities are not visibly rounded.",
        measurements={"steps": None},
    )


def check_completeness(probabilities: Array) -> Finding:
    """Whether all classes are returned; services often keep the best and fill up the rest."""
    classes = probabilities.shape[1]
    lowest = probabilities.min(axis=1, keepdims=True)
    returned = (probabilities > lowest).sum(axis=1)
    most = int(returned.max())
    measurements = {"classes_returned": most, "classes": classes}
    if most == 0:
        return Finding(
            name="completeness",
            state="bad",
            sentence="The model gives every class the same probability: there is nothing to learn "
            "from.",
            measurements=measurements,
            remedy="Check the input normalisation and the output of the model (mean, std, "
            "pixel_range, output).",
        )
    is_certain = bool((probabilities.max(axis=1) >= 1 - SATURATED).all())
    is_zero_elsewhere = bool((lowest == 0).all())
    is_one_class = (is_certain and is_zero_elsewhere) or bool((returned == 1).all())
    if most == 1 and classes > 2 and is_one_class:
        return Finding(
            name="completeness",
            state="caution",
            sentence="Only the best class is returned, or nothing is left for the others: there is "
            "no gradient to follow, but classes can be counted.",
            measurements=measurements,
            remedy="Request the probabilities of all classes from the model. Until then use "
            "soda-e, which compares candidates.",
        )
    # rounding alone would leave a varying number of classes
    if classes - most >= 2 and np.mean(returned == most) >= 0.9:
        return Finding(
            name="completeness",
            state="caution",
            sentence=f"Only the best {most} of {classes} classes are returned; all others have the "
            "same value.",
            measurements=measurements,
            remedy="Request all classes from the model: the objective depends on all of them.",
        )
    if classes - most >= 2:
        return Finding(
            name="completeness",
            state="caution",
            sentence=f"At most {most} of {classes} classes have a value of their own, and fewer "
            "for most images: small probabilities are rounded away or cut off.",
            measurements=measurements,
            remedy="Request more digits and all classes from the model, if it can return them.",
        )
    return Finding(
        name="completeness",
        state="good",
        sentence=f"All {classes} classes are returned.",
        measurements=measurements,
    )


def check_saturation(probabilities: Array) -> Finding:
    """How many probabilities are as high as they can be: those do not change with the image."""
    confidence = probabilities.max(axis=1)
    ends_below_1 = steps_per_unit(probabilities) == 256
    highest = 255 / 256 if ends_below_1 else 1.0
    saturated = float(np.mean(confidence >= highest - SATURATED))
    high = float(np.mean(confidence >= 0.999))
    measurements = {
        "share_saturated": saturated,
        "share_above_0.999": high,
        "mean_confidence": float(confidence.mean()),
    }
    summary = f"The confidence is exactly 1 for {saturated:.0%} of the images, above 0.999 for "
    summary += f"{high:.0%}"
    if ends_below_1:
        summary = f"The confidence is 255/256, the highest value, for {saturated:.0%} of the images"
    if saturated > 0.8:
        return Finding(
            name="saturation",
            state="caution",
            sentence=f"{summary}: it does not change with the image until the class changes.",
            measurements=measurements,
            remedy="Request logits from the model (logits=True) or a higher temperature. Until "
            "then prefer soda-e.",
        )
    if saturated > 0.3 or high > 0.9:
        return Finding(
            name="saturation",
            state="caution",
            sentence=f"{summary}: few images are left to learn from.",
            measurements=measurements,
            remedy="More images help, and so do logits (logits=True) or a higher temperature.",
        )
    return Finding(
        name="saturation", state="good", sentence=f"{summary}.", measurements=measurements
    )


def check_repeatability(first: Array, second: Array, third: Array | None) -> Finding:
    """Whether the same images get the same responses again.

    `second` are the responses to the same images in a different batch. `third`, queried if they
    differ from `first`, are the responses to the same batch as `second`.
    """
    difference = float(np.abs(first - second).max())
    changed = float(np.mean(first.argmax(axis=1) != second.argmax(axis=1)))
    measurements = {
        "images": len(first),
        "largest_difference": difference,
        "share_changed": changed,
    }
    if difference <= SAME:
        return Finding(
            name="repeatability",
            state="good",
            sentence="The same image gets the same response, whatever the other images of its "
            "batch.",
            measurements=measurements,
        )
    tolerance = min(SAME, difference / 10)
    depends_on_batch = third is not None and float(np.abs(second - third).max()) <= tolerance
    summary = f"differences up to {difference:.2g}, a different class for {changed:.0%}"
    if depends_on_batch:
        sentence = "The response to an image depends on the other images of its batch"
        remedy = (
            "Put the model into evaluation mode (its batch norm is in training mode), or send one "
            "image per request (batch=1)."
        )
    else:
        sentence = "The same image does not get the same response twice"
        remedy = (
            "Switch off randomness in the model (dropout, random crops). Otherwise a comparison "
            "needs more images."
        )
    return Finding(
        name="repeatability",
        state="bad" if changed > 0.05 else "caution",
        sentence=f"{sentence} ({summary}).",
        measurements={**measurements, "depends_on_batch": depends_on_batch},
        remedy=remedy,
    )
