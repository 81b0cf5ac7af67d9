"""What `adapt` prints at its end: what came out, what it cost, and a small chart of before and after."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.console import Console

from soda_tta.cli.blocks import bar, histogram
from soda_tta.cli.display import money

if TYPE_CHECKING:
    from soda_tta.engine.run import Run

WIDTH = 16  # of the names on the left


def print_summary(
    run: Run,
    *,
    images: str,
    out: str | None = None,
    price: float | None = None,
    labels: str | None = None,
    classes: str | None = None,
) -> None:
    """Print to standard output; colours only on a terminal that wants them."""
    console = Console(highlight=False, soft_wrap=True)

    def line(name: str, value: str, style: str = "") -> None:
        console.print(f"  {name:<{WIDTH}} ", end="", markup=False, style="dim")
        console.print(value, markup=False, style=style)

    spent = ", ".join(
        f"{purpose} {queries:,}" for purpose, queries in run.ledger.by_purpose().items()
    )
    console.print(f"{run.card['method']} on {images}", style="bold", markup=False)
    line("images", f"{len(run.before):,}")
    line("queries", f"{run.ledger.total:,} ({spent})")
    line("an image", f"{run.queries_per_image:.2f}{money(run.ledger.total, price)}")
    if run.after is None:
        line("answers changed", "not known yet: the adapted images were not asked about")
    else:
        line("answers changed", f"{run.changed:,} ({run.changed / len(run.before):.1%})")
        print_chart(
            console, run, "" if labels else " (labels would tell: soda-tta report --labels)"
        )
    if "chosen_lr" in run.card:
        line("chosen lr", f"{run.card['chosen_lr']:g}")
    if run.adaptor.parameters.size:
        line("the adaptor", run.adaptor.describe())
    if run.verdict is not None:
        line("verdict", run.verdict.sentence, "bold green" if run.verdict.adopt else "bold yellow")
    line("seconds", f"{run.seconds:.1f}")
    line("stopped", f"{run.stopped}: {run.reason}")
    if out is not None:
        line("written", out)
        if run.stopped != "interrupted":
            known = [
                *(["--labels", labels] if labels else []),
                *(["--classes", classes] if classes else []),
            ]
            line(
                "look at it",
                shlex.join(["soda-tta", "report", out, "--images", images, *known]),
                "cyan",
            )


def print_chart(console: Console, run: Run, better: str) -> None:
    """Estimated accuracy and confidence, before above after."""
    from soda_tta.judging.estimate import estimate_accuracy

    assert run.after is not None
    moments = (("before", run.before, "yellow"), ("after", run.after, "blue"))
    console.print(f"  accuracy, estimated without labels{better}", style="dim")
    for name, probabilities, style in moments:
        guess = estimate_accuracy(probabilities)
        console.print(f"    {name:<{WIDTH - 2}} ", end="", style="dim")
        console.print(
            bar(guess.accuracy, encoding=console.encoding), end="", style=style, markup=False
        )
        most = "at most " if guess.bound else ""  # the model answers with classes
        console.print(
            f"  {most}{guess.accuracy:4.0%}  ({guess.low:.0%} to {guess.high:.0%})", markup=False
        )
    console.print("  confidence, from 0 to 1", style="dim")
    for name, probabilities, style in moments:
        confidence = probabilities.max(axis=1)
        console.print(f"    {name:<{WIDTH - 2}} ", end="", style="dim")
        console.print(
            histogram(confidence, 30, console.encoding), end="", style=style, markup=False
        )
        console.print(f"  mean {confidence.mean():.3f}", markup=False)
