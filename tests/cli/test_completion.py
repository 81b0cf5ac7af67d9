"""`soda-tta completion`: real shells complete commands, options, choices and file names."""

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import Soda

CASES = [
    ("soda-tta bench ta", "soda-tta bench table"),
    ("soda-tta bench table --fo", "soda-tta bench table --format"),
    ("soda-tta bench table --format l", "soda-tta bench table --format latex"),
    ("soda-tta doct", "soda-tta doctor"),
    ("soda-tta adapt --dry", "soda-tta adapt --dry-run"),
    ("soda-tta adapt --layout NH", "soda-tta adapt --layout NHWC"),
]


def read_until_quiet(end: int, seconds: float) -> str:
    """What a terminal shows until it has been quiet for so long."""
    written = b""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and select.select([end], [], [], seconds)[0]:
        try:
            written += os.read(end, 65536)
        except OSError:
            break
    return written.decode(errors="replace")


def completed(shell: list[str], script: Path, lines: list[str]) -> list[str]:
    """What an interactive shell that has sourced `script` shows after each line and a tab."""
    process, end = pty.fork()
    if process == 0:
        os.environ.update({"TERM": "dumb", "PS1": "$ "})
        os.execvp(shell[0], shell)
    read_until_quiet(end, 1.0)
    os.write(end, f"source {script}; echo re''ady\n".encode())
    shown = ""
    deadline = time.monotonic() + 20
    while "ready" not in shown and time.monotonic() < deadline:
        shown += read_until_quiet(end, 0.3)
    screens = []
    for line in lines:
        os.write(end, f"{line}\t".encode())
        screens.append(read_until_quiet(end, 0.7))
        os.write(end, b"\x15")  # Ctrl-U clears the line
        read_until_quiet(end, 0.2)
    os.write(end, b"exit\n")
    os.close(end)
    os.waitpid(process, 0)
    return screens


def write_script(soda: Soda, path: Path, shell: str) -> Path:
    """Write the completion script of a shell."""
    done = soda("completion", shell)
    assert done.code == 0 and done.err == ""
    path.write_text(done.out)
    return path


@pytest.mark.parametrize("shell", [["bash", "--norc", "-i"], ["zsh", "-f", "-i"]])
def test_bash_and_zsh_complete(soda: Soda, tmp_path: Path, shell: list[str]) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    script = write_script(soda, tmp_path / "script", shell[0])
    (tmp_path / "page").mkdir()
    cases = [
        *CASES,
        ("soda-tta report pa", "soda-tta report page/"),
        ("soda-tta adapt --images pa", "soda-tta adapt --images page/"),
        ("soda-tta adapt --model pa", "soda-tta adapt --model page/"),
        ("soda-tta apply --adaptor pa", "soda-tta apply --adaptor page/"),
    ]
    screens = completed(shell, script, [line for line, _ in cases])
    for (line, expected), screen in zip(cases, screens, strict=True):
        assert expected in screen, line


def test_fish_completes(soda: Soda, tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = write_script(soda, tmp_path / "script.fish", "fish")
    for line, expected in CASES:
        done = subprocess.run(
            ["fish", "-c", f"source {script}; complete -C '{line}'"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert expected.split()[-1] in done.stdout, line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_the_script(soda: Soda, shell: str) -> None:
    from soda_tta.cli import COMMANDS

    script = soda("completion", shell).out
    for module in COMMANDS:
        assert module.__name__.rsplit(".", 1)[-1] in script


def test_an_unknown_shell_is_refused(soda: Soda) -> None:
    done = soda("completion", "powershell")
    assert done.code == 2 and "bash" in done.err and "fish" in done.err
