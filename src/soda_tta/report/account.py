"""What is known of a run, whether it came to its end or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soda_tta.adaptors import Adaptor
from soda_tta.engine.events import Step
from soda_tta.engine.run import Run
from soda_tta.errors import RunError
from soda_tta.judging.verdict import Verdict
from soda_tta.storage.run_folder import RunFolder
from soda_tta.storage.stored_run import NOT_ANSWERED, read_run_folder
from soda_tta.types import Array


@dataclass
class Account:
    """A run as far as it got: what is not there is None, and `missing` says so in sentences."""

    title: str
    card: dict[str, Any]
    folder: Path | None = None
    before: Array | None = (
        None  # of the first images only, if the run was killed during its first look
    )
    after: Array | None = None
    adaptor: Adaptor | None = None
    queries: dict[str, int] = field(default_factory=dict)
    history: list[Step] = field(default_factory=list)
    stopped: str | None = None
    reason: str = ""
    names: list[str] = field(default_factory=list)
    seconds: float | None = None
    notices: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    missing: list[str] = field(default_factory=list)

    @property
    def total_queries(self) -> int:
        return sum(self.queries.values())

    @property
    def count(self) -> int:
        """How many images the run is about."""
        return int(
            self.card.get("images", {}).get("count")
            or (0 if self.before is None else len(self.before))
        )

    @property
    def size(self) -> tuple[int, int]:
        height, width = self.card.get("images", {}).get("size") or (32, 32)
        return int(height), int(width)

    def name(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else str(index)


def account_of(run: Run, title: str | None = None) -> Account:
    """The account of a run in memory."""
    return Account(
        title=title or str(run.card.method),
        card=run.card.facts(),
        before=run.before,
        after=run.after,
        adaptor=run.adaptor,
        queries=run.ledger.by_purpose(),
        history=run.history,
        stopped=run.stopped,
        reason=run.reason,
        names=run.names,
        seconds=run.seconds,
        notices=run.notices,
        verdict=run.verdict,
        missing=[] if run.after is not None else [NOT_ANSWERED],
    )


def read_account(folder: Path) -> Account:
    """The account of a run folder. Only one without a readable card is refused; nothing changes."""
    stored = read_run_folder(folder)
    facts = stored.facts
    account = Account(
        title=folder.resolve().name,
        card=facts,
        folder=folder,
        before=stored.before,
        after=stored.after,
        queries=stored.queries,
        stopped=stored.stopped,
        reason=str(facts.get("reason") or ""),
        names=stored.names,
        seconds=facts.get("seconds"),
        notices=list(facts.get("notices") or []),
        missing=list(stored.missing),
    )
    _read_steps(account, stored.steps)
    if account.stopped is not None:
        _read_verdict(account, facts.get("verdict"))
        try:
            account.adaptor = Adaptor.load(RunFolder(folder).adaptor_path)
        except RunError as error:
            account.missing.append(f"The adaptor: {error}")
    return account


def _read_steps(account: Account, steps: list[dict[str, Any]]) -> None:
    for facts in steps:
        try:
            account.history.append(Step.from_facts(facts))
        except (TypeError, KeyError):
            number = len(account.history) + 1
            account.missing.append(
                f"The history: line {number} is damaged; the history ends before it."
            )
            return


def _read_verdict(account: Account, facts: Any) -> None:
    try:
        account.verdict = None if facts is None else Verdict(**facts)
    except TypeError:
        account.missing.append("The verdict: run.json holds one that this version cannot read.")
