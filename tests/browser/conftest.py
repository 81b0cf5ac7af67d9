"""A real browser: the installed Chromium, so that playwright need not download its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    executable = next((path for name in NAMES if (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield opened
        opened.close()


class Visit:
    """An open page, with its messages, errors and requests."""

    def __init__(self, browser: Any, place: Path | str, width: int, scheme: str = "light") -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on(
            "dialog", lambda dialog: (self.messages.append(dialog.message), dialog.dismiss())
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(place.as_uri() if isinstance(place, Path) else place)
        self.page.wait_for_load_state("networkidle")

    def external_requests(self) -> list[str]:
        """Requests for anything except the page itself and its embedded data."""
        return [url for url in self.requests[1:] if not url.startswith("data:")]

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()
