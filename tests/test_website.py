"""The parts that make the documentation site. The site itself is built by `make docs`."""

import doctest
import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WEBSITE = ROOT / "docs" / "website"
SCRIPT = '''"""A title.

    python here.py

An introduction.
"""

# %% [markdown]
# ## Text
#
# With *stress*.

# %%
from PIL import Image

print("printed")
Image.new("RGB", (2, 2))

# %%
raise SystemExit("no data here")

# %%
print("never")
'''


@pytest.fixture
def part(monkeypatch):
    """A function that imports a part of the site by its name."""
    monkeypatch.syspath_prepend(str(WEBSITE))
    for name in ("pages", "links", "examples", "docstrings"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module


@pytest.mark.parametrize("name", ["pages", "examples", "docstrings"])
def test_the_examples_in_its_docstrings_are_true(part, name: str) -> None:
    results = doctest.testmod(part(name))
    assert results.attempted and not results.failed


def test_links_lead_from_page_to_page(part) -> None:
    pages = part("pages")
    attached = []

    def attach(file: str) -> str:
        attached.append(file)
        return f"files/{file}"

    text = (
        "[a](../tutorial.md#1) [b](../../CHANGELOG.md) [c](../../LICENSE)\n```\n[d](none.md)\n```\n"
    )
    written = pages.page_text("docs/how-to/x.md", text, attach)
    assert "[a](../tutorial.md#1) [b](../project/changelog.md) [c](../files/LICENSE)" in written
    assert "[d](none.md)" in written and attached == ["LICENSE"]
    with pytest.raises(ValueError, match="does not exist"):
        pages.page_text("docs/x.md", "[e](nowhere.md)", attach)


def test_a_menu_has_what_the_tables_of_the_index_list(part) -> None:
    menus = part("pages").menus("docs/index.md", (ROOT / "docs" / "index.md").read_text())
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    listed = menus.splitlines()
    assert not [page for page in pages if str(page) not in listed and str(page) != "index.md"]
    assert "project/changelog.md" in listed and ":caption: Concepts" in listed


def test_the_comments_of_the_api_pages_become_directives(part) -> None:
    text = part("pages").page_text(
        "docs/reference/x.md", "<!-- autodoc class soda_tta.Box -->", str
    )
    assert ".. autoclass:: soda_tta.Box" in text


def test_a_notebook_is_run_and_rendered(part, tmp_path: Path) -> None:
    examples = part("examples")
    script = tmp_path / "here.py"
    script.write_text(SCRIPT)
    results, seconds = examples.results_of(script, tmp_path / "cache")
    again, _ = examples.results_of(script, tmp_path / "cache")
    assert again == results
    text, pictures = examples.notebook_page(script, results, seconds)
    assert text.startswith("# A title\n\n```sh\npython here.py\n```\n\nAn introduction.")
    assert "With *stress*." in text and "```text\nprinted\n```" in text
    assert "not run here: no data here" in text and "```text\nnever" not in text
    assert list(pictures) == ["here-1.png"] and pictures["here-1.png"].startswith(b"\x89PNG")
    notebook = json.loads(examples.notebook_file(script))
    assert [cell["cell_type"] for cell in notebook["cells"]][:3] == ["markdown", "markdown", "code"]


def test_every_fault_of_a_link_is_found(part, tmp_path: Path) -> None:
    links = part("links")
    (tmp_path / "b.html").write_text('<h1 id="here">B</h1>')
    wrong = {
        "nowhere.html": "no such file",
        "b.html#there": "no such anchor",
        "#there": "no such anchor",
        "https://nowhere": "not an address",
        "file:///etc": "cannot open",
    }
    right = ["b.html", "b.html#here", "https://example.org/x", "mailto:a@example.org"]
    anchors = "".join(f'<a href="{link}">x</a>' for link in [*right, *wrong])
    (tmp_path / "a.html").write_text(
        f'{anchors}<script src="https://cdn.example.org/x.js"></script>'
    )
    faults = links.faults(tmp_path)
    assert len(faults) == len(wrong) + 1
    for link, fault in wrong.items():
        assert [line for line in faults if f"-> {link}:" in line and fault in line]
    assert "loads https://cdn.example.org/x.js from elsewhere" in faults[0]
