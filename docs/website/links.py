"""Check every link of a site: local files and anchors exist, addresses elsewhere have a valid form.

    python docs/website/links.py build/site

Nothing is requested over the network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src"}
LINKED = {"a": "href"}


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []  # a reader may follow
        self.loaded: list[str] = []  # the browser loads by itself
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag in LINKED and LINKED[tag] in values:
            self.links.append(values[LINKED[tag]])
        if tag in LOADED and LOADED[tag] in values:
            self.loaded.append(values[LOADED[tag]])
        if tag == "link" and "stylesheet" in values.get("rel", ""):
            self.loaded.append(values.get("href", ""))


def faults(site: Path) -> list[str]:
    """What is wrong with the links of all pages, one line each."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for link in page.loaded:
            if urlsplit(link).netloc:
                found.append(f"{name}: loads {link} from elsewhere")
        for link in [*page.links, *page.loaded]:
            found += [f"{name} -> {link}: {fault}" for fault in faults_of(link, path, pages)]
    return found


def faults_of(link: str, path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """What is wrong with one link of a page."""
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        if "." not in parts.netloc and "localhost" not in parts.netloc:
            yield "is not an address"
        return
    if parts.scheme in ("mailto", "data", "javascript"):
        return
    if parts.scheme or parts.netloc:
        yield "has a scheme that readers cannot open"
        return
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    anchor = unquote(parts.fragment)
    if not target.is_file():
        yield "there is no such file"
    elif anchor and target in pages and anchor not in pages[target].anchors:
        yield "there is no such anchor"


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]))
    print("\n".join(lines) or "all links lead somewhere")
    sys.exit(bool(lines))
