"""Whether to deploy what was learned, decided on images that the search did not use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from soda_tta.objectives.agreement import (
    agreement_of_each,
    matching_information_of_each,
    shared_information_of_each,
)
from soda_tta.objectives.equations import entropy
from soda_tta.objectives.tempering import tempered
from soda_tta.types import Array

Views = tuple[Array, Array]  # probabilities for the images, and for the same images shifted
LEAST_LIKELY = 1e-12  # a zero of a model that rounds its responses is not impossible
# Nats. The same probabilities, tempered back and forth, differ by rounding, all in one direction.
LEAST_GAIN = 1e-3
SHIFT = 16  # the second view is shifted by the side of the image divided by this
BISECTIONS = 30


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether to adopt the adaptor or to keep the original images.

    Parameters
    ----------
    adopt : bool
        True: deploy the adaptor. False: keep the original images.
    sentence : str
        The verdict for a person: "Adopt: ..." or "Keep: ...".
    before, after : float
        Information shared by two views of the judged images, in nats, without and with adaptation.
    p_value : float
        How likely such a gain is by chance.
    level : float
        Without a real gain, the adaptor is adopted at most at this rate.
    images : int
        Number of images judged.
    """

    adopt: bool
    sentence: str
    before: float
    after: float
    p_value: float
    level: float
    images: int

    def facts(self) -> dict[str, Any]:
        """All fields, as plain JSON."""
        return asdict(self)


def moved(images: Array) -> Array:
    """The second view: every image shifted down and to the left by a few pixels.

    A shift keeps the class of any image. A mirror image would serve as well for photographs, but
    not for digits, letters and road signs.

    Parameters
    ----------
    images : array of shape (n, 3, height, width)

    Returns
    -------
    array of the same shape; pixels that enter at the border repeat the border

    Examples
    --------
    >>> image = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> moved(image)[0, 0].tolist()[1]
    [1.0, 2.0, 3.0, 3.0]
    """
    height, width = images.shape[-2:]
    down = max(1, height // SHIFT)
    left = max(1, width // SHIFT)
    wide = np.pad(images, ((0, 0), (0, 0), (down, 0), (0, left)), mode="edge")
    return np.ascontiguousarray(wide[:, :, :height, left : left + width])


def judge(before: Views, after: Views, level: float) -> Verdict:
    """Test whether two views of an image share more information with adaptation than without.

    The tests are one-sided and paired. A gain must show as it is *and* at equal confidence, so that
    more confidence in the same predictions does not pass. Two measures of shared information are
    tested; either may show the gain, so the smaller p-value is doubled. The second measure detects
    more where there are few images per class. It counts only if the two views agree more than
    before.

    Parameters
    ----------
    before : two arrays of shape (n, classes)
        Probabilities for the original images, and for these images shifted (see `moved`).
    after : two arrays of shape (n, classes)
        The same for the adapted images.
    level : float in (0, 1)
        Adopt if the p-value is at most this.

    Examples
    --------
    >>> probabilities = np.array([[0.9, 0.1], [0.1, 0.9]] * 20)
    >>> same = (probabilities, probabilities)
    >>> judge(same, same, level=0.01).adopt
    False
    """
    equal = at_confidence_of(after, before)
    gains = [gain(shared_information_of_each, before, after, equal)]
    agreement_gains = agreement_of_each(*equal) - agreement_of_each(*before)
    if agreement_gains.mean() >= standard_error(agreement_gains):
        gains.append(gain(matching_information_of_each, before, after, equal))
    smaller, old, new = min(gains)
    p_value = min(1.0, 2 * smaller)
    adopt = p_value <= level
    images = len(before[0])
    return Verdict(
        adopt=adopt,
        sentence=_sentence(adopt, images, old, new, p_value, level),
        before=old,
        after=new,
        p_value=p_value,
        level=level,
        images=images,
    )


def _sentence(
    adopt: bool, images: int, old: float, new: float, p_value: float, level: float
) -> str:
    """The verdict for a person."""
    basis = f"on {images} images that the search did not use, two views of an image"
    change = f"from {old:.2f} to {new:.2f} nats, p = {p_value:.2g}"
    if adopt:
        return f"Adopt: {basis} share more information ({change})."
    return (
        f"Keep: {basis} do not share significantly more information "
        f"({change}; p <= {level:g} is required)."
    )


def gain(
    measure: Callable[[Array, Array], Array], before: Views, after: Views, equal: Views
) -> tuple[float, ...]:
    """The p-value of a gain by `measure`, and the mean of the measure before and after.

    Parameters
    ----------
    measure : function
        From two views to one value per image, in nats.
    before, after, equal : pairs of arrays of shape (n, classes)
        Views without adaptation, with it, and with it at the confidence of `before`.

    Returns
    -------
    (p_value, before, after) : the larger of the p-values as it is and at equal confidence
    """
    old = measure(*before)
    new = measure(*after)
    p_value = max(one_sided_p_value(new - old), one_sided_p_value(measure(*equal) - old))
    return p_value, float(old.mean()), float(new.mean())


def one_sided_p_value(gains: Array) -> float:
    """How likely gains as large as these are if the true mean gain is at most `LEAST_GAIN`."""
    from scipy import stats  # slow to import, and a stored verdict does not need it

    error = standard_error(gains)
    if not error > 0:  # all gains are equal, or there is only one
        return 1.0
    return float(stats.t.sf((gains.mean() - LEAST_GAIN) / error, len(gains) - 1))


def standard_error(values: Array) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def at_confidence_of(views: Views, others: Views) -> Views:
    """The probabilities, tempered until their mean entropy equals that of the others.

    Parameters
    ----------
    views, others : pairs of arrays of shape (n, classes)

    Examples
    --------
    >>> views = (np.array([[0.9, 0.1]]), np.array([[0.8, 0.2]]))
    >>> others = (np.array([[0.6, 0.4]]), np.array([[0.6, 0.4]]))
    >>> first, second = at_confidence_of(views, others)
    >>> (entropy(first) + entropy(second)).round(3) == (2 * entropy(others[0])).round(3)
    array([ True])
    """
    goal = np.mean([entropy(rows).mean() for rows in others])
    first, second = (np.asarray(rows, np.float64) + LEAST_LIKELY for rows in views)
    low = -3.0  # logarithms of the exponent
    high = 3.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        exponent = np.exp(middle)
        entropies = [entropy(tempered(rows, exponent)).mean() for rows in (first, second)]
        if np.mean(entropies) > goal:
            low = middle
        else:
            high = middle
    exponent = np.exp((low + high) / 2)
    return tempered(first, exponent), tempered(second, exponent)
