"""Examples as pages: the text and the code of a percent script, and what its cells print.

A percent script is a Python file with cells: `# %%` begins one with code, `# %% [markdown]` one
with text. Editors and Jupyter open it as a notebook. Its docstring is the introduction.

    python docs/website/examples.py examples/stream.py    # run the cells, print the page
"""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}


@dataclass(frozen=True)
class Cell:
    """Text or code of a percent script."""

    is_code: bool
    text: str


def cells(script: str) -> list[Cell]:
    """The cells of a percent script, after its docstring.

    >>> cells("# %% [markdown]\\n# Some *text*.\\n# %%\\nprint(1)\\n")
    [Cell(is_code=False, text='Some *text*.'), Cell(is_code=True, text='print(1)')]
    """
    _before, *parts = CELL.split(script)
    made = []
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        text = body.strip("\n")
        if "[markdown]" in kind:
            made.append(Cell(False, re.sub(r"^# ?", "", text, flags=re.MULTILINE)))
        else:
            made.append(Cell(True, text))
    return made


def run_cells(script: Path) -> list[dict[str, Any]]:
    """Run the code of a percent script. One result per cell: what it prints and shows."""
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    sys.argv = [str(script)]
    warnings.simplefilter("ignore")
    parts = cells(script.read_text())
    results: list[dict[str, Any]] = []
    for cell in parts:
        printed = io.StringIO()
        shown = None
        ended = None
        if cell.is_code:
            with contextlib.redirect_stdout(printed):
                try:
                    shown = run_code(cell.text, names)
                except SystemExit as error:  # what the example needs is not there
                    ended = str(error)
        result = {"printed": printed.getvalue(), "picture": picture_of(shown), "ended": ended}
        results.append(result)
        if ended is not None:
            break
    return results


def run_code(code: str, names: dict[str, Any]) -> Any:
    """Run statements. The value of the last one, if it is an expression, is shown as a picture."""
    tree = ast.parse(code)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "<cell>", "exec"), names)
        return None
    tree.body.pop()
    exec(compile(tree, "<cell>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


def picture_of(value: Any) -> str | None:
    """A picture or a figure as a PNG in base64; None for anything else."""
    buffer = io.BytesIO()
    if hasattr(value, "getbands"):  # a picture of Pillow
        value.save(buffer, "PNG", optimize=True)
    elif hasattr(value, "savefig"):
        value.savefig(buffer, format="png", dpi=110)
    else:
        return None
    return base64.b64encode(buffer.getvalue()).decode()


def results_of(script: Path, cache: Path) -> tuple[list[dict[str, Any]], float]:
    """What the cells of a script print, from a process of its own, and the seconds it took.

    They are kept as long as neither the script nor the package changes.
    """
    stored = cache / f"{script.stem}-{fingerprint(script)}.json"
    if stored.exists():
        facts = json.loads(stored.read_text())
        return facts["results"], facts["seconds"]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, "--results", str(script.resolve())],
            capture_output=True,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "ORT_DISABLE_TELEMETRY": "1"},
        )
    if done.returncode:
        raise RuntimeError(f"{script.name} failed:\n{done.stderr}")
    results = json.loads(done.stdout.splitlines()[-1])
    seconds = time.perf_counter() - start
    cache.mkdir(parents=True, exist_ok=True)
    stored.write_text(json.dumps({"results": results, "seconds": seconds}))
    return results, seconds


def fingerprint(script: Path) -> str:
    """Changes with the script and with any file of the package."""
    digest = hashlib.sha256(script.read_bytes())
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def notebook_page(script: Path, results: list[dict[str, Any]], seconds: float) -> tuple[str, dict]:
    """The page of a percent script, and its pictures by file name."""
    text = script.read_text()
    title, _, introduction = (ast.get_docstring(ast.parse(text)) or script.stem).partition("\n")
    parts = [f"# {title.rstrip('.')}", indented_as_code(introduction.strip("\n"))]
    pictures = {}
    for number, cell in enumerate(cells(text)):
        parts.append(f"```python\n{cell.text}\n```" if cell.is_code else cell.text)
        result = results[number] if number < len(results) else {}
        if result.get("printed"):
            parts.append(f"```text\n{result['printed'].rstrip()}\n```")
        if result.get("picture"):
            name = f"{script.stem}-{number}.png"
            pictures[name] = base64.b64decode(result["picture"])
            parts.append(f"![What this cell shows]({name})")
        if result.get("ended"):
            parts.append(f"This example was not run here: {result['ended']}")
    if len(results) == len(cells(text)):
        parts.append(f"*Run when this page was made, in {seconds:.0f} seconds.*")
    files = f"[script](../files/examples/{script.name}), [notebook]({script.stem}.ipynb)"
    parts.append(f"Download: {files}")
    return "\n\n".join(part for part in parts if part) + "\n", pictures


def notebook_file(script: Path) -> str:
    """A percent script as a Jupyter notebook."""
    text = script.read_text()
    introduction = Cell(False, ast.get_docstring(ast.parse(text)) or script.stem)
    written = []
    for number, cell in enumerate([introduction, *cells(text)]):
        facts = {"id": f"cell-{number}", "metadata": {}, "source": cell.text}
        code = {"cell_type": "code", "execution_count": None, "outputs": []}
        written.append(facts | (code if cell.is_code else {"cell_type": "markdown"}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    facts = {"cells": written, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(facts, indent=1) + "\n"


def file_page(file: Path) -> str:
    """The page of an example that is no percent script: all of it, with its introduction on top."""
    text = file.read_text().rstrip()
    language = LANGUAGES.get(file.suffix, "docker" if file.name == "Dockerfile" else "text")
    relative = file.relative_to(ROOT / "examples").as_posix()
    return f"# `{relative}`\n\n```{language}\n{text}\n```\n"


def indented_as_code(text: str) -> str:
    """Blocks that are indented are commands."""
    blocks = re.split(r"\n\n(?=    )|(?<=\S)\n\n(?=\S)", text)
    made = []
    for block in blocks:
        is_command = block.startswith("    ")
        lines = re.sub(r"^    ", "", block, flags=re.MULTILINE)
        made.append(f"```sh\n{lines}\n```" if is_command else block)
    return "\n\n".join(made)


def is_notebook(file: Path) -> bool:
    """Whether a file has cells."""
    return file.suffix == ".py" and CELL.search(file.read_text()) is not None


if __name__ == "__main__":
    *options, chosen = sys.argv[1:]  # a cell sees other arguments
    answers = run_cells(Path(chosen).resolve())
    if "--results" in options:
        print(json.dumps(answers))
    else:
        print(notebook_page(Path(chosen).resolve(), answers, 0)[0])
