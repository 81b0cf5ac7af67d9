"""Which images belong together, as the user states it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.conditions.find import check_groups
from soda_tta.data import Images
from soda_tta.data.grouping import group_images
from soda_tta.data.scenes import in_order_of_appearance
from soda_tta.errors import ImageError, MethodError
from soda_tta.methods.method import Method
from soda_tta.types import Array

ALONE = "none"  # the rule that every image is independent


@dataclass(frozen=True)
class Groups:
    """One number per image, equal for images that belong together, and where it comes from."""

    numbers: Array
    rule: str

    def card(self) -> dict[str, Any]:
        """What the protocol card says."""
        digest = hashlib.sha256(self.numbers.astype(np.int64).tobytes()).hexdigest()[:12]
        return {"by": self.rule, "count": int(self.numbers.max()) + 1, "digest": digest}


def make_groups(images: Images, groups: Any, method: Method, name: str = "groups") -> Groups | None:
    """Read what the user passed as `groups`; None if nothing was.

    Parameters
    ----------
    images : the images.
    groups : a rule, or a sequence with one value per image.
    method : it must give a verdict, because only such a method uses groups.
    name : the argument, for errors.
    """
    if groups is None:
        return None
    if not method.judges:
        raise MethodError(
            f"{method.name} gives no verdict and has no use for {name}=; leave it out."
        )
    if isinstance(groups, str):
        if groups == ALONE:
            return Groups(np.arange(len(images)), ALONE)
        return Groups(in_order_of_appearance(group_images(images, groups)[0]), groups)
    values = np.asarray(groups)
    if values.shape != (len(images),):
        raise ImageError(
            f"{name} has shape {values.shape}; give one value per image, {len(images):,} in all."
        )
    return Groups(in_order_of_appearance(values), "values")


def make_kinds(images: Images, condition_by: Any, method: Method) -> Groups | None:
    """Read what the user passed as `condition_by`; None if nothing was.

    Groups that cannot be used are refused here, before the first query.

    Parameters
    ----------
    images : the images.
    condition_by : a rule, or a sequence with one value per image.
    method : only a method that looks for conditions uses them.
    """
    if condition_by is None:
        return None
    number = method.settings.get("conditions")
    if number is None:
        raise MethodError(
            f"{method.name} does not look for conditions and has no use for condition_by=; "
            "leave it out."
        )
    if number == "1":
        raise MethodError(
            "conditions=1 treats all images alike and has no use for condition_by=; leave out one "
            "of them."
        )
    kinds = make_groups(images, condition_by, method, "condition_by")
    if kinds is not None:
        check_groups(kinds.numbers)
    return kinds
