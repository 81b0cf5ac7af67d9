"""What a live stream reports: every promotion, rollback and its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class LiveEvent:
    """Something happened to the images of one source.

    Parameters
    ----------
    key : the source; None if there is only one.
    arrived : images of the whole stream so far.
    """

    key: str | None
    arrived: int

    def facts(self) -> dict[str, Any]:
        """The event as plain JSON, with its name in words."""
        words = re.sub(r"(?<!^)([A-Z])", r" \1", type(self).__name__).lower()
        return {"event": words, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class ConditionFound(LiveEvent):
    """Images of a condition that was not known before."""

    condition: int
    words: str


@dataclass(frozen=True, kw_only=True)
class SearchStarted(LiveEvent):
    """A search for an adaptor begins on recent images of a condition."""

    condition: int
    start: str  # what it begins with, besides leaving images as they are


@dataclass(frozen=True, kw_only=True)
class Tested(LiveEvent):
    """A candidate was tested against the current adaptor."""

    condition: int
    candidate: int  # number of the candidate in the life of the stream
    adaptor: str  # what it does
    images: int  # of evidence
    gain: float  # mean gain, in units of the largest
    p_value: float  # valid at any time
    level: float  # the share of the accepted rate that this candidate may spend


@dataclass(frozen=True, kw_only=True)
class Promoted(Tested):
    """The candidate won and answers from now on."""


@dataclass(frozen=True, kw_only=True)
class Rejected(Tested):
    """The candidate did not win."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class RolledBack(LiveEvent):
    """The images of a condition are left as they are again."""

    condition: int
    adaptor: str  # what it did
    images: int  # watched
    reason: str


@dataclass(frozen=True, kw_only=True)
class Dropped(LiveEvent):
    """A source, or a condition of one, was not seen for the longest time and made room."""

    words: str  # what the condition looked like, or "source"
    reason: str


@dataclass(frozen=True, kw_only=True)
class TooLarge(LiveEvent):
    """The buffer holds fewer images of this size than a search needs: nothing is learned."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class AnswersChanged(LiveEvent):
    """A further view of each image is averaged from now on, or something speaks against that."""

    answers: str  # what is done to responses; empty if nothing is
    reason: str


@dataclass(frozen=True, kw_only=True)
class LearningFailed(LiveEvent):
    """The model did not answer the learner; images are answered as before."""

    reason: str


Listener = Callable[[LiveEvent], None]
