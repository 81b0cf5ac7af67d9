"""The quantised tensors of a TFLite file. Numbers are those of TensorFlow Lite's schema.fbs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from soda_tta.protocols.flatbuffers import Table

OPERATOR_CODES, SUBGRAPHS = 1, 2  # fields of the model
TENSORS, OPERATORS = 0, 3  # fields of a subgraph
QUANTISATION = 4  # field of a tensor
QUANTIZE, DEQUANTIZE = 114, 6  # built-in operators
WEIGHTED = (3, 4, 9)  # convolutions and fully connected layers: their second input is the weights
SMALLEST_SCALE = 1e-37  # its reciprocal is still a float32
BYTE_TYPES = {3: "uint8", 9: "int8"}


class Quantisation(NamedTuple):
    """How bytes stand for numbers: `(byte - zero_point) * scale`."""

    scale: float
    zero_point: int
    dtype: str

    @property
    def lowest(self) -> float:
        """The lowest number that can be represented."""
        return float((np.iinfo(self.dtype).min - self.zero_point) * self.scale)

    @property
    def highest(self) -> float:
        """The highest number that can be represented."""
        return float((np.iinfo(self.dtype).max - self.zero_point) * self.scale)


def quantisation_of(tensor: dict[str, Any]) -> Quantisation | None:
    """The quantisation of a tensor that LiteRT describes; None if it does not hold bytes."""
    dtype = np.dtype(tensor["dtype"]).name
    scales = tensor["quantization_parameters"]["scales"]
    zero_points = tensor["quantization_parameters"]["zero_points"]
    if dtype not in BYTE_TYPES.values() or len(scales) != 1:
        return None
    return Quantisation(float(scales[0]), int(zero_points[0]), dtype)


def quantisation_behind(content: bytes, index: int) -> Quantisation | None:
    """The quantisation of the bytes behind a tensor of floats at the edge of the graph.

    A quantised model may take and return floats: its first operator quantises them, its last one
    dequantises. None if there is no such operator.

    Parameters
    ----------
    content : bytes
        A TFLite file that LiteRT has accepted.
    index : int
        Index of an input or output tensor.
    """
    model = Table(content)
    codes = [_builtin(code) for code in model.tables(OPERATOR_CODES)]
    subgraph = model.tables(SUBGRAPHS)[0]
    for operator in subgraph.tables(OPERATORS):
        code = codes[operator.number(0, "I")]
        inputs, outputs = operator.numbers(1, "i"), operator.numbers(2, "i")
        if code == QUANTIZE and inputs == [index]:
            return _stored_quantisation(subgraph.tables(TENSORS)[outputs[0]])
        if code == DEQUANTIZE and outputs == [index]:
            return _stored_quantisation(subgraph.tables(TENSORS)[inputs[0]])
    return None


def check_graph(content: bytes) -> None:
    """Raise a ValueError for damage that LiteRT does not notice, and that crashes the process.

    LiteRT checks that a file is complete, but not that it has a graph, that operators have the
    inputs they need, or that scales and zero points are possible.
    """
    model = Table(content)
    codes = [_builtin(code) for code in model.tables(OPERATOR_CODES)]
    if not codes or not model.tables(SUBGRAPHS):
        raise ValueError("there is no graph")
    for subgraph in model.tables(SUBGRAPHS):
        tensors = subgraph.tables(TENSORS)
        for operator in subgraph.tables(OPERATORS):
            code = operator.number(0, "I")
            if code >= len(codes):
                raise ValueError("an operator is of a kind that does not exist")
            _check_operator(operator, codes[code], len(tensors))
        for tensor in tensors:
            _check_quantisation(tensor)


def _check_operator(operator: Table, code: int, tensors: int) -> None:
    inputs, outputs = operator.numbers(1, "i"), operator.numbers(2, "i")
    if not all(-1 <= each < tensors for each in inputs + outputs):
        raise ValueError("an operator uses a tensor that does not exist")
    required = 2 if code in WEIGHTED else 1
    if -1 in inputs[:required] + outputs:  # -1 stands for an input that is left out
        raise ValueError("an operator lacks an input or an output")


def _check_quantisation(tensor: Table) -> None:
    parameters = tensor.table(QUANTISATION)
    dtype = BYTE_TYPES.get(tensor.number(1, "b"))
    if parameters is None or dtype is None:
        return
    limits = np.iinfo(dtype)
    scales, zero_points = parameters.numbers(2, "f"), parameters.numbers(3, "q")
    if not all(limits.min <= each <= limits.max for each in zero_points):
        raise ValueError(f"a zero point is not in the range of {dtype}")
    if len(scales) == 1 and not SMALLEST_SCALE < scales[0] < np.inf:  # weights may have several
        raise ValueError(f"{scales[0]} is not a scale")


def _builtin(code: Table) -> int:
    """The number of a built-in operator; older files have it in another field."""
    return max(int(code.number(0, "b")), int(code.number(3, "i")))


def _stored_quantisation(tensor: Table) -> Quantisation | None:
    parameters = tensor.table(QUANTISATION)
    dtype = BYTE_TYPES.get(tensor.number(1, "b"))
    if parameters is None or dtype is None:
        return None
    scales, zero_points = parameters.numbers(2, "f"), parameters.numbers(3, "q")
    if not len(scales) == len(zero_points) == 1:
        return None
    return Quantisation(scales[0], zero_points[0], dtype)
