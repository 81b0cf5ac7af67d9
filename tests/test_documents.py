"""The documents are true: examples run, commands exist, links lead somewhere."""

import doctest
import importlib
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import soda_tta
from soda_tta.cli import build_parser

ROOT = Path(__file__).parents[1]
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(soda_tta.__path__, "soda_tta.")
    if ".cli" not in name
]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            path
            for folder in ("docs", "benchmarks", "examples", "tests")
            for path in (ROOT / folder).rglob("*.md")
        ),
    ]
)
GUIDES = [
    ROOT / "README.md",
    ROOT / "docs" / "tutorial.md",
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    *sorted((ROOT / "docs" / "concepts").glob("*.md")),
]
NOT_RUN = "<!-- not run"  # a comment above a block that cannot run here, with the reason


def name_of(document: Path) -> str:
    """A document as it is called in test names and messages."""
    return str(document.relative_to(ROOT))


def without_code(text: str) -> str:
    """The prose of a document."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def blocks(document: Path) -> Iterator[tuple[str, str]]:
    """The language and the text of every block of code, except those marked as not run."""
    text = document.read_text()
    for match in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        above = text[: match.start()].rstrip().rpartition("\n")[2]
        if not above.startswith(NOT_RUN):
            yield match[1], match[2]


def python_examples(document: Path) -> str:
    """All examples of a document as one session: later blocks use the names of earlier ones."""
    sessions = [text for language, text in blocks(document) if language == "python"]
    return "\n".join(text for text in sessions if ">>>" in text)


def example_files(document: Path) -> dict[str, str]:
    """Blocks that begin with a comment such as `# mine.py`: files that the examples import."""
    texts = [text for language, text in blocks(document) if language == "python"]
    matches = [(re.match(r"# (\w+\.py)\n", text), text) for text in texts]
    return {match[1]: text for match, text in matches if match}


def commands(document: Path) -> list[str]:
    """The `soda-tta` commands shown in a document, without comments and placeholders."""
    shown = []
    for language, text in blocks(document):
        if language not in ("", "console", "sh", "bash"):
            continue
        for line in text.replace("\\\n", " ").splitlines():
            command = line.removeprefix("$ ").partition("  #")[0].partition(" > ")[0]
            if command.startswith("soda-tta ") and " ..." not in command:
                shown.append(command)
    return shown


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub makes from the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", without_code(document.read_text()), re.MULTILINE)
    found: dict[str, int] = {}
    for heading in headings:
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        repeated = found.get(anchor, 0)
        found[anchor] = repeated + 1
        if repeated:
            found[f"{anchor}-{repeated}"] = 1
    return set(found)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("document", filter(python_examples, GUIDES), ids=name_of)
def test_python_examples_are_true(document: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in example_files(document).items():
        (tmp_path / name).write_text(text)
    session = python_examples(document)
    test = doctest.DocTestParser().get_doctest(session, {}, name_of(document), str(document), 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(test).failed == 0


def test_the_list_of_benchmarks_is_complete() -> None:
    folder = ROOT / "benchmarks"
    listed = (folder / "README.md").read_text()
    assert not [path.name for path in folder.glob("*.py") if f"`{path.name}`" not in listed]


def test_the_readme_and_the_tutorial_have_examples() -> None:
    assert python_examples(ROOT / "README.md")
    assert python_examples(ROOT / "docs" / "tutorial.md")


@pytest.mark.parametrize("document", filter(commands, DOCUMENTS), ids=name_of)
def test_commands_have_options_that_exist(document: Path) -> None:
    parser = build_parser()
    for command in commands(document):
        try:
            parser.parse_args(shlex.split(command)[1:])
        except SystemExit:
            pytest.fail(f"{name_of(document)} shows a command that does not exist: {command}")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", without_code(document.read_text()))
    for link in links:
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), f"{name_of(document)} -> {link}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(document)} -> {link}"


def test_the_index_lists_every_page() -> None:
    folder = ROOT / "docs"
    index = (folder / "index.md").read_text()
    pages = [str(page.relative_to(folder)) for page in folder.rglob("*.md")]
    assert not [page for page in pages if page != "index.md" and f"]({page})" not in index]
