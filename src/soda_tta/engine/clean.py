"""Clean images: sent once, so that the accuracy known for them calibrates an estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.data import Images, open_images
from soda_tta.data.images import Subset
from soda_tta.errors import MethodError

MOST = 500  # images; more would narrow the estimate by less than its own error


@dataclass(frozen=True)
class Clean:
    """Images from before the shift, and the accuracy of the model on such images."""

    images: Images
    accuracy: float

    def card(self) -> dict[str, Any]:
        """What a protocol card says about them."""
        return {**self.images.card(), "accuracy": self.accuracy}


def open_clean(clean: Any, accuracy: float | None, seed: int) -> Clean | None:
    """The clean images of a run, at most 500 of them; None if there are none.

    >>> open_clean(np.zeros((600, 8, 8, 3), np.uint8), 0.9, seed=0).images.card()["count"]
    500
    """
    if clean is None and accuracy is None:
        return None
    if clean is None:
        raise MethodError('clean_accuracy needs clean images. Pass them, too: clean="DIR".')
    if accuracy is None:
        raise MethodError(
            "clean images calibrate an estimate only with the accuracy of the model on them. "
            "Pass it, too: clean_accuracy=0.9."
        )
    check_accuracy(accuracy)
    images = open_images(clean)
    if len(images) > MOST:
        chosen = np.random.default_rng(seed).permutation(len(images))[:MOST]
        images = Subset(images, np.sort(chosen))
    return Clean(images, float(accuracy))


def check_accuracy(accuracy: float) -> None:
    """Refuse what is not a share, such as a number of percent."""
    if not 0 < accuracy <= 1:
        raise MethodError(
            f"clean_accuracy={accuracy:g} is not a valid share. Use a number above 0 and at most 1."
        )
