"""Read the official CIFAR batches, which are pickles, without running code from them.

A pickle names the functions to call. Four names suffice for an array of bytes; each is replaced by
a stand-in that only records its arguments. Any other name ends the reading with an error.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.errors import ImageError
from soda_tta.types import Array


class RecordedType:
    """Stands in for numpy.dtype: records its name, for example u1."""

    def __init__(self, name: Any = "", *_: Any) -> None:
        self.name = name.decode("latin1") if isinstance(name, bytes) else name

    def __setstate__(self, state: Any) -> None:
        pass  # byte order and alignment mean nothing for a type of one byte


class RecordedArray:
    """Stands in for numpy.ndarray: records its state, unchecked."""

    def __init__(self, *_: Any) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def to_bytes_array(self) -> Array:
        """The array, if it holds bytes in C order; a batch holds nothing else."""
        _, shape, kind, fortran, data = self.state
        if not isinstance(kind, RecordedType) or kind.name not in ("u1", "uint8", "|u1") or fortran:
            raise ValueError("its array does not hold bytes")
        return np.frombuffer(data, np.uint8).reshape(shape)


class Encoded:
    """Stands in for _codecs.encode, by which Python 3 writes bytes for Python 2."""

    def __new__(cls, text: Any, encoding: Any = "latin1") -> Any:
        return text.encode("latin1") if isinstance(text, str) else bytes(text)

    # without this, a pickle could write attributes of the class
    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("bytes have no state")


STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): RecordedArray,
    ("numpy._core.multiarray", "_reconstruct"): RecordedArray,
    ("numpy", "ndarray"): RecordedArray,
    ("numpy", "dtype"): RecordedType,
    ("_codecs", "encode"): Encoded,
}


class CarefulUnpickler(pickle._Unpickler):
    """Finds the stand-ins and nothing else.

    This is the unpickler written in Python: a forged index makes the one in C reserve gigabytes.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in STAND_INS:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR batch needs")
        return STAND_INS[module, name]

    def persistent_load(self, identity: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside itself")


def read_batch(file: Path) -> dict[str, Any]:
    """One batch as a dictionary: `data` as a uint8 array, keys and names as text."""
    try:
        batch = CarefulUnpickler(io.BytesIO(file.read_bytes()), encoding="bytes").load()
        if not isinstance(batch, dict):
            raise ValueError(f"it holds a {type(batch).__name__}, not a dictionary")
        return {as_text(key): as_plain(value) for key, value in batch.items()}
    except Exception as error:  # a damaged pickle fails in many ways
        raise ImageError(
            f"{file} is not a CIFAR batch that can be read safely: {error}."
        ) from error


def as_plain(value: Any) -> Any:
    """Stand-ins and byte strings as arrays and text."""
    if isinstance(value, RecordedArray):
        return value.to_bytes_array()
    if isinstance(value, list):
        return [as_text(item) for item in value]
    return as_text(value)


def as_text(value: Any) -> Any:
    """Bytes as text; anything else as it is."""
    return value.decode("latin1") if isinstance(value, bytes) else value
