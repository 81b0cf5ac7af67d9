"""The tensors of a TFLite file at which images go in and scores come out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box.facts import DTYPES
from soda_tta.errors import BoxError
from soda_tta.foreign_text import quoted
from soda_tta.protocols.tflite_files import damaged

Details = dict[str, Any]  # of a tensor, as LiteRT gives them


def tensors_of(path: Path, interpreter: Any) -> tuple[list[Details], list[Details]]:
    """The inputs and the outputs of a model."""
    try:
        return interpreter.get_input_details(), interpreter.get_output_details()
    except ValueError as error:  # a name that is not a text, or an index that does not exist
        raise BoxError(damaged(path)) from error


def image_input(path: Path, inputs: Sequence[Details]) -> Details:
    """The one input of a model, of a type that can be sent."""
    if len(inputs) != 1:
        raise BoxError(
            f"{path} has {len(inputs)} inputs ({described(inputs)}); an image classifier has one. "
            "Run it in a function of your own (file.py:function)."
        )
    dtype = np.dtype(inputs[0]["dtype"]).name
    if dtype not in DTYPES:
        raise BoxError(
            f"{path} takes {dtype}; this package sends {', '.join(DTYPES)}. "
            "Convert the model with one of these as its input type."
        )
    return inputs[0]


def scores_output(
    path: Path, outputs: Sequence[Details], name: str | None = None
) -> tuple[int, Details]:
    """The output with the class scores, and its place among the outputs.

    Parameters
    ----------
    path : Path
        Where the file is, for errors.
    outputs : sequence
        All outputs of the model.
    name : str, optional
        The name of the output. Default: the only one that can be.
    """
    if name is None:
        places = [place for place, each in enumerate(outputs) if could_be_scores(each)]
    else:
        places = [place for place, each in enumerate(outputs) if each["name"] == name]
    if len(places) == 1:
        return places[0], outputs[places[0]]
    if name is None:
        raise BoxError(
            f"{path} has the outputs {described(outputs)}; "
            "choose the one with the class scores (output='NAME')."
        )
    raise BoxError(
        f"{path} has no output {name!r}; choose from: {described(outputs)} (output='NAME')."
    )


def could_be_scores(tensor: Details) -> bool:
    """Whether a tensor has one row of numbers per image."""
    is_row = sum(extent > 1 for extent in tensor["shape"][1:]) == 1
    return is_row and np.dtype(tensor["dtype"]).name in DTYPES


def described(tensors: Sequence[Details]) -> str:
    """Names and shapes of tensors, for an error."""
    texts = [f"{each['name']} ({'x'.join(map(str, each['shape']))})" for each in tensors]
    return quoted(", ".join(texts))
