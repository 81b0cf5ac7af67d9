"""How the box answers to one 8-bit step of every pixel, and whether it rounds pixels where nobody says so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from soda_tta.doctor.finding import Finding
from soda_tta.doctor.probabilities import SAME
from soda_tta.types import Array

STEP = 1 / 255
COARSER = (4, 16)  # steps to try when one is not seen


def on_the_grid(images: Array) -> Array:
    """The images at whole 8-bit values, kept off both ends so that a step up or down is never clipped."""
    snapped: Array = np.clip(np.rint(images * 255), 2, 252)
    return snapped


def signs(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), size=shape)


def sensitivity(
    images: Array,
    ask: Callable[[Array], Array],
    declared: float | None,
    noise: float = 0.0,
    seed: int = 0,
    *,
    only_classes: bool = False,
) -> list[Finding]:
    """Asks three times about each image: twice inside one 8-bit step, once a step away.

    Whether a model rounds or cuts off, 0.15 and 0.45 of a step above a whole value are the same value to it.
    `noise`: how far answers to one image differ anyway. `only_classes`: several classes are answered, and nothing else.
    """
    whole = on_the_grid(images)
    here, inside = ask(pixels(whole + 0.15)), ask(pixels(whole + 0.45))
    step = signs(images.shape, seed)
    away = ask(pixels(whole + 0.3 + step))
    floor = max(noise, SAME / 10)
    found = _effect(here, away, floor)
    if found.numbers["largest_difference"] <= floor:
        seen = next(
            (
                size
                for size in COARSER
                if np.abs(ask(pixels(whole + 0.3 + size * step)) - here).max() > floor
            ),
            None,
        )
        return [_still(found) if seen is None and only_classes else _blind(found, seen)]
    within = float(np.abs(here - inside).max())
    return [found, _rounding(within, floor, declared)]


def pixels(values: Array) -> Array:
    scaled: Array = np.clip(values * STEP, 0, 1).astype(np.float32)
    return scaled


def _effect(here: Array, away: Array, floor: float) -> Finding:
    moved = (
        np.abs(away - here).sum(axis=1) / 2
    )  # total variation: how much probability went elsewhere
    changed = float(np.mean(here.argmax(axis=1) != away.argmax(axis=1)))
    numbers = {
        "images": len(here),
        "probability_moved": float(moved.mean()),
        "largest_difference": float(np.abs(away - here).max()),
        "answers_changed": changed,
        "noise": floor,
    }
    told = (
        f"One 8-bit step of random sign in every pixel moves {moved.mean():.2g} of the probability"
    )
    if changed > 0.1:
        return Finding(
            name="sensitivity",
            state="caution",
            sentence=f"{told} and changes {changed:.0%} of the answers: this model is brittle.",
            numbers=numbers,
            remedy="Expect large gains and large harm from small changes: keep a run's verdict switched on.",
        )
    return Finding(
        name="sensitivity",
        state="good",
        sentence=f"{told} and changes {changed:.0%} of the answers.",
        numbers=numbers,
    )


def _blind(found: Finding, seen: int | None) -> Finding:
    numbers = {**found.numbers, "first_step_seen": seen}
    if seen is None:
        return Finding(
            name="sensitivity",
            state="bad",
            sentence=f"Not even {COARSER[-1]} 8-bit steps in every pixel move the answers: the model does not look, "
            "or its answers are saturated or cached.",
            numbers=numbers,
            remedy="Check that the images arrive (--mean, --std, --pixel-range, --layout).",
        )
    return Finding(
        name="sensitivity",
        state="caution",
        sentence=f"One 8-bit step in every pixel moves nothing that can be told from noise; {seen} steps do.",
        numbers=numbers,
        remedy="Use a search by candidates (soda-e); finite differences (soda) would see only noise here.",
    )


def _still(found: Finding) -> Finding:
    """Different images get different classes, so the model looks; what it answers with cannot move by less than one."""
    return Finding(
        name="sensitivity",
        state="caution",
        sentence=f"Not even {COARSER[-1]} 8-bit steps in every pixel change a class, and nothing finer can be seen.",
        numbers={**found.numbers, "first_step_seen": None},
        remedy="Use a search by candidates (soda-e), which counts classes.",
    )


def _rounding(within: float, floor: float, declared: float | None) -> Finding:
    numbers = {"inside_one_step": within, "declared": declared, "noise": floor}
    remedy = "Finite differences (soda) need a larger mu, so that a probe moves pixels by whole steps; soda-e does anyway."
    if declared:
        return Finding(
            name="rounding",
            state="caution",
            sentence=f"Images are rounded to steps of {declared * 255:.2g}/255 on their way to the model.",
            numbers=numbers,
            remedy=remedy,
        )
    if within <= floor:
        return Finding(
            name="rounding",
            state="caution",
            sentence="The model rounds pixels to 8 bits or fewer inside: nothing within one step changes its answer, "
            "and nothing in its description says so.",
            numbers=numbers,
            remedy=remedy,
        )
    return Finding(
        name="rounding",
        state="good",
        sentence="The model sees changes smaller than one 8-bit step.",
        numbers=numbers,
    )
