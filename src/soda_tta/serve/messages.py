"""The image tensor inside of an inference request over HTTP: read it, or put another in its place.

Everything else in the message stays as the client sent it, byte for byte if tensors are binary.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.protocols.tensors import (
    DATATYPES,
    JSON_LENGTH,
    ProtocolError,
    decode_message,
    from_json,
    little_endian,
    parameters_of,
    reading,
)
from soda_tta.types import Array

JSON_HEADER = JSON_LENGTH.lower()


@dataclass(frozen=True)
class ImageTensor:
    """A tensor of a request.

    Attributes
    ----------
    array : array
        Its values; those of a binary tensor are not a copy.
    parameters : mapping
        The parameters of the whole request.
    """

    array: Array
    body: bytes
    message: dict[str, Any]
    entry: dict[str, Any]
    offset: int | None  # of the raw bytes; None: the tensor is JSON

    @property
    def parameters(self) -> Mapping[str, Any]:
        return parameters_of(self.message)

    def replaced(self, array: Array) -> bytes:
        """The body with another tensor of the same shape and datatype in its place."""
        if self.offset is not None:
            raw = little_endian(array).tobytes()
            before = memoryview(self.body)[: self.offset]
            after = memoryview(self.body)[self.offset + len(raw) :]
            return b"".join((before, raw, after))
        data = self.entry["data"]
        nested = bool(data) and isinstance(data[0], list)
        self.entry["data"] = array.tolist() if nested else array.ravel().tolist()
        return json.dumps(self.message).encode()


def find_tensor(
    body: bytes, headers: Mapping[str, str], name: str, datatype: str
) -> ImageTensor | None:
    """The tensor of this name and datatype, or None: then the message is for the model alone.

    Parameters
    ----------
    body : bytes
    headers : mapping
        By lower-case name.
    name, datatype : str

    Raises
    ------
    ProtocolError
        For a message that no model could read.
    """
    with reading("request"):
        return _find(body, headers, "inputs", name, datatype)


def find_output(body: bytes, headers: Mapping[str, str], name: str) -> ImageTensor | None:
    """An output of a response, of any datatype; None if there is none that can be replaced."""
    with reading("response"):
        return _find(body, headers, "outputs", name, None)


def _find(
    body: bytes, headers: Mapping[str, str], part: str, name: str, datatype: str | None
) -> ImageTensor | None:
    if headers.get(JSON_HEADER) == "0":  # Triton's form without JSON
        return None
    if not 0 <= int(headers.get(JSON_HEADER, 0)) <= len(body):
        raise ValueError(f"a JSON part of {headers[JSON_HEADER][:20]} bytes")
    message, end = decode_message(body, headers)
    entries = message[part]
    named = [each for each in entries if each["name"] == name]
    sizes = [binary_size(each) for each in entries]
    if any(sizes) and end + sum(sizes) != len(body):
        raise ValueError(f"{len(body) - end} bytes of tensors; its sizes sum to {sum(sizes)}")
    if len(named) != 1 or datatype not in (None, named[0]["datatype"]):
        return None
    (entry,) = named
    datatype = entry["datatype"]
    if "binary_data_size" in parameters_of(entry):
        place = entries.index(entry)
        start = end + sum(sizes[:place])
        array = raw_tensor(body, entry, start, sizes[place])
        return ImageTensor(array, body, message, entry, start)
    if "data" not in entry or (part == "outputs" and any(sizes)):  # in shared memory, or mixed
        return None
    shape = extents(entry["shape"])
    flat = from_json(entry["data"], np.dtype(DATATYPES[datatype]))
    check_count(flat.size, shape)
    return ImageTensor(flat.reshape(shape), body, message, entry, None)


def raw_tensor(body: bytes, entry: Mapping[str, Any], start: int, size: int) -> Array:
    """A binary tensor, as a view of the body."""
    dtype = np.dtype(DATATYPES[entry["datatype"]]).newbyteorder("<")
    shape = extents(entry["shape"])
    check_count(size / dtype.itemsize, shape)
    return np.frombuffer(body, dtype, size // dtype.itemsize, start).reshape(shape)


def binary_size(entry: Mapping[str, Any]) -> int:
    """The raw bytes of a tensor; 0 if it has none."""
    size = parameters_of(entry).get("binary_data_size", 0)
    if type(size) is not int or size < 0:
        raise TypeError("binary_data_size is not a number of bytes")
    return size


def extents(shape: Sequence[Any]) -> tuple[int, ...]:
    """A shape of whole numbers."""
    if not isinstance(shape, list) or not all(type(each) is int and each >= 0 for each in shape):
        raise TypeError("a shape is not a list of extents")
    return tuple(shape)


def check_count(values: float, shape: Sequence[int]) -> None:
    """Refuse a shape that does not match the data."""
    if math.prod(shape) != values:
        raise ProtocolError(
            f"the request is not valid Open Inference Protocol: its data of {values:g} values do "
            f"not fit the shape {list(shape)[:8]}."
        )
