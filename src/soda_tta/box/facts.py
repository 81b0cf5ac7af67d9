"""The one table of what can be stated about a model's input and output.

Each entry is a field below, made by `fact`. The table drives the validation and the card of
`Input`, the options of `load_box` and of the command line, and what carries over from the card of
a run to another model. To add a fact, add one entry here and use it where it takes effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from soda_tta.box.fact_values import (
    Check,
    check_channel_values,
    check_positive_channel_values,
    check_quantisation,
    check_size,
    comma_separated,
    one_of,
    pixel_range_of,
    share_or_none,
    true_or_false,
)
from soda_tta.box.quantisation import BYTES

DTYPES = ("float32", "float16", *BYTES)
NORMALISATION = ("mean", "std", "pixel_range")  # belong together: a mean is of pixels of some range

# Decides whether a fact of a run's model also holds for another model. Takes the name of the fact,
# the card of the run's model, and what the other model declares about itself.
Rule = Callable[[str, Mapping[str, Any], Mapping[str, Any]], bool]


def unless_declared(name: str, card: Mapping[str, Any], declared: Mapping[str, Any]) -> bool:
    """Carry a fact over unless the other model declares it."""
    return name not in declared


def unless_channels_differ(name: str, card: Mapping[str, Any], declared: Mapping[str, Any]) -> bool:
    """Carry the channel order over unless only one of the two models takes grey images."""
    if "grey" in declared and (_input_card(card).get(name) == "L") != declared["grey"]:
        return False
    return name not in declared


def unless_normalised_otherwise(
    name: str, card: Mapping[str, Any], declared: Mapping[str, Any]
) -> bool:
    """Carry normalisation over as a whole, and only between models of bytes or models of floats.

    A model that takes bytes normalises them itself.
    """
    takes_bytes = declared.get("dtype") in BYTES
    took_bytes = _input_card(card).get("dtype") in BYTES
    if "dtype" in declared and takes_bytes != took_bytes:
        return False
    return not set(NORMALISATION) & set(declared)


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One entry of the table.

    `parse` reads a value of the command line; a fact without it has no flag there. A fact
    without a `carried_over` rule is never taken from the card of a run.
    """

    name: str = ""
    default: Any
    meaning: str
    check: Check
    parse: Callable[[str], Any] | None = None
    metavar: str | None = None
    choices: tuple[Any, ...] | None = None
    carried_over: Rule | None = None

    @property
    def flag(self) -> str | None:
        """The option of the command line, or None."""
        return None if self.parse is None else f"--{self.name.replace('_', '-')}"


def fact(default: Any, meaning: str, **entry: Any) -> Any:
    """A dataclass field that is an entry of the table; see `Fact`."""
    return field(
        default=default, metadata={"fact": Fact(default=default, meaning=meaning, **entry)}
    )


