"""What a person is told in words: what the adaptor does, as measured."""

from __future__ import annotations

import numpy as np

from soda_tta.report.response import Response

SEEN = 0.02  # of the pixel range: five 8-bit steps; less is not worth a sentence
GAINED = 0.1  # of contrast or of a pattern


def describe_response(response: Response) -> list[str]:
    """Brightness, colour, contrast and detail, each only if it changed by something one could see."""
    if response.change < 0.5 / 255:
        return ["It leaves the images as they are, to less than half an 8-bit step."]
    said = [f"A pixel changes by {response.change:.1%} of its range on average (root mean square)."]
    mean = float(response.shift.mean())
    if abs(mean) >= SEEN:
        said.append(
            f"Images become {'brighter' if mean > 0 else 'darker'}, by {abs(mean):.0%} of the range."
        )
    tint = response.shift - mean
    if np.abs(tint).max() >= SEEN:
        parts = [
            f"{name} {part:+.0%}" for name, part in zip(("red", "green", "blue"), tint, strict=True)
        ]
        said.append(f"Colours are shifted: {', '.join(parts)}.")
    if abs(response.contrast - 1) >= GAINED:
        said.append(
            f"Contrast is {'raised' if response.contrast > 1 else 'lowered'} to {response.contrast:.1f} times."
        )
    coarse, fine = (float(part.mean()) for part in (response.gain[:3], response.gain[-3:]))
    for what, gain in (("Coarse structure", coarse), ("Fine detail", fine)):
        if abs(gain - 1) >= GAINED:
            said.append(f"{what} is {_stressed(gain)} (gain {gain:.2f}).")
    return said


def _stressed(gain: float) -> str:
    if gain < 0:
        return "inverted"
    return "strengthened" if gain > 1 else "muted" if gain > 0.2 else "almost removed"
