"""The pages of the site: copies of the documents, with links that lead to other copies.

The documents are written for a reader of the repository. Here they move: `docs/` becomes the root,
and a few documents from elsewhere join it. Every link is rewritten for that. The menu is made from
the tables of docs/index.md, so a page that is listed there is in the menu.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
INDEX = "docs/index.md"
ELSEWHERE = {  # documents outside docs/ and their pages
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "examples/README.md": "examples/index.md",
    "examples": "examples/index.md",
}
NOT_PAGES = {"website", "reference/generate.py", "conf.py"}
FENCE = re.compile(r"(^```.*?^```$|^~~~.*?^~~~$)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s]+)\)")
PERCENT = re.compile(r"(?<=\d) %")
ROW = re.compile(r"^\| \[(?!!)[^\]]*\]\(([^)#\s]+)\)", re.MULTILINE)
AUTODOC = re.compile(r"^<!-- autodoc (\w+) ([\w.]+) -->$", re.MULTILINE)


def page_of(document: str) -> str | None:
    """The page of a document or an example; None if the site has none.

    >>> page_of("docs/how-to/doctor.md"), page_of("CHANGELOG.md"), page_of("examples/stream.py")
    ('how-to/doctor.md', 'project/changelog.md', 'examples/stream.md')
    >>> page_of("results/overhead.json")
    """
    if document in ELSEWHERE:
        return ELSEWHERE[document]
    if document.startswith("docs/"):
        return document.removeprefix("docs/")
    if document.startswith("examples/"):
        return str(PurePosixPath(document).with_suffix(".md"))
    return None


def link_from(document: str, link: str, attach: Callable[[str], str]) -> str:
    """A link in a document, as it must be on the document's page."""
    path, hash_sign, anchor = link.partition("#")
    target = os.path.normpath(str(PurePosixPath(document).parent / path))
    if not (ROOT / target).exists():
        raise ValueError(f"{document} links to {link}, which does not exist")
    page = page_of(target) or attach(target)
    here = PurePosixPath(page_of(document) or document).parent
    return f"{os.path.relpath(page, here)}{hash_sign}{anchor}"


def page_text(document: str, text: str, attach: Callable[[str], str]) -> str:
    """The text of a document's page."""
    parts = FENCE.split(text)
    for number in range(0, len(parts), 2):  # every second part is code
        parts[number] = LINK.sub(
            lambda match: f"]({link_from(document, match[1], attach)})", parts[number]
        )
        parts[number] = PERCENT.sub("\N{NO-BREAK SPACE}%", parts[number])
    rewritten = AUTODOC.sub(lambda match: autodoc(match[1], match[2]), "".join(parts))
    return rewritten + menus(document, text)


def autodoc(kind: str, name: str) -> str:
    """The directive that documents a function or a class from its docstring."""
    members = "\n   :members:\n" if kind == "class" else "\n"
    shown = f"```{{eval-rst}}\n.. auto{kind}:: {name}{members}"
    return f"{shown}   :show-inheritance:\n```" if kind == "exception" else f"{shown}```"


def menus(document: str, text: str) -> str:
    """A menu for every section of an index, from the first links of its tables."""
    if page_of(document) not in ("index.md", "examples/index.md"):
        return ""
    made = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        caption = section.partition("\n")[0]
        entries = [link_from(document, link, str) for link in ROW.findall(section)]
        if entries:
            listed = "\n".join(entries)
            made.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```")
    return "\n" + "\n\n".join(made) + "\n"


class Pages:
    """Writes pages into a folder, from which Sphinx makes the site."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: set[Path] = set()

    def write(self, page: str, text: str) -> None:
        """Write a page, unless it is there already: Sphinx reads only what has changed."""
        path = self.folder / page
        self.written.add(path)
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def attach(self, file: str) -> str:
        """A file that a page links to and that is no page itself: it is downloaded."""
        if (ROOT / file).is_dir():
            raise ValueError(f"a page links to {file}/, which is a folder: link to a file in it")
        return self.copy(file, f"files/{file}")

    def copy(self, file: str, page: str) -> str:
        path = self.folder / page
        self.written.add(path)
        if not path.exists() or path.read_bytes() != (ROOT / file).read_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, path)
        return page

    def documents(self) -> None:
        """All documents and their pictures."""
        inside = [path for path in (ROOT / "docs").rglob("*") if path.is_file()]
        elsewhere = [ROOT / name for name in ELSEWHERE if name.endswith(".md")]
        for path in sorted([*inside, *elsewhere]):
            document = path.relative_to(ROOT).as_posix()
            page = page_of(document)
            if document == "README.md" or page is None or is_left_out(page):
                continue
            if path.suffix == ".md":
                self.write(page, page_text(document, path.read_text(), self.attach))
            else:
                self.copy(document, page)

    def remove_others(self) -> None:
        """Remove what an earlier build has left."""
        for path in self.folder.rglob("*"):
            if path.is_file() and path not in self.written:
                path.unlink()


def is_left_out(page: str) -> bool:
    """Whether a file in docs/ makes the site and is not on it."""
    return any(part in NOT_PAGES for part in (page, page.split("/")[0])) or "__pycache__" in page
