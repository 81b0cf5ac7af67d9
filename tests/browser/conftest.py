"""A real Chromium. Debian's is used: playwright's own download is not needed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


class Visit:
    """A page as a reader sees it, and what it did behind their back."""

    def __init__(self, browser: Any, path: Path, width: int, scheme: str = "light") -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on(
            "dialog", lambda dialog: (self.troubles.append(dialog.message), dialog.dismiss())
        )
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_load_state("networkidle")

    def outside(self) -> list[str]:
        """Requests for anything but the page itself and what it carries."""
        return [url for url in self.asked[1:] if not url.startswith("data:")]

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()
