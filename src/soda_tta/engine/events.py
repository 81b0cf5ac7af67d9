"""What a run tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soda_tta.adaptors import Adaptor
    from soda_tta.box import Ledger
    from soda_tta.engine.plan import Plan


@dataclass(frozen=True)
class Planned:
    """The run is about to begin, or to go on; the ledger is the live one."""

    plan: Plan
    ledger: Ledger


@dataclass(frozen=True)
class Answered:
    """A pass over all images has come this far."""

    purpose: str
    done: int
    of: int


@dataclass(frozen=True)
class Step:
    """One step of a search: what it asked, what came back. This is also a line of the history."""

    epoch: int
    step: int  # within the epoch
    of: int  # steps in the epoch
    lr: float
    purpose: str
    queries: int
    losses: tuple[float, ...]  # of every candidate; the first is the point itself
    mutual_information: float
    cross_entropy: float

    @property
    def loss(self) -> float:
        return self.losses[0]


@dataclass(frozen=True)
class Epoch:
    """An epoch is complete; `adaptor` is the live one with its parameters of this moment."""

    epoch: int
    lr: float
    loss: float  # its mean
    queries: int  # answered so far, all purposes
    adaptor: Adaptor


@dataclass(frozen=True)
class Notice:
    """Something the user should know."""

    text: str
    unreached: int = 0  # images the budget did not reach, if that is what the notice is about


Event = Planned | Answered | Step | Epoch | Notice
Listener = Callable[[Event], None]
