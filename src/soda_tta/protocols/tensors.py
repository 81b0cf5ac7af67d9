"""Tensors in messages of the Open Inference Protocol: as JSON, or as raw bytes after the JSON.

With the binary tensor extension a message is a JSON header, whose length is sent in an HTTP
header, followed by the raw bytes of its tensors, little-endian, in the order of the header.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.errors import SodaError
from soda_tta.foreign_json import parse_json
from soda_tta.foreign_text import quoted
from soda_tta.types import Array

DATATYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
}
DATATYPE_OF = {dtype: datatype for datatype, dtype in DATATYPES.items()}
BINARY_ONLY = ("FP16",)  # the protocol has no JSON form for it
JSON_LENGTH = "Inference-Header-Content-Length"

# What reading a message that is not valid may raise.
UNREADABLE = (
    *(ValueError, KeyError, TypeError, IndexError),
    *(AttributeError, OverflowError, RecursionError, MemoryError),
)

Message = tuple[bytes, dict[str, str]]  # the body, and the HTTP headers that belong to it


class ProtocolError(SodaError, ValueError):
    """A message does not follow the Open Inference Protocol."""


class MissingOutput(ProtocolError):
    """A response is valid and does not contain an output that is needed.

    Parameters
    ----------
    name : str
        The output that is needed.
    names : sequence of str
        The outputs that the response contains.
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        listed = quoted(", ".join(names)) or "none"
        super().__init__(
            f"the response contains no output {quoted(name)!r} (it contains {listed})."
        )


@dataclass(frozen=True)
class Tensor:
    """A named array. Its datatype follows from the array.

    >>> Tensor("images", np.zeros((1, 3, 8, 8), np.float32)).datatype
    'FP32'
    """

    name: str
    array: Array

    @property
    def datatype(self) -> str:
        """The name of the element type in the protocol."""
        try:
            return DATATYPE_OF[self.array.dtype.name]
        except KeyError:
            raise ProtocolError(
                f"tensor {self.name!r} holds {self.array.dtype} values; "
                f"the protocol has no datatype for them."
            ) from None


def encode_tensors(
    tensors: Sequence[Tensor], binary: Collection[str]
) -> tuple[list[dict[str, Any]], bytes]:
    """The JSON descriptions of tensors, and the raw bytes of those named in `binary`."""
    described = []
    pieces = []
    for tensor in tensors:
        array = tensor.array
        entry: dict[str, Any] = {
            "name": tensor.name,
            "shape": list(array.shape),
            "datatype": tensor.datatype,
        }
        if tensor.name in binary:
            raw = little_endian(array).tobytes()
            entry["parameters"] = {"binary_data_size": len(raw)}
            pieces.append(raw)
        elif tensor.datatype in BINARY_ONLY:
            raise ProtocolError(
                f"tensor {tensor.name!r} is {tensor.datatype}, which JSON cannot carry; "
                "send it as raw bytes."
            )
        else:
            entry["data"] = array.ravel().tolist()
        described.append(entry)
    return described, b"".join(pieces)


def decode_tensors(
    described: Sequence[Mapping[str, Any]],
    body: bytes,
    offset: int,
    names: Collection[str] | None = None,
) -> tuple[Tensor, ...]:
    """The tensors of these names; their raw bytes begin at `offset`, in the order of the list."""
    tensors = []
    for entry in described:
        size = parameters_of(entry).get("binary_data_size")
        if names is None or str(entry["name"]) in names:
            dtype = np.dtype(DATATYPES[entry["datatype"]])
            if size is None:
                flat = from_json(entry["data"], dtype)
            else:
                flat = from_bytes(body, dtype, size, offset)
            tensors.append(Tensor(str(entry["name"]), flat.reshape(entry["shape"])))
        offset += size or 0
    return tuple(tensors)


def from_json(data: Any, dtype: np.dtype[Any]) -> Array:
    """Numbers of a JSON list; null is NaN, because JSON has no NaN."""
    if dtype.kind == "f":
        return np.asarray(data, dtype)
    values = np.asarray(data, object).ravel()
    kind = bool if dtype.kind == "b" else int
    if not all(type(value) is kind for value in values):
        raise ValueError(f"not all values are of the type {dtype}")
    if kind is int and len(values):
        limits = np.iinfo(dtype)
        if min(values) < limits.min or max(values) > limits.max:
            raise ValueError(f"not all values are in the range of {dtype}")
    return values.astype(dtype)


def little_endian(array: Array) -> Array:
    """The array as its raw bytes are sent; a copy only where it has to be one."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def from_bytes(body: bytes, dtype: np.dtype[Any], size: int, offset: int) -> Array:
    """The array in `size` bytes of the body; a copy in the byte order of this machine."""
    if size < 0 or size % dtype.itemsize:
        raise ValueError(f"{size} bytes do not hold whole values of {dtype}")
    raw = np.frombuffer(body, dtype.newbyteorder("<"), size // dtype.itemsize, offset)
    return raw.astype(dtype)


def encode_message(message: Mapping[str, Any], raw: bytes) -> Message:
    """A body and its headers from the JSON part and the raw bytes, if there are any."""
    header = json.dumps(message).encode()
    if not raw:
        return header, {"Content-Type": "application/json"}
    lengths = {JSON_LENGTH: str(len(header)), "Content-Type": "application/octet-stream"}
    return header + raw, lengths


def decode_message(body: bytes, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    """The JSON part of a body, and where its raw bytes begin."""
    stated = {name.lower(): value for name, value in headers.items()}.get(JSON_LENGTH.lower())
    length = len(body) if stated is None else int(stated)
    message = parse_json(body[:length], deepest=None)
    if not isinstance(message, dict):
        raise TypeError(f"{type(message).__name__} instead of a JSON object")
    return message, length


def parameters_of(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The optional parameters of a message or a tensor."""
    parameters: Mapping[str, Any] = entry.get("parameters") or {}
    return parameters


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn any failure to read a message into a `ProtocolError`."""
    try:
        yield
    except ProtocolError:
        raise
    except UNREADABLE as error:
        reason = f"{type(error).__name__}: {quoted(error)}"
        raise ProtocolError(
            f"the {what} is not valid Open Inference Protocol ({reason})."
        ) from error
