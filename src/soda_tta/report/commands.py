"""The exact commands: to make this run again, and to use what it learnt."""

from __future__ import annotations

import re
import shlex
from typing import Any

from soda_tta.adaptors import Identity
from soda_tta.box.facts import as_options, unusual
from soda_tta.methods import all_methods
from soda_tta.report.account import Account

OUT_OPTIONS = ("--resume", "--json", "--dry-run")


def reproduce(account: Account) -> str:
    """The command that was given, if the run remembers it; else one put together from the card."""
    given = account.card.get("command")
    if isinstance(given, list) and given:
        words = ["soda-tta", *(without_password(str(w)) for w in given if w not in OUT_OPTIONS)]
        for place, word in enumerate(words):  # another directory: this one holds the run already
            if word.startswith("--out="):
                words[place] = "--out=RUN"
            elif words[place - 1] == "--out":
                words[place] = "RUN"
        return shlex.join(words)
    return from_card(account.card)


def from_card(card: dict[str, Any]) -> str:
    """The card knows every number; where the model and the images lie it does not: MODEL and IMAGES stand for them."""
    words = [
        "soda-tta",
        "adapt",
        "--model",
        "MODEL",
        *as_options(unusual(card.get("box", {}))),
        "--images",
        "IMAGES",
    ]
    words += ["--method", str(card.get("method"))]
    known = all_methods().get(str(card.get("method")))
    usual = {} if known is None else known.settings
    for name, value in card.get("settings", {}).items():
        if usual.get(name, _ABSENT) != value:
            words += ["--set", f"{name}={value}"]
    if card.get("budget") is not None:
        words += ["--budget", f"{card['budget']:g}"]
    return shlex.join([*words, "--seed", str(card.get("seed", 0)), "--out", "RUN"])


_ABSENT = object()


def deploy(account: Account) -> list[tuple[str, str]]:
    """What for, and how; nothing if the run left no adaptor."""
    if account.adaptor is None or isinstance(account.adaptor, Identity):
        return []
    run = shlex.quote(str(account.folder)) if account.folder else "RUN"
    model, size = option(account, "--model") or "MODEL", option(account, "--size")
    resized = f" --size {size}" if size else ""
    return [
        (
            "Write it as an ONNX file that runs in front of the model anywhere",
            f"soda-tta export {run} adaptor.onnx",
        ),
        (
            "Answer new images with it, one query an image",
            f"soda-tta apply --adaptor {run} --model {shlex.quote(model)} --images NEW{resized} --out answers.csv",
        ),
        (
            "In your own code, without this package",
            'session = onnxruntime.InferenceSession("adaptor.onnx")\n'
            "(adapted,) = session.run(None, {session.get_inputs()[0].name: images})   "
            "# float32 (n, 3, height, width), RGB in [0, 1]",
        ),
    ]


def option(account: Account, name: str) -> str | None:
    """The value of an option of the remembered command."""
    given = [str(word) for word in account.card.get("command") or []]
    for place, word in enumerate(given):
        if word == name and place + 1 < len(given):
            return without_password(given[place + 1])
        if word.startswith(f"{name}="):
            return without_password(word.partition("=")[2])
    return None


def without_password(word: str) -> str:
    """A page is passed on; a password in an address is not.

    >>> without_password("https://me:secret@host/v2/models/cats")
    'https://...@host/v2/models/cats'
    """
    return re.sub(r"(?<=://)[^/@\s]+@", "...@", word)
