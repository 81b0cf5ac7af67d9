"""Every test of the data room has a data home of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty data home, and a cache at `tmp_path / "cache"` that does not exist."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("SODA_TTA_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder
