"""Descriptions of well-known REST APIs, to start from."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from soda_tta.errors import BoxError

FOLDER = Path(__file__).parent / "descriptions"


def shipped_descriptions() -> dict[str, str]:
    """What each description is for, by its name.

    >>> list(shipped_descriptions())
    ['aws-rekognition', 'azure-custom-vision', 'hugging-face', 'vertex-ai']
    """
    paths = sorted(FOLDER.glob("*.toml"))
    second_lines = {path.stem: path.read_text().splitlines()[1] for path in paths}
    return {name: line.removeprefix("# ").rstrip(".") for name, line in second_lines.items()}


def shipped_description(name: str) -> str:
    """The text of a description.

    Parameters
    ----------
    name : one of `shipped_descriptions()`.
    """
    known = shipped_descriptions()
    if name not in known:
        near = get_close_matches(name, known, 1, 0.4)
        hint = f"did you mean {near[0]!r}? There are" if near else "there are"
        raise BoxError(f"{name!r} is not a description; {hint}: {', '.join(known)}.")
    return (FOLDER / f"{name}.toml").read_text()
