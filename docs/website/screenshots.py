"""Take the screenshots of the report and of the dashboard, from the demos, in Chromium.

    python docs/website/screenshots.py            # two minutes; needs chromium and playwright
    python docs/website/screenshots.py report     # one of them

Run it when the page of a report or the dashboard has changed.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from soda_tta.demo import run_demo
from soda_tta.live_demo import live_demo

HOW_TO = Path(__file__).parents[1] / "how-to"
WIDTH, HEIGHT = 1000, 1150  # pixels; the pictures stand side by side on the front page
COLOURS = 256


def report(page: Any, folder: Path) -> bytes:
    """The beginning of the report that the demo writes."""
    run_demo(folder)
    page.goto((folder / "report.html").as_uri())
    return bytes(page.screenshot())


def dashboard(page: Any, folder: Path) -> bytes:
    """The dashboard at the end of the live demo."""
    with live_demo(folder) as demo:
        page.goto(demo.dashboard)
        demo.simulation.run()
        page.wait_for_timeout(3000)  # the page asks for news every other second
        return bytes(page.screenshot())


TAKEN: dict[str, Callable[[Any, Path], bytes]] = {"report": report, "dashboard": dashboard}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(TAKEN)}")
    names = parser.parse_args().names or list(TAKEN)
    with sync_playwright() as started, tempfile.TemporaryDirectory() as folder:
        # Debian's Chromium, which does not start as root with its sandbox
        browser = started.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        for name in names:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            picture = Image.open(io.BytesIO(TAKEN[name](page, Path(folder) / name)))
            few = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            few.save(HOW_TO / f"{name}.png", optimize=True)
            print(HOW_TO / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
