"""Help and usage errors come at once: no heavy package is imported before a command runs."""

import subprocess
import sys

import pytest

HEAVY = (
    *("torch", "scipy", "onnxruntime", "onnx", "matplotlib", "sklearn"),
    *("rich", "httpx", "grpc", "cmaes", "jinja2", "shtab", "IPython"),
)
CODE = """
import sys
from soda_tta.cli import main
for words in {commands!r}:
    try:
        status = main(words)
    except SystemExit as ended:
        status = int(ended.code or 0)
    heavy = sorted(set(sys.modules) & set({heavy!r}))
    assert status == {status} and not heavy, (words, status, heavy)
"""
HELP = [["--help"], ["--version"], ["adapt", "--help"], ["apply", "--help"], ["bench", "--help"]]
MISTAKES = [
    ["adopt"],
    ["adapt", "--modle", "m.onnx"],
    ["adapt", "--model", "m.onnx", "--images", "night"],  # without --out
    ["adapt", "--model", "m.onnx", "--images", "night", "--out", "run", "--set", "q"],
    ["apply", "--adaptor", "run", "--images", "night"],  # neither --model nor --save-images
    ["doctor", "--model", "m.onnx", "--images", "night", "--price", "much"],
]


@pytest.mark.parametrize(("commands", "status"), [(HELP, 0), (MISTAKES, 2)])
def test_no_heavy_package_is_imported_before_a_command_runs(commands, status: int) -> None:
    code = CODE.format(commands=commands, heavy=HEAVY, status=status)
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
