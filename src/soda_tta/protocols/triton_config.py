"""`config.pbtxt`: how Triton Inference Server is told about a model or an ensemble of models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DATA_TYPES = {"float32": "TYPE_FP32", "float16": "TYPE_FP16", "uint8": "TYPE_UINT8"}


@dataclass(frozen=True)
class Tensor:
    """An input or output of a model.

    Parameters
    ----------
    name : str
    dtype : str
        "float32", "float16" or "uint8".
    shape : sequence
        Extents with the batch first; what is not a number is any extent.
    """

    name: str
    dtype: str
    shape: Sequence[Any]

    def entry(self, batched: bool) -> str:
        """One entry of a list in `config.pbtxt`; the batch is left out if Triton adds it."""
        extents = self.shape[1:] if batched else self.shape
        dims = ", ".join(str(each) if isinstance(each, int) else "-1" for each in extents)
        name = json.dumps(self.name)
        return f"  {{ name: {name}, data_type: {DATA_TYPES[self.dtype]}, dims: [ {dims} ] }}"


@dataclass(frozen=True)
class Step:
    """One model of an ensemble, and which of the ensemble's tensors are its inputs and outputs."""

    model: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    def entry(self) -> str:
        """One entry of the list of steps."""
        lines = [f"    {{ model_name: {json.dumps(self.model)}, model_version: -1"]
        for kind, names in (("input_map", self.inputs), ("output_map", self.outputs)):
            lines += [
                f"      {kind} {{ key: {json.dumps(own)}, value: {json.dumps(outer)} }}"
                for own, outer in names.items()
            ]
        return "\n".join([*lines, "    }"])


def model_config(name: str, source: Tensor, result: Tensor, batch: int | None) -> str:
    """The configuration of an ONNX file.

    Parameters
    ----------
    name : str
        Name of the model, and of its folder.
    source, result : Tensor
        Its input and output.
    batch : int or None
        Most images per request; None if the file fixes their number.

    Examples
    --------
    >>> source, result = Tensor("x", "uint8", ["n", 8, 8, 3]), Tensor("y", "float32", ["n", 4])
    >>> print(model_config("tiny", source, result, 64))
    name: "tiny"
    backend: "onnxruntime"
    max_batch_size: 64
    input [
      { name: "x", data_type: TYPE_UINT8, dims: [ 8, 8, 3 ] }
    ]
    output [
      { name: "y", data_type: TYPE_FP32, dims: [ 4 ] }
    ]
    dynamic_batching { }
    <BLANKLINE>
    """
    lines = [*_head(name, 'backend: "onnxruntime"', source, result, batch)]
    if batch is not None:
        lines.append("dynamic_batching { }")
    return "\n".join(lines) + "\n"


def ensemble_config(
    name: str, source: Tensor, result: Tensor, batch: int | None, steps: Sequence[Step]
) -> str:
    """The configuration of models that run one after the other; see `model_config`."""
    entries = ",\n".join(step.entry() for step in steps)
    lines = [
        *_head(name, 'platform: "ensemble"', source, result, batch),
        "ensemble_scheduling {",
        "  step [",
        entries,
        "  ]",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, kind: str, source: Tensor, result: Tensor, batch: int | None) -> list[str]:
    batched = batch is not None
    return [
        f"name: {json.dumps(name)}",
        kind,
        f"max_batch_size: {batch or 0}",
        *("input [", source.entry(batched), "]"),
        *("output [", result.entry(batched), "]"),
    ]
