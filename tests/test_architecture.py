"""Dependencies point one way, and the heavy ones are loaded only when used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import soda_tta

SOURCE = Path(soda_tta.__file__).parent
KNOW_NOTHING_OF_EACH_OTHER = {"box", "adaptors", "search", "objectives", "reliable", "data"}
ABOVE = {"cli", "demo", "adaptation", "run", "run_folder", "bench"}  # nothing below may import these


def imports(path: Path) -> set[str]:
    """The rooms of this package a file imports from."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        rooms |= {name.split(".")[1] for name in names if name.startswith("soda_tta.")}
    return rooms


def files(room: str) -> list[Path]:
    return [*(SOURCE / room).rglob("*.py")] or [SOURCE / f"{room}.py"]


@pytest.mark.parametrize("room", sorted(KNOW_NOTHING_OF_EACH_OTHER))
def test_the_parts_know_nothing_of_each_other(room: str) -> None:
    for path in files(room):
        assert not imports(path) & (KNOW_NOTHING_OF_EACH_OTHER - {room}), path


@pytest.mark.parametrize(
    "room",
    [
        *sorted(KNOW_NOTHING_OF_EACH_OTHER),
        "recipes",
        "loop",
        "plan",
        "events",
        "journal",
        "evaluation",
        "verdict",
        "zoo",
    ],
)
def test_nothing_below_imports_what_stands_above(room: str) -> None:
    for path in files(room):
        assert not imports(path) & ABOVE, path


def test_the_loop_knows_no_method_by_name() -> None:
    assert "recipes" not in imports(SOURCE / "loop.py")


@pytest.mark.parametrize("statement", ["import soda_tta", "from soda_tta import load_box"])
def test_the_front_door_and_the_boxes_need_no_heavy_package(statement: str) -> None:
    heavy = ["torch", "onnxruntime", "onnx", "httpx", "sklearn", "rich", "scipy", "cmaes"]
    code = f"{statement}; import sys; assert not set(sys.modules) & set({heavy!r}), set(sys.modules) & set({heavy!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
