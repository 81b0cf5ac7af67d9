"""constraints-min.txt is what pyproject.toml declares, and the documents say the same version."""

import re
from pathlib import Path

import tomllib

import soda_tta

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_TRIED = {"ray", "tomli"}  # 300 MB, and for older interpreters only
FOR_DEVELOPERS = {"dev", "docs"}


def declared() -> dict[str, str]:
    """The oldest version of every package that users install, by its name."""
    lines = list(PROJECT["dependencies"])
    for name, extra in PROJECT["optional-dependencies"].items():
        lines += [] if name in FOR_DEVELOPERS else extra
    found = (re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match and match[1] not in NOT_TRIED}


def test_the_oldest_versions_are_the_declared_ones() -> None:
    lines = (ROOT / "constraints-min.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    oldest = declared()
    assert set(pinned) == set(oldest)
    for name, version in oldest.items():
        assert pinned[name] == version or pinned[name].startswith(f"{version}."), name


def test_every_document_has_the_version_of_the_package() -> None:
    assert f"version: {soda_tta.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {soda_tta.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert (ROOT / "docs" / "releases" / f"{soda_tta.__version__}.md").exists()
