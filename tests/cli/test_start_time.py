"""What starting costs, in seconds of CPU time: the least of several, so load does not count."""

import os
import subprocess
import sys

import pytest

ATTEMPTS = 3


def least(*arguments: str) -> float:
    """The fewest seconds of CPU time of several runs."""
    seconds = []
    for _ in range(ATTEMPTS):
        before = os.times()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = os.times()
        user = after.children_user - before.children_user
        system = after.children_system - before.children_system
        seconds.append(user + system)
    return min(seconds)


@pytest.mark.parametrize(
    ("arguments", "limit"),
    [(("-c", "import soda_tta"), 0.2), (("-m", "soda_tta", "--help"), 0.5)],
    ids=["import", "help"],
)
def test_starting_is_quick(arguments: tuple[str, ...], limit: float) -> None:
    assert least(*arguments) < limit
