"""The page of a simulation: accuracy over time, with and without the proxy."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from soda_tta.report.drawing import AFTER, BEFORE, INK, LINE, drawing
from soda_tta.report.figures import thousands
from soda_tta.report.page import Figure, render
from soda_tta.serve.simulation import Simulation, Window
from soda_tta.storage.atomic import write_text

CAPTION = "Each point is the share of a window of at most {size:,} images, at its middle."


def write_simulation_page(
    simulation: Simulation, path: str | Path, size: int, title: str = "simulated traffic"
) -> Path:
    """Write one self-contained page with the curve and its table.

    Parameters
    ----------
    simulation : Simulation
        What was measured.
    path : path
        The file to write.
    size : int
        The most images of a window.
    title : str
        What the traffic is called.
    """
    windows = simulation.windows(size)
    html = render(
        "simulation.html",
        title=title,
        simulation=simulation,
        measured=simulation.labels is not None,
        compared=simulation.direct is not None,
        windows=windows,
        phases=simulation.by_phase(),
        figure=Figure(curve(windows, simulation.by_phase()), CAPTION.format(size=size)),
    )
    write_text(Path(path), html)
    return Path(path)


def curve(windows: list[Window], phases: list[Window]) -> Markup:
    """Accuracy over the images sent; without labels, the share of changed answers."""
    series: dict[str, tuple[str, str, list[float | None]]] = {
        "with the proxy": (AFTER, "-", [each.proxy for each in windows]),
        "the model directly": (BEFORE, "--", [each.direct for each in windows]),
    }
    label = "accuracy in %"
    if not any(each.proxy is not None for each in windows):
        series = {"changed by the proxy": (AFTER, "-", [each.changed for each in windows])}
        label = "changed answers in %"
    with drawing("Accuracy over time", (7.2, 3.2)) as plot:
        middles = [each.start + each.images / 2 for each in windows]
        for name, (colour, style, shares) in series.items():
            known = [(x, 100 * y) for x, y in zip(middles, shares, strict=True) if y is not None]
            if known:
                x, y = zip(*known, strict=True)
                plot.axes.plot(x, y, color=colour, linestyle=style, marker=".", label=name)
                plot.axes.legend(fontsize=7, loc="lower left")
        for phase in phases:
            plot.axes.axvline(phase.start, color=LINE, linewidth=0.8, linestyle=":")
            place = (phase.start, 1.0)
            plot.axes.annotate(
                phase.condition.replace("_", " "),
                place,
                xytext=(2, 2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                fontsize=7,
                color=INK,
            )
        plot.axes.set(xlabel="images sent", ylabel=label, ylim=(0, 101))
        thousands(plot)
    return plot.svg
