"""One thing an examination found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["good", "caution", "bad"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`state` is seen from adapting: good helps or does not stand in the way, bad stops a run from helping."""

    name: str
    state: State
    sentence: str
    numbers: dict[str, Any] = field(default_factory=dict)
    remedy: str = ""  # what to do about it; empty when there is nothing to do

    def facts(self) -> dict[str, Any]:
        return asdict(self)
