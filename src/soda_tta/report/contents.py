"""Which page it becomes: of one run, of several side by side, or of a bench store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from soda_tta.data import Images
from soda_tta.engine.run import Run
from soda_tta.errors import ImageError, RunError
from soda_tta.report.account import Account, account_of, read_account
from soda_tta.report.commands import option
from soda_tta.report.comparison_page import comparison_page
from soda_tta.report.findings import Findings, find
from soda_tta.report.labels import Labels, check_names, read_classes, read_labels
from soda_tta.report.run_page import run_page
from soda_tta.report.strip import open_checked
from soda_tta.report.verdict_words import headline


def page_of(
    subjects: list[Any], *, images: Any, labels: Any, classes: Any, price: float | None
) -> tuple[str, dict[str, Any]]:
    """HTML, and the same as facts."""
    if not subjects:
        raise RunError("there is nothing to report on; give a run directory.")
    stores = [
        s for s in subjects if not isinstance(s, Run) and (Path(s) / "results.jsonl").exists()
    ]
    if stores:
        if len(subjects) > 1:
            raise RunError(
                "a bench store has a page of its own; merge stores with 'soda-tta bench merge' first."
            )
        from soda_tta.report.bench_page import (
            bench_page,
        )  # the bench brings much along that a run does not need

        return bench_page(Path(stores[0]))
    accounts = [account_of(s) if isinstance(s, Run) else read_account(Path(s)) for s in subjects]
    names = None if classes is None else read_classes(classes)
    tell_apart(accounts)
    found: list[Findings] = []
    given: list[Labels | None] = []
    for account in accounts:
        known = (
            None if labels is None or account.before is None else labels_for(account, labels, names)
        )
        given.append(known)
        if names is not None and account.before is not None:
            check_names(names, account.before.shape[1])
        found.append(find(account, known, names, price))
    pictures = remembered(accounts[0]) if images is None else open_checked(images, accounts[0])
    if len(found) == 1:
        return run_page(found[0], given[0], pictures), facts_of(found[0])
    return comparison_page(found, given, pictures), {"runs": [facts_of(each) for each in found]}


def facts_of(found: Findings) -> dict[str, Any]:
    told = headline(found)
    return {"headline": [f"{told.word}.", *told.sentences], **found.facts()}


def labels_for(account: Account, labels: Any, classes: tuple[str, ...] | None) -> Labels:
    assert account.before is not None
    names = [account.name(index) for index in range(account.count)]
    return read_labels(labels, names, classes, account.before.shape[1])


def remembered(account: Account) -> Images | None:
    """The images where the run found them, if it says where and they are still there unchanged."""
    place = option(account, "--images")
    if place is None or not Path(place).exists():
        return None
    try:
        return open_checked(place, account)
    except ImageError:
        return None


def tell_apart(accounts: list[Account]) -> None:
    """Runs of one name are numbered."""
    seen: dict[str, int] = {}
    for account in accounts:
        seen[account.title] = seen.get(account.title, 0) + 1
        if seen[account.title] > 1:
            account.title += f" ({seen[account.title]})"
