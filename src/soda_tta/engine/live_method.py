"""The method of a live stream: one that learns behind the traffic, and its settings."""

from __future__ import annotations

from typing import Any

from soda_tta.errors import MethodError
from soda_tta.methods.registry import find_method

# Settings of the stream itself; all others are those of the method.
OWN = ("learn_budget", "buffer", "level", "seed", "directory", "listener", "sources")


def live_method(method: Any, settings: dict[str, Any]) -> Any:
    """The method with these settings, if it can learn from live traffic.

    Parameters
    ----------
    method : the name of a method, or a method.
    settings : changes to its settings.
    """
    found: Any = find_method(method)
    for name in settings:
        if name not in found.settings:
            raise MethodError(
                f"a live stream has no setting {name!r}; it has {', '.join(OWN)}, "
                f"and those of {found.name}: {', '.join(found.settings)}."
            )
    found = found.but(**settings)
    learns = hasattr(found, "pursuit") and found.first_pass
    if not learns or getattr(found, "average", False):
        raise MethodError(
            f"{found.name} with these settings cannot learn from live traffic; "
            "use soda-e without average and without a helper."
        )
    return found
