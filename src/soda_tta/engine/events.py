"""What a run reports to its listener while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from soda_tta.foreign_text import printable

if TYPE_CHECKING:  # events are also read where nothing heavy may be imported
    from soda_tta.adaptors import Adaptor
    from soda_tta.box import Ledger
    from soda_tta.engine.plan import Plan


@dataclass(frozen=True)
class Planned:
    """The run is about to begin, or to continue; the ledger is the live one."""

    plan: Plan
    ledger: Ledger


@dataclass(frozen=True)
class Responded:
    """The model has responded to so many more queries. This event may come from another thread."""

    purpose: str
    queries: int


@dataclass(frozen=True)
class Answered:
    """A pass over all images has come this far."""

    purpose: str
    done: int
    of: int


@dataclass(frozen=True)
class Measured:
    """The conditions are being found: so many images are measured. It needs no query."""

    done: int
    of: int


@dataclass(frozen=True)
class Step:
    """One step of a search: what it cost and what came of it. It is also a line of the history."""

    epoch: int
    step: int  # within the epoch, from 1
    of: int  # steps in the epoch
    lr: float
    purpose: str
    queries: int
    losses: tuple[float, ...]  # of every candidate, the current point first
    mutual_information: float
    cross_entropy: float

    @property
    def loss(self) -> float:
        """The loss at the current point."""
        return self.losses[0]

    def facts(self) -> dict[str, Any]:
        """The step as plain JSON."""
        return asdict(self)

    @staticmethod
    def from_facts(facts: dict[str, Any]) -> Step:
        """The inverse of `facts`; KeyError, TypeError or ValueError if these are something else."""
        losses = tuple(float(loss) for loss in facts["losses"])
        step = Step(**{**facts, "losses": losses})
        for name in ("epoch", "step", "of", "queries"):
            if type(facts[name]) is not int:
                raise TypeError(f"{name} is not a whole number")
        for name in ("lr", "mutual_information", "cross_entropy"):
            float(facts[name])  # refuses what is not a number
        if not losses or not isinstance(step.purpose, str):
            raise ValueError("there is no loss, or no purpose")
        return step


@dataclass(frozen=True)
class Epoch:
    """An epoch is complete; `adaptor` is the live one with its current parameters."""

    epoch: int
    lr: float
    loss: float  # the mean over the epoch
    queries: int  # answered so far, all purposes
    adaptor: Adaptor


@dataclass(frozen=True)
class Notice:
    """Something the user should know. It may quote a server or a foreign run folder."""

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text))


@dataclass(frozen=True)
class Waiting:
    """A request is sent again after a wait. This event may come from another thread."""

    seconds: float
    reason: str


Event = Planned | Responded | Answered | Measured | Step | Epoch | Notice | Waiting
Listener = Callable[[Event], None]
