"""The conditions of images: day, night and rain in one folder, told apart by their pixels.

`find` needs images and is imported when it is first used: adaptors need only the router.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from soda_tta.conditions.find import Conditions, find_conditions

__all__ = ["Conditions", "find_conditions"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"soda_tta.conditions has no attribute {name!r}.")
    from soda_tta.conditions import find

    return getattr(find, name)
