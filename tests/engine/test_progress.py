"""What a run shows while it works, in a terminal, a script and a notebook."""

import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest

from soda_tta import adapt, apply
from soda_tta.adaptors import Identity
from soda_tta.box import CallableBox
from soda_tta.display import in_notebook, open_bar
from soda_tta.display.notebook import NotebookBar
from soda_tta.engine.events import Event, Notice, Planned, Responded, Step
from soda_tta.engine.progress import Display, shown

PAPER = dict(method="soda", epochs=1, batch=25, width=4)


class Notebook:
    """Stands in for IPython: keeps what a cell shows."""

    def __init__(self, *, kernel: bool = True) -> None:
        self.shown: list[str] = []  # outputs in order; a handle replaces its own
        shell = SimpleNamespace(kernel=object()) if kernel else SimpleNamespace()
        self.get_ipython = lambda: shell
        self.HTML = str

    def display(self, html: str, display_id: bool = False):
        place = len(self.shown)
        self.shown.append(html)

        def update(html: str) -> None:
            self.shown[place] = html

        return SimpleNamespace(update=update)


@pytest.fixture
def notebook(monkeypatch) -> Notebook:
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    return notebook


class Bar:
    """Keeps what is drawn."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.drawn: list[int] = []
        self.begin = self.start = self.stop = self.say = lambda *_: None

    def show(self, name: str, done: int, beside: str, below: str) -> None:
        self.drawn.append(done)


def test_every_response_is_an_event_not_only_every_round(model, faded_images) -> None:
    calls: list[int] = []

    def counting(images):
        calls.append(len(images))
        return model(images)

    events: list = []
    box = CallableBox(counting, batch=16)  # less than the search asks at once
    run = adapt(faded_images(), box, budget=20, listener=events.append)
    responded = [event for event in events if isinstance(event, Responded)]
    assert [event.queries for event in responded] == calls
    assert sum(calls) == run.ledger.total
    places = [place for place, event in enumerate(events) if isinstance(event, Step)]
    in_first_round = [e for e in events[: places[0]] if isinstance(e, Responded)]
    assert len(in_first_round) > 5
    assert {event.purpose for event in responded} == set(run.ledger.queries)


def test_the_bar_moves_with_every_response() -> None:
    display = Display()
    display.bar = Bar()
    ledger = SimpleNamespace(total=0)
    plan = SimpleNamespace(queries={"select": 30}, total=30, hard_limit=None)
    display(Planned(plan, ledger))
    ledger.total = 30  # one question of three requests
    for _ in range(3):
        display(Responded("select", 10))
    assert display.bar.drawn == [10, 20, 30]


def test_progress_shows_notices_instead_of_warnings_and_the_listener_hears_all(
    images, box, capsys
) -> None:
    events: list = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapt(images, box, progress=True, **PAPER)
        adapt(images, box, progress=True, listener=events.append, **PAPER)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("note: ") == 2 and 'lr="auto"' in printed.err  # not --set lr=auto
    assert any(isinstance(event, Notice) for event in events)
    assert "\x1b" not in printed.err  # nothing is drawn where there is no terminal


def test_a_notebook_shows_one_bar_that_replaces_itself(images, box, notebook) -> None:
    adapt(images, box, progress=True, **PAPER)
    bar, note = notebook.shown
    assert "400 of 400 queries" in bar and "<progress" not in bar  # it has ended
    assert note.startswith("<div>note: ")


def test_apply_shows_its_progress(images, box, notebook) -> None:
    apply(Identity(), images, box, progress=True)
    (bar,) = notebook.shown
    assert "50 of 50 queries" in bar and "50/50 images" in bar


def test_text_in_a_notebook_is_escaped(notebook) -> None:
    bar = NotebookBar()
    bar.begin("<b>", 3)
    bar.show("<b>", 1, "<i>", "<u>")
    assert '<progress value="1" max="3">' in notebook.shown[0]
    bar.say("<script>")
    bar.stop()
    assert not [
        text for text in notebook.shown for tag in ("<b>", "<i>", "<u>", "<script>") if tag in text
    ]


def test_a_notebook_is_recognised_by_its_kernel(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", Notebook(kernel=False))  # IPython in a terminal
    assert not in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", Notebook())
    assert in_notebook()
    assert not isinstance(open_bar(quiet=True), NotebookBar)


def test_progress_changes_nothing_in_the_result(images, box, capsys) -> None:
    shown = adapt(images, box, progress=True, **PAPER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        silent = adapt(images, box, **PAPER)
    np.testing.assert_array_equal(shown.probabilities, silent.probabilities)
    assert shown.card.facts() == silent.card.facts()


def test_events_of_several_threads_are_delivered_one_at_a_time() -> None:
    inside: list[int] = []
    most: list[int] = []

    def listener(event) -> None:
        inside.append(1)
        time.sleep(0.002)
        most.append(len(inside))
        inside.pop()

    with shown(listener, progress=False) as deliver, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: deliver(Responded("probe", 1)), range(8)))
    assert most == [1] * 8


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.__name__)
def test_the_page_lists_every_event_and_its_fields(event: type) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "progress.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{event.__name__}` |")]
    assert not [field.name for field in fields(event) if f"`{field.name}`" not in row]
