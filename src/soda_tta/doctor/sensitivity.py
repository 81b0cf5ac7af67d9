"""Sensitivity check: the effect of one 8-bit step in every pixel, and undeclared rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.doctor.probabilities import SAME
from soda_tta.types import Array

STEP = 1 / 255
COARSER = (4, 16)  # steps to try if a single step has no effect
MU_REMEDY = (
    "Finite differences (soda) need a larger mu, so that a probe moves pixels by whole steps. "
    "soda-e does so anyway."
)


def on_8_bit_grid(images: Array) -> Array:
    """The images as 8-bit values, away from both ends so that a step is never clipped."""
    snapped: Array = np.clip(np.rint(images * 255), 2, 252)
    return snapped


def random_signs(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), size=shape)


def as_pixels(values: Array) -> Array:
    """8-bit values as pixels in [0, 1]."""
    scaled: Array = np.clip(values * STEP, 0, 1).astype(np.float32)
    return scaled


def check_sensitivity(
    images: Array,
    query: Callable[[Array], Array],
    declared_step: float | None,
    noise: float = 0.0,
    seed: int = 0,
    *,
    classes_only: bool = False,
) -> list[Finding]:
    """Query each image three times: twice within one 8-bit step, once a step away.

    Whether a model rounds or truncates, 0.15 and 0.45 of a step above a whole value are the same
    value for it. `declared_step` is the rounding of the box, if it declares one; `noise` is how
    far two responses to the same image differ; `classes_only` means that the model returns
    several classes and no probabilities.
    """
    whole = on_8_bit_grid(images)
    here = query(as_pixels(whole + 0.15))
    within = query(as_pixels(whole + 0.45))
    signs = random_signs(images.shape, seed)
    away = query(as_pixels(whole + 0.3 + signs))
    floor = max(noise, SAME / 10)
    effect = _effect(here, away, floor)
    if effect.measurements["largest_difference"] > floor:
        difference_within = float(np.abs(here - within).max())
        return [effect, _rounding(difference_within, floor, declared_step)]
    for steps in COARSER:
        coarser = query(as_pixels(whole + 0.3 + steps * signs))
        if np.abs(coarser - here).max() > floor:
            return [_insensitive_to_one_step(effect, steps)]
    return [_only_classes(effect) if classes_only else _insensitive(effect)]


def _effect(here: Array, away: Array, floor: float) -> Finding:
    """The effect of one step of random sign in every pixel."""
    # total variation: how much probability goes to other classes
    moved = float((np.abs(away - here).sum(axis=1) / 2).mean())
    changed = float(np.mean(here.argmax(axis=1) != away.argmax(axis=1)))
    measurements = {
        "images": len(here),
        "probability_moved": moved,
        "largest_difference": float(np.abs(away - here).max()),
        "share_changed": changed,
        "noise": floor,
    }
    summary = (
        f"One 8-bit step of random sign in every pixel moves {moved:.2g} of the probability and "
        f"changes {changed:.0%} of the predictions"
    )
    if changed > 0.1:
        return Finding(
            name="sensitivity",
            state="caution",
            sentence=f"{summary}: this model is brittle.",
            measurements=measurements,
            remedy="Small changes can bring large gains and large harm. Keep the verdict of the "
            "run switched on.",
        )
    return Finding(
        name="sensitivity", state="good", sentence=f"{summary}.", measurements=measurements
    )


def _insensitive(effect: Finding) -> Finding:
    return Finding(
        name="sensitivity",
        state="bad",
        sentence=f"Not even {COARSER[-1]} 8-bit steps in every pixel change the response: the "
        "model ignores its input, or its responses are saturated or cached.",
        measurements={**effect.measurements, "first_effective_step": None},
        remedy="Check that the images reach the model (mean, std, pixel_range, layout).",
    )


def _insensitive_to_one_step(effect: Finding, steps: int) -> Finding:
    return Finding(
        name="sensitivity",
        state="caution",
        sentence=f"One 8-bit step in every pixel has no effect beyond noise; {steps} steps have.",
        measurements={**effect.measurements, "first_effective_step": steps},
        remedy="Use soda-e, which compares candidates. Finite differences (soda) would measure "
        "only noise here.",
    )


def _only_classes(effect: Finding) -> Finding:
    """Different images have different classes, so the model does not ignore its input."""
    return Finding(
        name="sensitivity",
        state="caution",
        sentence=f"Not even {COARSER[-1]} 8-bit steps in every pixel change a class, and the model "
        "returns nothing finer.",
        measurements={**effect.measurements, "first_effective_step": None},
        remedy="Use soda-e, which compares candidates by counting classes.",
    )


def _rounding(difference_within: float, floor: float, declared_step: float | None) -> Finding:
    """Whether pixels are rounded before the model, as declared or not."""
    measurements = {
        "difference_within_one_step": difference_within,
        "declared_step": declared_step,
        "noise": floor,
    }
    if declared_step:
        return Finding(
            name="rounding",
            state="caution",
            sentence=f"Images are rounded to steps of {declared_step * 255:.2g}/255 before they "
            "reach the model.",
            measurements=measurements,
            remedy=MU_REMEDY,
        )
    if difference_within <= floor:
        return Finding(
            name="rounding",
            state="caution",
            sentence="The model rounds pixels to 8 bits or fewer internally: no change within one "
            "step has an effect. The model does not declare this.",
            measurements=measurements,
            remedy=MU_REMEDY,
        )
    return Finding(
        name="rounding",
        state="good",
        sentence="The model responds to changes smaller than one 8-bit step.",
        measurements=measurements,
    )
