"""The verdict in words: the first thing on a page, and often the only thing that is read."""

from __future__ import annotations

from dataclasses import dataclass

from soda_tta.engine.passes import UNREACHED
from soda_tta.report.findings import Findings, Measured

USE, LEAVE, OPEN = "good", "bad", "open"  # how it is coloured
LOST, ENOUGH = 0.05, 20  # a class lost so much, on so many labelled images: worth a warning


@dataclass(frozen=True)
class Headline:
    """A word, its tone, and the sentences that back it."""

    word: str
    tone: str
    sentences: tuple[str, ...]


def headline(found: Findings) -> Headline:
    """Labels decide where there are some; else the method's own verdict; else nobody knows, and that is said."""
    account, cost = found.account, cost_sentence(found)
    amiss = [notice for notice in account.notices if notice.endswith(UNREACHED)]
    if account.stopped is None:
        return Headline("Unfinished", OPEN, ("This run has not ended.", cost))
    if found.after is None:
        return Headline(
            "No answers yet",
            OPEN,
            (account.reason or "There is nothing to compare.", cost_sentence(found)),
        )
    if found.measured is not None and found.measured.gain is not None:
        word, tone = _by_labels(found.measured)
        sentences = [
            _accuracy_sentence(found.measured),
            *_losers(found.measured, found.class_names),
        ]
        if account.verdict is not None:
            sentences.append(f"Without labels the run had judged: {account.verdict.sentence}")
        return Headline(word, tone, (*sentences, *amiss, cost))
    if account.verdict is not None:
        word, tone = (
            ("Use it", USE) if account.verdict.adopt else ("Leave the images as they are", LEAVE)
        )
        return Headline(word, tone, (account.verdict.sentence, *amiss, cost))
    if not found.changed:
        return Headline(
            "Nothing changed",
            OPEN,
            ("Every image is given the same class as before.", *amiss, cost_sentence(found)),
        )
    unknown = (
        f"{found.changed:,} of {account.count:,} answers changed, and nobody has checked yet whether for the better: "
        f"{account.card.get('method')} gives no verdict of its own. Label some 200 images and give them with --labels."
    )
    return Headline("Undecided", OPEN, (unknown, *amiss, cost))


def _by_labels(measured: Measured) -> tuple[str, str]:
    assert measured.gain is not None
    if measured.gain.low > 0:
        return "Use it: it helps", USE
    if measured.gain.high < 0:
        return "Do not use it: it harms", LEAVE
    return "No clear difference", OPEN


def _accuracy_sentence(measured: Measured) -> str:
    assert measured.after is not None and measured.gain is not None
    moved = "rose" if measured.gain.value > 0 else "fell" if measured.gain.value < 0 else "stayed"
    return (
        f"On {measured.images:,} labelled images accuracy {moved} from {measured.before.value:.1%} to "
        f"{measured.after.value:.1%}: {points(measured.gain.value)} points "
        f"(95% interval {points(measured.gain.low)} to {points(measured.gain.high)})."
    )


def _losers(measured: Measured, names: list[str]) -> list[str]:
    """Classes that lost, even if all of them together gained: a mean hides them."""
    lost = [
        change
        for change in reversed(measured.classes)
        if change.gain <= -LOST and change.images >= ENOUGH
    ]
    if not lost:
        return []
    told = ", ".join(f"{names[change.index]} {points(change.gain)}" for change in lost[:3])
    more = f", and {len(lost) - 3} more" if len(lost) > 3 else ""
    return [f"Not for every class: {told}{more} points."]


def points(share: float) -> str:
    return f"{100 * share:+.1f}"


def cost_sentence(found: Findings) -> str:
    total, count = found.account.total_queries, max(1, found.account.count)
    money = "" if found.cost is None else f", {found.cost:,.2f} at {found.price:g} a thousand"
    return f"It took {total:,} queries, {total / count:.4g} an image{money}."
