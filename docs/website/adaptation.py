"""Draw docs/adaptation.gif: a search of soda-e on the digits of the demo, round by round.

    python docs/website/adaptation.py

Every frame shows the parameters that the search had at that moment. Labels are used only for the
accuracies that are drawn.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from soda_tta import adapt, load_box
from soda_tta.adaptors import Bank, BankAdaptor
from soda_tta.data import open_images
from soda_tta.demo import accuracy
from soda_tta.plotting import figure_factory
from soda_tta.search import EconomySearch
from soda_tta.zoo.digits import hazy_digits, load_digits

OUT = Path(__file__).parents[1] / "adaptation.gif"
BUDGET = 10  # queries per image, as in the demo
SHOWN = 12  # digits in a frame
SIZE = (7.2, 2.1)  # inches
DPI = 100
FIRST, NEXT, LAST = 1800, 900, 4500  # milliseconds that a frame is shown
COLOURS = 128
RIGHT, WRONG, PALE = "#007a5e", "#c74e00", "#777777"


class WatchedSearch:
    """Remembers where each search was after every round. The search itself is not changed."""

    def __init__(self) -> None:
        self.rounds: list[tuple[np.ndarray, int]] = []
        self.tell = EconomySearch.tell

    def __enter__(self) -> WatchedSearch:
        watched = self

        def tell(search: EconomySearch, probabilities: np.ndarray) -> Any:
            completed = watched.tell(search, probabilities)
            if completed is not None:
                watched.rounds.append((search.theta.copy(), search.spent))
            return completed

        EconomySearch.tell = tell  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        EconomySearch.tell = self.tell  # type: ignore[method-assign]


def frame(images: np.ndarray, rows: np.ndarray, labels: np.ndarray, title: str, below: str):
    """One picture: digits, what the model takes them for, and two lines of text."""
    with figure_factory() as make:
        figure = make(*SIZE)
        figure.set_layout_engine("none")
        figure.text(0.02, 0.90, title, fontsize=12, weight="bold", va="center")
        share = accuracy(rows, labels)
        figure.text(0.98, 0.90, f"{share:.0%} correct", fontsize=12, ha="right", va="center")
        width = 0.96 / SHOWN
        for number in range(SHOWN):
            axes = figure.add_axes((0.02 + number * width, 0.36, width * 0.92, 0.44))
            axes.imshow(images[number].transpose(1, 2, 0), vmin=0, vmax=1)
            axes.axis("off")
            answer = int(rows[number].argmax())
            colour = RIGHT if answer == labels[number] else WRONG
            place = 0.02 + number * width + width * 0.46
            figure.text(place, 0.21, str(answer), fontsize=13, color=colour, ha="center")
        figure.text(0.02, 0.08, below, fontsize=8.5, color=PALE, va="center")
        figure.add_artist(bar(share))
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI)
    return Image.open(buffer).convert("RGB")


def bar(share: float):
    """The accuracy as a bar along the lower edge."""
    from matplotlib.patches import Rectangle

    return Rectangle((0, 0), share, 0.025, color=RIGHT, linewidth=0)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model, file = hazy_digits(folder)
        box = load_box(model)
        with WatchedSearch() as watched:
            run = adapt(file, box, budget=BUDGET)
        images = open_images(file)[:]
        labels = load_digits(seed=0).test_labels
        first = frame(
            images, run.before, labels, "as they are", "the model's answers; red ones are wrong"
        )
        frames = [first]
        bank = Bank.for_size(images.shape[2:])
        seen = np.zeros(len(bank.build().parameters))
        for theta, spent in watched.rounds:
            if np.array_equal(theta, seen):
                continue  # a round without a change
            seen = theta
            adaptor = BankAdaptor(structure=bank, parameters=theta.astype(np.float32))
            queries = 1 + spent / len(images)
            title = f"{queries:.1f} queries per image"
            adapted = adaptor(images)
            frames.append(frame(adapted, box(adapted), labels, title, adaptor.describe()))
        title = f"{run.queries_per_image:.1f} queries per image, with the verdict: adopt"
        assert run.verdict is not None and run.verdict.adopt
        adapted = run.adaptor(images)
        frames.append(frame(adapted, run.probabilities, labels, title, run.adaptor.describe()))
    save(frames)


def save(frames: list[Image.Image]) -> None:
    """Write all frames with one palette: small, and the colours do not flicker."""
    both = Image.new("RGB", (frames[0].width, 2 * frames[0].height))
    both.paste(frames[0])
    both.paste(frames[-1], (0, frames[0].height))
    palette = both.quantize(COLOURS, dither=Image.Dither.NONE)
    small = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in frames]
    durations = [FIRST, *[NEXT] * (len(frames) - 2), LAST]
    small[0].save(
        OUT, save_all=True, append_images=small[1:], duration=durations, loop=0, optimize=True
    )
    print(f"{OUT}: {len(frames)} frames, {OUT.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
