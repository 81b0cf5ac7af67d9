"""The headline of a page: the conclusion in a few words, and the sentences that support it."""

from __future__ import annotations

from dataclasses import dataclass

from soda_tta.box.price import in_digits
from soda_tta.report.analysis import Analysis, LabelledResults
from soda_tta.wording import counted

# The tone decides the colour of the headline: style.css has a class for each.
GOOD = "good"
BAD = "bad"
OPEN = "open"

CLASS_LOSS = 0.05  # a class that lost this share of accuracy is named,
CLASS_IMAGES = 20  # if at least so many of its images are labelled


@dataclass(frozen=True)
class Headline:
    """A conclusion, its tone, and the sentences that support it."""

    word: str
    tone: str
    sentences: tuple[str, ...]


def headline(analysis: Analysis) -> Headline:
    """Conclude from labels if there are any, else from the method's own verdict.

    Without either the headline is "Undecided" and says what would decide it.
    """
    record = analysis.record
    labelled = analysis.labelled
    cost = cost_sentence(analysis)
    closing = (*_unreached_sentence(record.unreached), cost)
    if record.stopped is None:
        return Headline("Unfinished", OPEN, ("This run has not finished.", cost))
    if analysis.after is None and record.verdict is None:
        reason = record.reason or "There is nothing to compare."
        return Headline("No predictions yet", OPEN, (reason, cost))
    if labelled is not None and labelled.gain is not None:
        word, tone = _conclusion_from_labels(labelled.gain.low, labelled.gain.high)
        sentences = [
            _accuracy_sentence(labelled),
            *_class_loss_sentence(labelled, analysis.class_names),
        ]
        if record.verdict is not None and record.verdict.basis == "responses":
            sentences.append(f"The run's own verdict, without labels: {record.verdict.sentence}")
        return Headline(word, tone, (*sentences, *closing))
    if record.verdict is not None:
        if record.verdict.adopt:
            return Headline("Use it", GOOD, (record.verdict.sentence, *closing))
        word = "Leave the images as they are"
        return Headline(word, BAD, (record.verdict.sentence, *record.next_steps, *closing))
    if not analysis.changed:
        sentence = "Every image has the same prediction as before."
        return Headline("Nothing changed", OPEN, (sentence, *closing))
    sentence = (
        f"{analysis.changed:,} of {record.count:,} predictions changed. Whether they improved is "
        f"unknown, because {record.card.get('method')} gives no verdict. Label about 200 images "
        "and pass them with --labels."
    )
    return Headline("Undecided", OPEN, (sentence, *closing))


def _unreached_sentence(images: int) -> list[str]:
    """A budget that ran out before the last images must not go unnoticed."""
    if not images:
        return []
    return [
        "The budget ran out before the last pass was complete. Images that keep their unadapted "
        f"prediction: {images:,}. 'soda-tta apply' evaluates them with this adaptor."
    ]


def _conclusion_from_labels(low: float, high: float) -> tuple[str, str]:
    """The conclusion from the 95 % interval of the gain."""
    if low > 0:
        return "Use it: it helps", GOOD
    if high < 0:
        return "Do not use it: it harms", BAD
    return "No clear difference", OPEN


def _accuracy_sentence(labelled: LabelledResults) -> str:
    assert labelled.after is not None and labelled.gain is not None
    gain = labelled.gain
    verb = "stayed"
    if gain.value > 0:
        verb = "rose"
    elif gain.value < 0:
        verb = "fell"
    return (
        f"On {counted(labelled.images, 'labelled image')} accuracy {verb} from "
        f"{labelled.before.value:.1%} to {labelled.after.value:.1%}: "
        f"{points(gain.value)} points "
        f"(95% interval {points(gain.low)} to {points(gain.high)})."
    )


def _class_loss_sentence(labelled: LabelledResults, names: list[str]) -> list[str]:
    """Name the classes that lost accuracy, which a mean over all classes hides."""
    worst_first = reversed(labelled.classes)
    lost = [
        change
        for change in worst_first
        if change.gain <= -CLASS_LOSS and change.images >= CLASS_IMAGES
    ]
    if not lost:
        return []
    named = ", ".join(f"{names[each.index]} ({points(each.gain)} points)" for each in lost[:3])
    more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
    return [f"Some classes lost accuracy: {named}{more}."]


def points(share: float) -> str:
    """A share as signed percentage points.

    >>> points(-0.042)
    '-4.2'
    """
    return f"{100 * share:+.1f}"


def cost_sentence(analysis: Analysis) -> str:
    """The queries of the run, in total, per image, and in money if a price is specified."""
    total = analysis.record.total_queries
    per_image = total / max(1, analysis.record.count)
    money = "" if analysis.price is None else ", whose cost is not known"
    if analysis.cost is not None:
        money = f", which cost {in_digits(analysis.cost)} at {analysis.price}"
    return f"The run used {total:,} queries, {per_image:.4g} per image{money}."
