"""Whether to deploy what was learnt, decided on images the search never saw."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soda_tta.objectives import shared_information_of_each

Array = np.ndarray[Any, np.dtype[Any]]
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


def judge(before: tuple[Array, Array], after: tuple[Array, Array], level: float) -> Verdict:
    """A one-sided paired test on two looks (answers to the images, and to them moved) without and with adapting."""
    from scipy import stats  # slow to load, and a saved verdict does not need it

    old, new = shared_information_of_each(*before), shared_information_of_each(*after)
    gain, count = new - old, len(old)
    error = gain.std(ddof=1) / np.sqrt(count)
    p_value = float(stats.t.sf(gain.mean() / error, count - 1)) if error > 0 else 1.0
    adopt = p_value <= level
    change = f"from {old.mean():.2f} to {new.mean():.2f} nats"
    sentence = (
        f"Adopt: on {count} images that the search never saw, two looks at an image share more information "
        f"({change}, p = {p_value:.2g})."
        if adopt
        else f"Keep the images as they are: on {count} images that the search never saw, two looks at an image do not "
        f"surely share more information ({change}, p = {p_value:.2g}; {level:g} was asked for)."
    )
    return Verdict(
        adopt=adopt,
        sentence=sentence,
        before=float(old.mean()),
        after=float(new.mean()),
        p_value=p_value,
        level=level,
        images=count,
    )
