"""Build the documentation site: python docs/website/build.py [--out build/site]

The pages are copied, examples are run and rendered, Sphinx makes HTML of them (a warning is an
error), and every link of the result is checked. No network is needed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from examples import file_page, is_notebook, notebook_file, notebook_page, results_of
from links import faults
from sphinx.cmd.build import main as sphinx_build

from pages import ROOT, Pages, page_of

DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
BUILD = ROOT / "build"


def write_examples(pages: Pages) -> None:
    """A page for every example. Notebooks are run, unless nothing has changed since."""
    for file in sorted(path for path in EXAMPLES.rglob("*") if path.is_file()):
        relative = file.relative_to(ROOT).as_posix()
        page = page_of(relative)
        if page is None or file.suffix in (".md", ".pyc"):
            continue
        if not is_notebook(file):
            pages.write(page, file_page(file))
            continue
        results, seconds = results_of(file, BUILD / "examples")
        print(f"{relative}: {seconds:.0f} s")
        text, pictures = notebook_page(file, results, seconds)
        pages.write(page, text)
        pages.write(str(Path(page).with_suffix(".ipynb")), notebook_file(file))
        pages.attach(relative)
        for name, picture in pictures.items():
            path = pages.folder / Path(page).with_name(name)
            path.write_bytes(picture)
            pages.written.add(path)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=BUILD / "site", help="default build/site")
    parser.add_argument("--fresh", action="store_true", help="run every example again")
    options = parser.parse_args()
    start = time.perf_counter()
    if options.fresh:
        shutil.rmtree(BUILD / "examples", ignore_errors=True)
    pages = Pages(BUILD / "pages")
    pages.documents()
    write_examples(pages)
    pages.remove_others()
    shutil.rmtree(options.out, ignore_errors=True)  # a page that is gone must not stay
    status = sphinx_build(
        ["-W", "--keep-going", "-E", "-q", "-c", str(DOCS), str(pages.folder), str(options.out)]
    )
    if status:
        return status
    wrong = faults(options.out)
    for fault in wrong:
        print(fault, file=sys.stderr)
    if wrong:
        return 1
    seconds = time.perf_counter() - start
    print(f"{options.out / 'index.html'} ({seconds:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
