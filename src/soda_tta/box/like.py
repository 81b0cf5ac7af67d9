"""Load a model with the facts that another one, on a run's card, was declared with."""

from __future__ import annotations

from typing import Any

from soda_tta.box.box import Box
from soda_tta.box.facts import CARRIED_OVER, as_options, carried_over, unusual
from soda_tta.box.load import load_box
from soda_tta.errors import BoxError, BoxUnavailable


def load_box_like(card: dict[str, Any], model: Any, **options: Any) -> tuple[Box, str | None]:
    """Load `model`, with the facts of the model on `card` where nothing else is specified.

    The same model gets all facts. Another model gets them except those that it declares itself: an
    edited function counts as another model, and so does a file that was trained again.

    Parameters
    ----------
    card : the entry "box" of a run's card.
    model : whatever `load_box` takes.
    options : facts that the user specifies; they win.

    Returns
    -------
    The box, and a notice if it is another model.
    """
    specified = {name: value for name, value in options.items() if value is not None}
    facts = {**(card.get("input") or {}), **card}
    carried = {name: facts[name] for name in CARRIED_OVER if facts.get(name) is not None}
    refused: BoxError | None = None
    try:
        box = load_box(model, **{**carried, **specified})
    except BoxUnavailable:
        raise
    except BoxError as error:
        refused = error
        box = load_box(model, **specified)  # another model may not accept these facts
    if box.fingerprint() == card.get("fingerprint"):
        if refused is not None:
            raise refused  # what the user specified does not fit the facts of the run
        return box, None
    kept = carried_over(card, dict(box.declared))
    if refused is not None and not box.declared:
        kept = {}  # nothing was taken over
    if box.declared:
        box = load_box(model, **{**kept, **specified})
    return box, notice_of(card, kept, specified)


def notice_of(card: dict[str, Any], kept: dict[str, Any], specified: dict[str, Any]) -> str:
    """What is taken over from the run to another model, and what is not."""
    taken = as_options({name: value for name, value in kept.items() if name not in specified})
    left = as_options(dict.fromkeys(sorted(unusual(card).keys() - kept.keys()), True))
    parts = ["this is not the model the adaptor was learned for, or not at the same address"]
    if taken:
        parts.append(f"taken over from the run: {' '.join(taken)}")
    if {"--mean", "--std"} & set(taken):
        parts.append("if it normalises its input itself, specify --mean 0 --std 1")
    if left:
        parts.append(f"as the model declares and not as in the run: {' '.join(left)}")
    return "; ".join(parts) + "."
