"""Flags in place of Python arguments, in every text that a command prints.

Library errors and notices name the Python spelling of a remedy (`resume=True`); a user of the
command line needs the flag (`--resume`).
"""

from __future__ import annotations

import re
import sys

from soda_tta.cli.model_options import MODEL_FLAGS
from soda_tta.foreign_text import printable

# Whole phrases, where a flag alone would not make sense.
PHRASES = {
    "pass frost=None to use": "leave out --frost to use",
    "or pass frost=None": "or leave out --frost",
    "per request (batch=": "per request (--request-size ",
    ", or give module=": "",  # from Python only
    'specify groups="none"': "specify --group-by none",
    "state with groups= which": "state with --group-by which",
    "pass one name per class (class_names=[...]), or pack": "pack",
    "judge by one of labels=, images= (with box=) and accept=True": "give one kind of evidence",
}
# Arguments of library functions that are options of commands.
OPTIONS = (
    *("images", "size", "out", "resume", "force", "method", "budget", "seed", "price"),
    *("labels", "classes", "clean", "clean_accuracy", "sample", "layout", "frost", "severity"),
    *("on_bad_image", "over", "input", "backend", "address", "jobs"),
    *("conditions", "condition_by", "learn_budget", "prior", "views", "answers"),
)
FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in OPTIONS},
    # `batch` is a setting of methods, too; see PHRASES
    **{name: flag for name, flag in MODEL_FLAGS.items() if name != "batch"},
}
# Settings of methods, for which the option is --set. Settings named like an option are not here.
SETTINGS = (
    *("activation", "adaptor", "adversarial", "agreement", "aligned", "alpha", "arrival"),
    *("average", "backbone_lr", "batch", "beta", "beta1", "beta2", "blocks", "caution"),
    *(
        "central",
        "deviation",
        "diagonal",
        "directions",
        "dropout",
        "ema",
        "epochs",
        "epsilon",
    ),
    *("finetune_epochs", "grain", "head_lr", "information", "judged", "lam_p", "lam_u"),
    *("area", "divergence", "fuse", "helper", "kept", "likeness", "merge", "norm_lr", "pad"),
    *("heats", "recipes", "reliable", "scaled", "variant", "views"),
    *("level", "lr", "memory", "mix", "mixing", "mixup_alpha", "momentum", "mu", "neighbours"),
    *("orthogonal", "pairs", "population", "q", "queue", "rampup", "residual", "rho", "search"),
    *("sigma", "start", "step", "steps", "subspace", "target", "tau", "temperature"),
    *("threshold", "topk", "tried", "warmup", "weight", "weight_decay", "width", "without"),
)
# name=value or a bare name=, but not where a command is quoted: --set lr=0.1, --out=run.
ARGUMENT = re.compile(
    r"""(?<![\w=/.?&'-])(?<!--set[ ])
    (?P<name>[a-z]\w*)=
    (?P<value>"[^"]*"|'[^']*'|-?\w+(?:\.\w+)*(?:[+-]\d+)?)?""",
    re.VERBOSE,
)


def as_flags(text: str) -> str:
    """The text as a user of the command line reads it.

    >>> as_flags("continue it with resume=True, or choose another out=.")
    'continue it with --resume, or choose another --out.'
    >>> as_flags("raise mu (mu=0.01); pass size=224 to resize them.")
    'raise mu (--set mu=0.01); pass --size 224 to resize them.'
    """
    for phrase, replacement in PHRASES.items():
        text = text.replace(phrase, replacement)
    return ARGUMENT.sub(_as_flag, text)


def complain(text: str) -> None:
    """Print a line to standard error."""
    print(f"soda-tta: {as_flags(printable(text))}", file=sys.stderr)


def _as_flag(match: re.Match[str]) -> str:
    """One argument as a flag; unchanged if no command has it."""
    name = match["name"]
    value = (match["value"] or "").strip("\"'")
    if name in SETTINGS:
        plain = value.lower() if value in ("True", "False") else value
        return f"--set {name}={plain}"
    if name not in FLAGS:
        return match[0]
    if value in ("", "True"):
        return FLAGS[name]
    return f"{FLAGS[name]} {value}"
