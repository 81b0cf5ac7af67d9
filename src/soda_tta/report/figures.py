"""The figures of a page: each function turns numbers into SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from soda_tta.engine.events import Step
from soda_tta.report.drawing import AFTER, BEFORE, INK, LINE, SERIES, STYLES, Drawing, drawing
from soda_tta.report.predictions import Calibration, Predictions
from soda_tta.report.response import Response
from soda_tta.types import Array

POINTS = 300  # of a curve; more are averaged to keep the page small
CHANNELS = {"red": "#d33", "green": "#2a2", "blue": "#46f"}
MARKED = 15  # a curve with fewer points shows each as a marker


def confidence_histogram(before: Predictions, after: Predictions | None) -> Markup:
    """The distribution of the confidence."""
    edges = np.linspace(0, 1, 21)
    with drawing("Confidence of the predictions, before and after") as plot:
        shares, _ = np.histogram(before.confidence, edges)
        plot.axes.stairs(
            shares / len(before.confidence),
            edges,
            color=BEFORE,
            fill=True,
            alpha=0.35,
            label="before",
        )
        if after is not None:
            shares, _ = np.histogram(after.confidence, edges)
            plot.axes.stairs(
                shares / len(after.confidence), edges, color=AFTER, linewidth=1.8, label="after"
            )
        plot.axes.set(xlabel="confidence", ylabel="share of images", xlim=(0, 1))
        plot.axes.legend(loc="upper left")
    return plot.svg


def reliability(before: Calibration, after: Calibration | None) -> Markup:
    """Accuracy against confidence: on the diagonal, 80 % confidence means 80 % correct."""
    with drawing("Reliability: accuracy against confidence, before and after") as plot:
        plot.axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
        for name, curve, colour, marker in (
            ("before", before, BEFORE, "o"),
            ("after", after, AFTER, "s"),
        ):
            if curve is None:
                continue
            label = f"{name}: ECE {curve.error:.1%}"
            plot.axes.plot(
                curve.confidence,
                curve.accuracy,
                color=colour,
                marker=marker,
                markersize=4,
                label=label,
            )
        plot.axes.set(xlabel="confidence", ylabel="share correct", xlim=(0, 1), ylim=(0, 1))
        plot.axes.legend(loc="upper left")
    return plot.svg


def tone_curve(response: Response, condition: str = "") -> Markup:
    """The mean output of each pixel value; `condition` is whose adaptor it is, if any."""
    with drawing(titled("Tone curve: mean output of each pixel value", condition)) as plot:
        plot.axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
        if response.common:
            for (name, colour), tone, style in zip(
                CHANNELS.items(), response.tone, STYLES, strict=False
            ):
                plot.axes.plot(response.level, tone, color=colour, linestyle=style, label=name)
        else:
            for place, (level, tone) in enumerate(response.curves):
                label = None if place else "one line per image, in grey"
                plot.axes.plot(level, tone, color=AFTER, alpha=0.7, linewidth=1.2, label=label)
        plot.axes.set(
            xlabel="pixel value in", ylabel="mean pixel value out", xlim=(0, 1), ylim=(0, 1)
        )
        plot.axes.legend(loc="upper left")
    return plot.svg


def frequency_response(response: Response, condition: str = "") -> Markup:
    """The share of a faint pattern that passes, from coarse to fine."""
    title = titled("Frequency response: share of a pattern that passes, coarse to fine", condition)
    with drawing(title) as plot:
        plot.axes.axhline(1, color=INK, linewidth=0.8, linestyle=":")
        plot.axes.plot(response.frequency, response.gain, color=AFTER, marker="o", markersize=3.5)
        low = min(0.0, float(response.gain.min()))
        high = max(1.3, 1.1 * float(response.gain.max()))
        plot.axes.set(
            xlabel="cycles per pixel: coarse to fine",
            ylabel="gain",
            xlim=(0, 0.5),
            ylim=(low * 1.1, high),
        )
    return plot.svg


def titled(title: str, condition: str) -> str:
    """A title that differs for each condition, because ids within the page follow from it."""
    return f"{title} ({condition})" if condition else title


@dataclass(frozen=True)
class History:
    """The steps of one run, after so many queries for its first pass."""

    name: str
    first_pass: int
    steps: Sequence[Step]


def over_queries(
    histories: Sequence[History], value: Callable[[Step], float], label: str
) -> Markup:
    """A value of every step against the queries used up to it, one curve per run."""
    with drawing(f"{label} over queries") as plot:
        for place, history in enumerate(histories):
            queries = history.first_pass + np.cumsum([step.queries for step in history.steps])
            x, y = thinned(queries, np.array([value(step) for step in history.steps]))
            colour = AFTER if len(histories) == 1 else SERIES[place % len(SERIES)]
            style = STYLES[place % len(STYLES)]
            marker = "." if len(x) < MARKED else ""
            plot.axes.plot(x, y, color=colour, linestyle=style, marker=marker, label=history.name)
        plot.axes.set(xlabel="queries", ylabel=label)
        thousands(plot)
        if len(histories) > 1:
            plot.axes.legend()
    return plot.svg


def thousands(plot: Drawing) -> None:
    """Label the x axis in thousands."""
    plot.axes.xaxis.set_major_formatter(
        lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
    )
    plot.axes.locator_params(axis="x", nbins=5)


def thinned(x: Array, y: Array) -> tuple[Array, Array]:
    """At most POINTS points of a curve: means of neighbours."""
    if len(x) <= POINTS:
        return x, y
    edges = np.linspace(0, len(x), POINTS + 1).astype(int)[:-1]
    counts = np.diff([*edges, len(x)])
    return np.add.reduceat(x, edges) / counts, np.add.reduceat(y, edges) / counts


def class_shares(
    before: Predictions, after: Predictions, names: Sequence[str], most: int = 12
) -> Markup:
    """How often each class is predicted, for the classes whose share changed most."""
    count = len(before.classes)
    shares = np.stack([before.per_class, after.per_class]) / count
    chosen = np.argsort(-np.abs(shares[1] - shares[0]), kind="stable")[:most]
    chosen = np.sort(chosen)[::-1]
    rows = np.arange(len(chosen))
    title = "How often each class is predicted, before and after"
    with drawing(title, (4.4, 0.9 + 0.24 * len(chosen))) as plot:
        plot.axes.hlines(rows, shares[0][chosen], shares[1][chosen], color=LINE, linewidth=2)
        plot.axes.plot(shares[0][chosen], rows, "o", color=BEFORE, markersize=5, label="before")
        plot.axes.plot(shares[1][chosen], rows, "s", color=AFTER, markersize=5, label="after")
        plot.axes.set_yticks(rows, [shortened(names[index]) for index in chosen])
        plot.axes.set(xlabel="share of predictions", xlim=(0, None), ylim=(-0.7, len(chosen) - 0.3))
        plot.axes.legend(loc="lower right")
    return plot.svg


def shortened(name: str, most: int = 18) -> str:
    """A name of at most `most` characters.

    >>> shortened("a very long class name", most=10)
    'a very lo…'
    """
    return name if len(name) <= most else name[: most - 1] + "…"


def lines(series: dict[str, list[tuple[float, float]]], title: str, x: str, y: str) -> Markup:
    """Several named curves of (x, y) points."""
    with drawing(title, (4.4, 3.2)) as plot:
        for place, (name, points) in enumerate(series.items()):
            curve = np.array(points)
            colour = SERIES[place % len(SERIES)]
            style = STYLES[place % len(STYLES)]
            plot.axes.plot(
                curve[:, 0], curve[:, 1], color=colour, linestyle=style, marker=".", label=name
            )
        plot.axes.set(xlabel=x, ylabel=y)
        thousands(plot)
        plot.axes.legend(fontsize=7)
    return plot.svg
