"""One finding of an examination."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["good", "caution", "bad"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    name : str
        What was checked, such as "shift" or "digits".
    state : {"good", "caution", "bad"}
        What it means for adapting: good is no obstacle, bad prevents a run from helping.
    sentence : str
        The result in words.
    measurements : dict, default={}
        The numbers behind the sentence, as plain JSON.
    remedy : str, default=""
        What to do about it; empty if there is nothing to do.
    """

    name: str
    state: State
    sentence: str
    measurements: dict[str, Any] = field(default_factory=dict)
    remedy: str = ""

    def facts(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return asdict(self)
