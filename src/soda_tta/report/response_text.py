"""The measured effect of an adaptor, in words."""

from __future__ import annotations

import numpy as np

from soda_tta.report.response import Response
from soda_tta.types import Array

VISIBLE = 0.02  # of the pixel range: five 8-bit steps; smaller changes are not mentioned
NOTABLE = 0.1  # relative change of contrast or of a pattern; smaller ones are not mentioned
CHANNELS = ("red", "green", "blue")


def describe_response(response: Response) -> list[str]:
    """Sentences about brightness, colour, contrast and detail, as far as they changed visibly."""
    if response.change < 0.5 / 255:
        return ["It leaves the images as they are, to within half an 8-bit step."]
    sentences = [
        f"Pixels change by {response.change:.1%} of their range (root mean square).",
        *_brightness(float(response.shift.mean())),
        *_tint(response.shift - response.shift.mean()),
        *_contrast(response.contrast),
    ]
    coarse = float(response.gain[:3].mean())
    fine = float(response.gain[-3:].mean())
    for structure, gain in (("Coarse structure", coarse), ("Fine detail", fine)):
        if abs(gain - 1) >= NOTABLE:
            sentences.append(f"{structure} is {_effect_of(gain)} (gain {gain:.2f}).")
    return sentences


def _brightness(shift: float) -> list[str]:
    if abs(shift) < VISIBLE:
        return []
    direction = "brighter" if shift > 0 else "darker"
    return [f"Images become {direction}, by {abs(shift):.0%} of the range."]


def _tint(tint: Array) -> list[str]:
    if np.abs(tint).max() < VISIBLE:
        return []
    parts = [f"{name} {part:+.0%}" for name, part in zip(CHANNELS, tint, strict=True)]
    return [f"Colours are shifted: {', '.join(parts)}."]


def _contrast(ratio: float) -> list[str]:
    if abs(ratio - 1) < NOTABLE:
        return []
    direction = "raised" if ratio > 1 else "lowered"
    return [f"Contrast is {direction} to {ratio:.1f} times its value."]


def _effect_of(gain: float) -> str:
    """The effect of a gain on a pattern."""
    if gain < 0:
        return "inverted"
    if gain > 1:
        return "strengthened"
    return "weakened" if gain > 0.2 else "almost removed"
