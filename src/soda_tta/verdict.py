"""Whether to deploy what was learnt, decided on images the search never saw."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`adopt` or leave the images as they are; wrong adoptions happen at most at the rate `level`."""

    adopt: bool
    sentence: str  # the same for a person
    gain: float  # of the label-free objective, on the images judged
    p_value: float
    level: float
    images: int  # judged on

    def facts(self) -> dict[str, Any]:
        return asdict(self)
