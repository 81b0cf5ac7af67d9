"""Whether to deploy what was learnt, decided on images the search never saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soda_tta.objectives.equations import (
    agreement_of_each,
    entropy,
    matching_information_of_each,
    shared_information_of_each,
)
from soda_tta.types import Array

Looks = tuple[Array, Array]  # answers to the images, and to the same images moved
LEAST_LIKELY = 1e-12  # a zero of a model that rounds is not impossible
LEAST_GAIN = (
    1e-3  # nats: the same answers, tempered to and fro, differ by rounding and all in one direction
)
SHIFT = 16  # a second look is the image moved by its side over this many pixels


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`adopt`, or leave the images as they are; without a real gain it is adopted at most at the rate `level`."""

    adopt: bool
    sentence: str  # the same for a person
    before: float  # information shared by two looks, in nats, on the images judged
    after: float
    p_value: float
    level: float
    images: int  # judged on

    def facts(self) -> dict[str, Any]:
        return asdict(self)


def moved(images: Array) -> Array:
    """The second look: every image moved down and left by a little; a class survives that, whatever it shows.

    A mirror image would be as good a witness for photographs, and none for digits, letters and road signs.
    """
    height, width = images.shape[-2:]
    down, left = max(1, height // SHIFT), max(1, width // SHIFT)
    wide = np.pad(images, ((0, 0), (0, 0), (down, 0), (0, left)), mode="edge")
    return np.ascontiguousarray(wide[:, :, :height, left : left + width])


def judge(before: Looks, after: Looks, level: float) -> Verdict:
    """One-sided paired tests on two looks (answers to the images, and to them moved) without and with adapting.

    A gain must be seen as it is *and* at equal confidence, so that being surer of the same answers does not pass. It is
    looked for by two measures of what two looks share; either may show it, so their p-values are doubled. The second
    sees more where images are few for the classes, and counts only if two looks agree more than before.
    """
    equal = at_confidence_of(after, before)
    gains = [gain(shared_information_of_each, before, after, equal)]
    closer = agreement_of_each(*equal) - agreement_of_each(*before)
    if closer.mean() >= standard_error(closer):
        gains.append(gain(matching_information_of_each, before, after, equal))
    p_value, old, new = min(gains)
    p_value = min(1.0, 2 * p_value)
    adopt = p_value <= level
    seen = f"on {len(before[0])} images that the search never saw, two looks at an image"
    change = f"from {old:.2f} to {new:.2f} nats, p = {p_value:.2g}"
    sentence = (
        f"Adopt: {seen} share more information ({change})."
        if adopt
        else f"Keep the images as they are: {seen} do not surely share more information ({change}; "
        f"{level:g} was asked for)."
    )
    return Verdict(
        adopt=adopt,
        sentence=sentence,
        before=old,
        after=new,
        p_value=p_value,
        level=level,
        images=len(before[0]),
    )


def gain(
    measure: Callable[[Array, Array], Array], before: Looks, after: Looks, equal: Looks
) -> tuple[float, ...]:
    """How likely the gain is by chance, as it is and at equal confidence; the measure before and after."""
    old, new = measure(*before), measure(*after)
    return (
        max(chance(new - old), chance(measure(*equal) - old)),
        float(old.mean()),
        float(new.mean()),
    )


def chance(gains: Array) -> float:
    """How likely gains as large as these are if there is none to speak of."""
    from scipy import stats  # slow to load, and a saved verdict does not need it

    error = standard_error(gains)
    return (
        float(stats.t.sf((gains.mean() - LEAST_GAIN) / error, len(gains) - 1)) if error > 0 else 1.0
    )


def standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def at_confidence_of(looks: Looks, others: Looks) -> Looks:
    """The answers, tempered until their mean entropy is that of the others."""
    goal = np.mean([entropy(rows).mean() for rows in others])
    low, high = -3.0, 3.0  # logarithms of the exponent
    for _ in range(30):
        middle = (low + high) / 2
        if np.mean([entropy(tempered(rows, np.exp(middle))).mean() for rows in looks]) > goal:
            low = middle
        else:
            high = middle
    first, second = (tempered(rows, np.exp((low + high) / 2)) for rows in looks)
    return first, second


def tempered(rows: Array, exponent: float) -> Array:
    """Probabilities raised to a power: surer above 1, less sure below; the order of the classes stays."""
    powers = exponent * np.log(np.asarray(rows, np.float64) + LEAST_LIKELY)
    powers = np.exp(powers - powers.max(axis=1, keepdims=True))
    result: Array = powers / powers.sum(axis=1, keepdims=True)
    return result
