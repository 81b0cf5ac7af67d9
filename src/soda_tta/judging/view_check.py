"""Whether a further view of an image, such as its mirror image, shows the same class."""

from __future__ import annotations

from soda_tta.objectives.agreement import agreement_of_each
from soda_tta.types import Array

# A view is used if answers to it agree with those to the image at least this share as often as
# answers to the shifted image do. Mirror images of photographs: 0.92 to 1.08; of digits: below 0.6.
AS_WELL = 0.85
FEWEST_CHECKED = 24  # images; fewer do not tell


def objection(name: str, plain: Array, shifted: Array, rows: Array) -> str | None:
    """Why a view must not be used, or None: it is recognised about as well as a shifted image.

    Parameters
    ----------
    name : str
        Of the view.
    plain, shifted, rows : arrays of shape (n, classes)
        Responses to images that no search used, to the same images shifted, and to the view.

    Examples
    --------
    >>> import numpy as np
    >>> plain = np.eye(10)[np.arange(40) % 10]
    >>> objection("mirror", plain, plain, rows=plain) is None
    True
    >>> print(objection("mirror", plain, plain, rows=plain[::-1])[:32])
    The mirror image is not used: on
    """
    count = len(rows)
    if count < FEWEST_CHECKED:
        return (
            f"The {name} image is not used: {count} unseen images cannot tell whether it keeps "
            f"the class; at least {FEWEST_CHECKED} are needed."
        )
    own = float(agreement_of_each(plain, rows).mean())
    usual = float(agreement_of_each(plain, shifted).mean())
    if own >= AS_WELL * usual:
        return None
    return (
        f"The {name} image is not used: on {count} unseen images, answers to it agree with the "
        f"answers to the image at a rate of {own:.0%}, and answers to a shifted image at "
        f"{usual:.0%}. It may show something else, such as another letter."
    )
