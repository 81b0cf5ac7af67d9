"""The commands on a page: to repeat the run, and to use its adaptor."""

from __future__ import annotations

import shlex
from typing import Any

from soda_tta.adaptors import Identity
from soda_tta.box.facts import as_options, unusual
from soda_tta.masking import masked
from soda_tta.methods import all_methods
from soda_tta.report.record import RunRecord

# These flags change what happens to the output, not what the run computes.
OUTPUT_FLAGS = ("--resume", "--json", "--dry-run")


def reproduce_command(record: RunRecord) -> str:
    """The recorded command with another output directory, or one derived from the card."""
    recorded = record.card.get("command")
    if not isinstance(recorded, list) or not recorded:
        return command_from_card(record.card)
    words = ["soda-tta"]
    words += [masked(str(word)) for word in recorded if word not in OUTPUT_FLAGS]
    # the recorded directory already holds this run
    for position, word in enumerate(words):
        if word.startswith("--out="):
            words[position] = "--out=RUN"
        elif words[position - 1] == "--out":
            words[position] = "RUN"
    return shlex.join(words)


def command_from_card(card: dict[str, Any]) -> str:
    """A command with every setting of the card.

    The card does not record the paths of the model and the images: MODEL and IMAGES stand for them.
    """
    words = ["soda-tta", "adapt", "--model", "MODEL", *as_options(unusual(card.get("box", {})))]
    words += ["--images", "IMAGES", "--method", str(card.get("method"))]
    method = all_methods().get(str(card.get("method")))
    defaults = {} if method is None else method.settings
    for name, value in card.get("settings", {}).items():
        if name not in defaults or defaults[name] != value:
            words += ["--set", f"{name}={value}"]
    if card.get("budget") is not None:
        words += ["--budget", f"{card['budget']:g}"]
    return shlex.join([*words, "--seed", str(card.get("seed", 0)), "--out", "RUN"])


def deployment_commands(record: RunRecord) -> list[tuple[str, str]]:
    """Purpose and command of every way to use the adaptor; none if the run has no adaptor."""
    adaptor = record.adaptor
    if adaptor is None:
        return []
    if isinstance(adaptor, Identity) and adaptor.answering.is_plain:
        return []
    queries = (
        "one query" if adaptor.answering.queries == 1 else f"{adaptor.answering.queries} queries"
    )
    run = shlex.quote(str(record.folder)) if record.folder else "RUN"
    model = shlex.quote(recorded_option(record, "--model") or "MODEL")
    size = recorded_option(record, "--size")
    size_option = f" --size {shlex.quote(size)}" if size else ""
    return [
        (
            "Export it as an ONNX file that runs in front of the model",
            f"soda-tta export {run} adaptor.onnx",
        ),
        (
            f"Classify new images with it, {queries} per image",
            f"soda-tta apply --adaptor {run} --model {model} --images NEW{size_option} "
            "--out answers.csv",
        ),
        (
            "In your own code, without this package",
            'session = onnxruntime.InferenceSession("adaptor.onnx")\n'
            "(adapted,) = session.run(None, {session.get_inputs()[0].name: images})   "
            "# float32 (n, 3, height, width), RGB in [0, 1]",
        ),
    ]


def recorded_option(record: RunRecord, name: str) -> str | None:
    """The value of an option of the recorded command."""
    words = [str(word) for word in record.card.get("command") or []]
    for position, word in enumerate(words):
        if word == name and position + 1 < len(words):
            return masked(words[position + 1])
        if word.startswith(f"{name}="):
            return masked(word.partition("=")[2])
    return None
