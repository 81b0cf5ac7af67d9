"""The finding about the input convention: what the model expects, or that something else is."""

from __future__ import annotations

from soda_tta.box import Input
from soda_tta.box.facts import FACTS, INPUT_FACTS, as_options
from soda_tta.conventions import FEWEST_IMAGES, Convention
from soda_tta.conventions.table import STATED
from soda_tta.doctor.finding import Finding

BACKGROUND = (
    " Class 0 is likely the background (1,001 classes, and it is never predicted): if your labels "
    "begin with the first real class, add background=True."
)
VIEW = ("crop", "turn", "mirror")  # change only if something else is surely better


def check_found(found: Convention) -> Finding:
    """What to state about a model of which nothing was stated."""
    options = " ".join(found.options)
    state_it = f"State it: {options}." if options else "The defaults are right: state nothing."
    sentence = sentences(found) + (BACKGROUND if found.background else "")
    if found.sure:
        state = "caution" if "turn" in found.facts or "mirror" in found.facts else "good"
        remedy = state_it
    elif found.usable:
        state = "caution"
        alternative = " ".join(found.alternative) or "the defaults"
        remedy = f"{state_it} If you know better: {alternative}."
    else:
        state = "caution"
        remedy = (
            "State what the model was trained with (mean, std, pixel_range, channels), or examine "
            "it with clean images first. This examination used the defaults."
        )
    return Finding(
        name="input",
        state=state,  # type: ignore[arg-type]
        sentence=sentence,
        measurements=found.card(),
        remedy=remedy,
    )


def check_too_few(images: int) -> Finding:
    """That nothing was searched."""
    return Finding(
        name="input",
        state="caution",
        sentence=f"{images} images are too few to find or check the input convention "
        f"({FEWEST_IMAGES} are needed).",
        remedy="State what the model was trained with: mean, std, pixel_range, channels.",
    )


def check_stated(found: Convention, stated: Input) -> Finding:
    """Whether what was stated about a model is right."""
    view = any(getattr(found.box.input, name) != getattr(stated, name) for name in VIEW)
    pixels = "pixels" in found and found.sure and found["pixels"].name != STATED
    if view or pixels:
        return Finding(
            name="input",
            state="bad",
            sentence=f"The stated input options look wrong; another convention fits better: "
            f"{sentences(found)}",
            measurements=found.card(),
            remedy=correction(found, stated),
        )
    return Finding(
        name="input",
        state="good",
        sentence="No other input convention is surely better than what is stated.",
        measurements=found.card(),
    )


def correction(found: Convention, stated: Input) -> str:
    """Which options to state, and which to leave out."""
    right = found.box.input
    changed = [name for name in INPUT_FACTS if getattr(right, name) != getattr(stated, name)]
    to_state = {name: value for name, value in found.facts.items() if name in changed}
    flags = [FACTS[name].flag or name for name in changed if name not in to_state]
    parts = [f"state {' '.join(as_options(to_state))}"] if to_state else []
    parts += [f"leave out {' '.join(flags)}"] if flags else []
    text = ", and ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def sentences(found: Convention) -> str:
    """The answers to all questions, without one that hardly ever can be answered."""
    told = [
        answer.sentence
        for answer in found.answers
        if answer.question != "mirror" or "mirror" in found.facts
    ]
    return ("; ".join(told) or "The model declares all of it") + "."
