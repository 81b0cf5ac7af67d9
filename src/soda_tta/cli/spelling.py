"""Library errors name the Python spelling of a remedy; the command line names the flag."""

from __future__ import annotations

import re

FLAGS = {
    "resume=True": "--resume",
    "force=True": "--force",
    "logits=True": "--logits",
    "partial=True": "--partial",
    'lr="auto"': "--set lr=auto",
    "method='soda-e'": "--method soda-e",
    "method='deployed'": "--method deployed",
    "diagonal=true": "--set diagonal=true",
}
# name=VALUE or name= in a sentence, for the options that commands share.
OPTIONS = ("out", "size", "budget", "mean", "std", "pixel_range", "layout", "channels", "output")
SETTINGS = ("mu", "lr", "q", "batch", "epochs", "search")


def as_flags(text: str) -> str:
    """The sentence as a user of the command line reads it.

    >>> as_flags("continue it with resume=True, or choose another out=.")
    'continue it with --resume, or choose another --out.'
    >>> as_flags("raise mu (mu=0.01); pass size=224 to resize them.")
    'raise mu (--set mu=0.01); pass --size 224 to resize them.'
    """
    for spelling, flag in FLAGS.items():
        text = text.replace(spelling, flag)
    for name in OPTIONS:
        flag = f"--{name.replace('_', '-')}"
        text = re.sub(rf"(?<![\w-]){name}=(?=[\w.])", f"{flag} ", text)
        text = re.sub(rf"(?<![\w-]){name}=", flag, text)
    for name in SETTINGS:
        text = re.sub(rf"(?<![\w-])(?<!--set ){name}=(?=[\w.])", f"--set {name}=", text)
    return text
