"""What `adapt` prints at the end: what came out, what it cost, and a chart of before and after."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from soda_tta.cli.display import condition_lines, money
from soda_tta.cli.spelling import as_flags
from soda_tta.display.blocks import bar, histogram
from soda_tta.foreign_text import printable

if TYPE_CHECKING:
    from soda_tta.box.price import Price
    from soda_tta.engine.run import Run

SHORT = 60  # characters of a stated prior
WIDTH = 16  # of the names on the left


def print_summary(
    run: Run,
    *,
    images: str,
    out: str | None = None,
    price: Price | float | None = None,
    labels: str | None = None,
    classes: str | None = None,
) -> None:
    """Print to standard output; in colour only on a terminal that supports it."""
    console = Console(highlight=False, soft_wrap=True)

    def line(name: str, value: str, style: str = "") -> None:
        console.print(f"  {name:<{WIDTH}} ", end="", markup=False, style="dim")
        console.print(printable(value), markup=False, style=style)

    by_purpose = run.ledger.by_purpose()
    spent = ", ".join(f"{purpose} {queries:,}" for purpose, queries in by_purpose.items())
    console.print(f"{run.card.method} on {images}", style="bold", markup=False)
    line("images", f"{len(run.before):,}{preparation(run)}")
    line("queries", f"{run.ledger.total:,} ({spent})")
    cost = money(price, run.ledger.total, calls=run.ledger.calls, seconds=run.seconds)
    line("per image", f"{run.queries_per_image:.2f}{cost}")
    if run.after is None:
        line("answers changed", "not known yet: the adapted images were not sent to the model")
    else:
        line("answers changed", changed_answers(run))
        hint = ""
        if not labels and run.clean is None:
            hint = " (better: --clean and --clean-accuracy, or labels: soda-tta report --labels)"
        print_chart(console, run, hint)
    if run.card.chosen_lr is not None:
        line("chosen lr", f"{run.card.chosen_lr:g}")
    print_conditions(console, run)
    for name, text in adaptor_lines(run):
        line(name, text)
    if run.verdict is not None:
        style = "bold green" if run.verdict.adopt else "bold yellow"
        line("verdict", run.verdict.sentence, style)
    for sentence in run.next_steps:
        line("", sentence)
    line("seconds", f"{run.seconds:.1f}")
    line("stopped", f"{run.stopped}: {as_flags(run.reason)}")
    if out is not None:
        line("written to", out)
        if run.stopped != "interrupted":
            line("report", report_command(out, images, labels, classes), "cyan")


def adaptor_lines(run: Run) -> list[tuple[str, str]]:
    """What is done to images, where all are treated alike, and to responses."""
    lines = []
    if run.conditions is None and run.adaptor.parameters.size:
        lines.append(("adaptor", run.adaptor.describe()))
    if not run.adaptor.answering.is_plain:
        lines.append(("answers", answers_of(run)))
    return lines


def answers_of(run: Run) -> str:
    """How responses become answers: what was stated, and what was done."""
    does = run.adaptor.answering.describe()
    prior = (run.card.answering or {}).get("prior")
    if prior is None:
        return does
    stated = prior if len(prior) <= SHORT else f"{prior[:SHORT]}..."
    return f"{does}, for the stated prior {stated}"


def changed_answers(run: Run) -> str:
    """How many answers changed, as far as it is known."""
    sent = int((~np.isnan(run.before[:, 0])).sum())
    if not sent:
        return "not known: this method does not send the images as they are"
    text = f"{run.changed:,} ({run.changed / sent:.1%})"
    return text if sent == len(run.before) else f"{text} of {sent:,} that were sent as they are"


def print_conditions(console: Console, run: Run) -> None:
    """The conditions of mixed images, and what is done to each."""
    lines = condition_lines(run)
    if run.conditions is not None:
        console.print(f"  conditions: {len(run.conditions)}, told apart by the pixels", style="dim")
    for text in lines:
        console.print(f"    {printable(text)}", markup=False)


def preparation(run: Run) -> str:
    """How the images were brought to the size of the model, and how many were left out, if any."""
    facts = run.card.images
    text = f", {facts['resize']}" if facts.get("original_size") else ""
    sample = facts.get("sample")
    if sample and sample.get("of") is not None:
        text = f" of {sample['of']:,}, chosen at random{text}"
    elif sample:
        text = f", chosen at random{text}"
    skipped = len(facts.get("skipped", []))
    return f"{text}; {skipped:,} unreadable left out" if skipped else text


def report_command(out: str, images: str, labels: str | None, classes: str | None) -> str:
    """The command that makes a page of this run."""
    words = ["soda-tta", "report", out, "--images", images]
    if labels:
        words += ["--labels", labels]
    if classes:
        words += ["--classes", classes]
    return shlex.join(words)


def print_chart(console: Console, run: Run, hint: str) -> None:
    """What is known about the accuracy, and the confidence, before above after."""
    from soda_tta.judging.estimate import Estimate, estimate_accuracy

    assert run.after is not None
    moments = (("before", run.before, "yellow"), ("after", run.after, "blue"))
    accuracy = (run.card.clean or {}).get("accuracy")
    console.print(f"  accuracy, estimated without labels{hint}", style="dim")
    for name, rows, style in moments:
        probabilities = rows[~np.isnan(rows[:, 0])]
        if not len(probabilities):
            continue
        estimate = estimate_accuracy(probabilities, clean=run.clean, clean_accuracy=accuracy)
        console.print(f"    {name:<{WIDTH - 2}} ", end="", style="dim")
        if not isinstance(estimate, Estimate):
            # with clean images and their accuracy everything was given: the reason is news
            why = "" if accuracy is None else f": {estimate.reason}"
            console.print(f"not enough to estimate{why}", markup=False)
            continue
        if not estimate.bound:
            drawn = bar(estimate.accuracy, encoding=console.encoding)
            console.print(f"{drawn}  ", end="", style=style, markup=False)
        console.print(estimate.short, markup=False)
    console.print("  confidence, from 0 to 1", style="dim")
    for name, rows, style in moments:
        confidence = rows[~np.isnan(rows[:, 0])].max(axis=1)
        if not len(confidence):
            continue
        drawn = histogram(confidence, 30, console.encoding)
        console.print(f"    {name:<{WIDTH - 2}} ", end="", style="dim")
        console.print(drawn, end="", style=style, markup=False)
        console.print(f"  mean {confidence.mean():.3f}", markup=False)
