"""Reports in a real browser: no errors, no requests, and readable on a phone and on paper."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from soda_tta import adapt, load_box
from soda_tta.bench import Cell, CellResult, Store
from soda_tta.report import write_report
from soda_tta.zoo.digits import hazy_digits, load_digits

from .conftest import Visit

pytestmark = pytest.mark.browser
EVIL = (
    "<script>alert('evil')</script><img src=http://evil.example/x onerror=alert(1)>" + "long" * 60
)
PAGES = ("run", "plain", "compared", "bench", "evil", "killed", "mixed")
PHONE, DESK = 380, 1100


@pytest.fixture(scope="module")
def pages(tmp_path_factory, mixed) -> dict[str, Path]:
    """Every kind of page, from real runs with the model of the demo."""
    place = tmp_path_factory.mktemp("pages")
    model, source = hazy_digits(place)
    images, labels = np.load(source)[:300], load_digits(0).test_labels[:300]
    box, small = load_box(str(model)), {"epochs": 4, "lr": 0.05, "width": 8}
    run = adapt(images, box, method="soda", out=place / "run", **small)
    other = adapt(images, box, method="soda", seed=1, **small)
    made = {name: place / f"{name}.html" for name in PAGES}
    write_report(run, made["run"], images=images, labels=labels, price=1.5)
    write_report(run, made["plain"])
    write_report(mixed.run, made["mixed"], images=mixed.images, labels=mixed.labels)
    write_report(
        [run, other, adapt(images, box, method="lame")],
        made["compared"],
        images=images,
        labels=labels,
    )
    store = Store(place / "store")
    for corruption in ("fog", "contrast"):
        for method in (
            "soda",
            "deployed",
            "soda-fo",
            "bn",
            "tent",
            "lame",
            "dine",
            "beta",
            "da-pl",
        ):
            store.add(Cell(method=method, corruption=corruption), measured(40, 50))
    write_report(store.folder, made["bench"])
    run.names[:] = [f"{EVIL}{index}" for index in range(300)]
    run.notices.append(EVIL)
    run.card = replace(run.card, command=["adapt", "--model", EVIL])
    classes = [f"{index}{EVIL}" for index in range(10)]
    write_report(run, made["evil"], images=images, labels=labels, classes=classes)
    (place / "run" / "answers.safetensors").unlink()
    (place / "run" / "adaptor.safetensors").unlink()
    write_report(place / "run", made["killed"])
    return made


def measured(before: float, after: float) -> CellResult:
    curve = [
        {"epoch": e, "queries": 100 * e, "loss": -e, "lr": 0.1, "accuracy": before + e}
        for e in (1, 2, 3)
    ]
    return CellResult(
        before=before,
        after=after,
        queries={"select": 100},
        queries_per_image=10.0,
        seconds=60.0,
        curve=curve,
    )


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(PHONE, "dark"), (DESK, "light")])
def test_a_page_has_no_errors_and_fits_the_screen(
    browser, pages, name: str, width: int, scheme: str
) -> None:
    with Visit(browser, pages[name], width, scheme) as visit:
        assert visit.messages == [] and visit.external_requests() == []
        widths = visit.page.evaluate(
            "Promise.all([...document.images].map("
            "i => i.decode().then(() => i.naturalWidth, () => 0)))"
        )
        assert all(widths), "an image does not decode"
        assert len(widths) >= (9 if name in ("run", "evil") else 0)
        scroll_width, window_width = visit.page.evaluate(
            "[document.documentElement.scrollWidth, window.innerWidth]"
        )
        assert scroll_width <= window_width == width
        assert visit.page.evaluate("document.scripts.length") == 0


def test_figures_use_the_colours_of_the_page_in_both_schemes(browser, pages) -> None:
    inks = []
    for scheme in ("light", "dark"):
        with Visit(browser, pages["run"], DESK, scheme) as visit:
            fills = "[...document.querySelectorAll('svg text')].map(t => getComputedStyle(t).fill)"
            colours = set(visit.page.evaluate(fills))
            assert len(colours) == 1  # the text colour of the page
            inks.append(colours.pop())
            sizes = visit.page.evaluate(
                "[...document.querySelectorAll('figure svg')].map(s => s.clientWidth)"
            )
            assert len(sizes) == 7 and min(sizes) > 300
            text = visit.page.inner_text("body")
            assert "mutual information (nats)" in text and "cycles per pixel" in text
    assert inks[0] != inks[1]


def test_text_in_figures_is_readable_on_a_phone(browser, pages) -> None:
    with Visit(browser, pages["run"], PHONE) as visit:
        heights = visit.page.evaluate(
            "[...document.querySelectorAll('svg text')]"
            ".filter(t => !t.getAttribute('transform')?.includes('-90'))"
            ".map(t => t.getBoundingClientRect().height)"
        )
        assert min(heights) > 9


def test_a_page_prints_on_a_few_white_sheets(browser, pages) -> None:
    with Visit(browser, pages["run"], DESK, "dark") as visit:
        visit.page.emulate_media(media="print")
        background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(255, 255, 255)"
        printed = visit.page.pdf(format="A4")
        assert printed.startswith(b"%PDF") and 2 <= printed.count(b"/Type /Page\n") <= 10