@dataclass(frozen=True, kw_only=True)
class InputFacts:
    """What a model expects of its images."""

    size: tuple[int, int] | None = fact(
        None,
        "height and width in pixels, or one number for both; None: any size",
        check=check_size,
    )
    crop: float | None = fact(
        None,
        "share of the largest centre window that is resized to the model's size, such as 0.875 "
        "(default: the whole image is stretched)",
        check=share_or_none,
        parse=float,
        metavar="SHARE",
        carried_over=unless_declared,
    )
    turn: int = fact(
        0,
        "degrees to turn images clockwise: 0, 90, 180 or 270 (default: 0)",
        check=one_of(0, 90, 180, 270, noun="turn"),
        parse=int,
        choices=(0, 90, 180, 270),
        carried_over=unless_declared,
    )
    mirror: bool = fact(
        False,
        "mirror images left to right, after the turn",
        check=true_or_false,
        parse=bool,
        carried_over=unless_declared,
    )
    layout: str = fact(
        "NCHW",
        "order of the axes, if the model's shapes do not declare it (default: NCHW)",
        check=one_of("NCHW", "NHWC", noun="layout"),
        parse=str,
        choices=("NCHW", "NHWC"),
        carried_over=unless_declared,
    )
    channels: str = fact(
        "RGB",
        "order of the channels; L is one grey channel (default: RGB)",
        check=one_of("RGB", "BGR", "L", noun="channel order"),
        parse=str,
        choices=("RGB", "BGR", "L"),
        carried_over=unless_channels_differ,
    )
    pixel_range: float | None = fact(
        None,
        "largest pixel value before normalisation (default: 255 for byte input, otherwise 1)",
        check=pixel_range_of,
        parse=float,
        metavar="N",
        carried_over=unless_normalised_otherwise,
    )
    mean: tuple[float, ...] = fact(
        (0.0, 0.0, 0.0),
        "subtracted from each channel, in the model's channel order (default: 0)",
        check=check_channel_values,
        parse=comma_separated,
        metavar="R,G,B",
        carried_over=unless_normalised_otherwise,
    )
    std: tuple[float, ...] = fact(
        (1.0, 1.0, 1.0),
        "each channel is then divided by this (default: 1)",
        check=check_positive_channel_values,
        parse=comma_separated,
        metavar="R,G,B",
        carried_over=unless_normalised_otherwise,
    )
    dtype: str = fact(
        "float32",
        "element type of the input tensor",
        check=one_of(*DTYPES, noun="element type"),
    )
    quantisation: tuple[float, int] | None = fact(
        None,
        "scale and zero point of quantised input; None: bytes are the pixels",
        check=check_quantisation,
    )

    def __post_init__(self) -> None:
        for entry in INPUT_FACTS.values():
            value = entry.check(entry.name, getattr(self, entry.name), self)
            object.__setattr__(self, entry.name, value)

    def card(self) -> dict[str, Any]:
        """The same facts as plain JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class OutputFacts:
    """What a model returns. A box has an attribute for each."""

    logits: bool = fact(
        False,
        "the model returns logits instead of probabilities",
        check=true_or_false,
        parse=bool,
        carried_over=unless_declared,
    )
    partial: bool = fact(
        False,
        "the model returns only the top classes, or rounded probabilities",
        check=true_or_false,
        parse=bool,
        carried_over=unless_declared,
    )
    background: bool = fact(
        False,
        "class 0 of the model is the background: leave it out, so that class 1 becomes class 0",
        check=true_or_false,
        parse=bool,
        carried_over=unless_declared,
    )


def _entries(table: type[Any]) -> dict[str, Fact]:
    """The entries of a dataclass made of facts, by name."""
    return {each.name: replace(each.metadata["fact"], name=each.name) for each in fields(table)}


INPUT_FACTS = _entries(InputFacts)
OUTPUT_FACTS = _entries(OutputFacts)
FACTS = {**OUTPUT_FACTS, **INPUT_FACTS}
CARRIED_OVER = tuple(name for name, entry in FACTS.items() if entry.carried_over is not None)


def unusual(box: Mapping[str, Any]) -> dict[str, Any]:
    """What had to be specified about a model, from the card of its box.

    Parameters
    ----------
    box : dict
        The card of a box, see `Box.card`.

    Examples
    --------
    >>> unusual({"logits": True, "input": {"mean": [0.0, 0.0, 0.0], "channels": "BGR"}})
    {'logits': True, 'channels': 'BGR'}
    """
    stated = _input_card(box)
    usual_input = InputFacts(dtype=stated.get("dtype", "float32")).card()
    usual = {**asdict(OutputFacts()), **usual_input}
    values = {**box, **stated}
    specified: dict[str, Any] = {}
    for name in CARRIED_OVER:
        value = values.get(name)
        value = tuple(value) if isinstance(value, list) else value
        if value is not None and value != usual[name]:
            specified[name] = value
    return specified


def carried_over(box: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """What had to be specified about a run's model and also holds for another model.

    Parameters
    ----------
    box : dict
        The card of the box of the run.
    declared : dict
        What the other model declares about itself, see `Box.declared`. It has precedence.

    Examples
    --------
    >>> card = {"logits": True, "input": {"layout": "NHWC", "mean": [0.5, 0.5, 0.5]}}
    >>> carried_over(card, {})
    {'logits': True, 'layout': 'NHWC', 'mean': (0.5, 0.5, 0.5)}
    >>> carried_over(card, {"layout": "NCHW", "dtype": "uint8"})
    {'logits': True}
    """
    carried = {}
    for name, value in unusual(box).items():
        rule = FACTS[name].carried_over
        if rule is not None and rule(name, box, declared):
            carried[name] = value
    return carried


def as_options(specified: Mapping[str, Any]) -> list[str]:
    """The same facts as words of the command line.

    Parameters
    ----------
    specified : dict
        Values by the name of their fact; True gives the flag alone.

    Examples
    --------
    >>> as_options({"logits": True, "mean": (0.5, 0.5, 0.25), "pixel_range": 255.0})
    ['--logits', '--mean', '0.5,0.5,0.25', '--pixel-range', '255']
    """
    words: list[str] = []
    for name, value in specified.items():
        words.append(FACTS[name].flag or f"--{name}")
        if isinstance(value, tuple):
            words.append(",".join(f"{number:g}" for number in value))
        elif value is not True:
            words.append(value if isinstance(value, str) else f"{value:g}")
    return words


def _input_card(box: Mapping[str, Any]) -> dict[str, Any]:
    return dict(box.get("input") or {})
