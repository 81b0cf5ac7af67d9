"""The documentation site in a real browser: on a phone, in the dark, without a network."""

import re
from pathlib import Path

import pytest

from soda_tta import SodaError
from soda_tta.data.home import data_file

from .conftest import Visit

pytestmark = pytest.mark.browser
SITE = Path(__file__).parents[2] / "build" / "site"
NOTEBOOKS = (
    "first_adaptation.py",
    "mixed_conditions.py",
    "live_stream.py",
    "paper_row.py",
    "own_method.py",
)
PHONE, DESK = 380, 1200
WIDER = """() => [...document.querySelectorAll("body *")].filter(
    (part) => part.getBoundingClientRect().right > window.innerWidth + 1
        && !part.closest(".table-wrapper, pre, .sidebar-drawer, .toc-drawer")
).slice(0, 3).map((part) => part.outerHTML.slice(0, 120))"""
OVERFLOW = "document.scrollingElement.scrollWidth - window.innerWidth"
UNREADABLE = """() => [...document.images].filter(
    (image) => image.offsetParent && !image.naturalWidth).map((image) => image.src)"""


@pytest.fixture(scope="module")
def site() -> Path:
    if not (SITE / "index.html").exists():
        pytest.skip("the site is not built: make docs")
    return SITE


def test_every_page_fits_a_phone_in_the_dark(browser, site: Path) -> None:
    pages = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    assert len(pages) > 50
    wrong = {}
    with Visit(browser, pages[0], PHONE, "dark") as visit:
        for path in pages:
            visit.page.goto(path.as_uri())
            visit.page.evaluate("document.fonts.ready")
            wider, pictures = visit.page.evaluate(WIDER), visit.page.evaluate(UNREADABLE)
            if visit.page.evaluate(OVERFLOW) > 0 or wider or pictures:
                wrong[path.relative_to(site).as_posix()] = [*wider, *pictures]
        assert wrong == {}
        assert visit.messages == []
        assert not [url for url in visit.requests if not url.startswith(("file:", "data:"))]


def test_text_is_light_on_dark_where_the_reader_prefers_that(browser, site: Path) -> None:
    brightness = """(part) => getComputedStyle(document.querySelector(part)).color
        .match(/[0-9.]+/g).slice(0, 3).reduce((sum, value) => sum + Number(value) / 765, 0)"""
    for scheme, is_bright in (("light", False), ("dark", True)):
        with Visit(browser, site / "index.html", DESK, scheme) as visit:
            assert (visit.page.evaluate(brightness, "article p") > 0.5) is is_bright


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("label-these", "how-to/judge"),
        ("BudgetError", "reference/errors"),
        ("batch norm", "research/soda-e"),
    ],
)
def test_the_search_finds(browser, site: Path, words: str, page: str) -> None:
    address = f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}"
    with Visit(browser, address, DESK) as visit:
        visit.page.wait_for_selector("ul.search li", timeout=15_000)
        visit.page.wait_for_function(
            "(page) => [...document.querySelectorAll('ul.search li a')]"
            ".some((link) => link.href.includes(page))",
            arg=page,
            timeout=15_000,
        )


def test_the_menu_of_a_phone_leads_to_a_page(browser, site: Path) -> None:
    with Visit(browser, site / "index.html", PHONE) as visit:
        visit.page.click("label.nav-overlay-icon >> visible=true")
        visit.page.click(".sidebar-tree a:has-text('When not to use this')")
        visit.page.wait_for_url("**/concepts/when-not-to-use.html")


def notebook(site: Path, script: str) -> str:
    """The text of the page of an example, with what its cells printed."""
    page = (site / "examples" / script).with_suffix(".html").read_text()
    return re.sub(r"<[^>]+>", "", page)


@pytest.mark.parametrize("script", NOTEBOOKS)
def test_a_notebook_was_run(site: Path, script: str) -> None:
    if script == "paper_row.py":
        try:
            data_file("cifar10-test.npz")
        except SodaError as error:
            pytest.skip(str(error))
    text = notebook(site, script)
    assert "Run when this page was made" in text, f"{script} was not run to its end"
    assert "not run here" not in text


def test_conditions_that_are_harmed_gain_and_clean_images_stay_clean(site: Path) -> None:
    rows = re.findall(r"^(clean|hazy|noisy) +(.*)%$", notebook(site, "mixed_conditions.py"), re.M)
    shares = {name: [float(share) for share in row.split("%")] for name, row in rows}
    assert shares["hazy"][2] > shares["hazy"][0] + 40
    assert shares["noisy"][2] > shares["noisy"][0]
    assert shares["clean"][0] == shares["clean"][2] > shares["clean"][1]


def test_the_live_stream_promotes_an_adaptor(site: Path) -> None:
    text = notebook(site, "live_stream.py")
    accuracies = [float(share) for share in re.findall(r"accuracy +([0-9.]+)%", text)]
    assert len(accuracies) == 24
    assert min(accuracies[:3]) > 90 > 40 > max(accuracies[3:6])  # clean, then haze
    assert min(accuracies[-3:]) > 85
    assert "standard contrast" in text
