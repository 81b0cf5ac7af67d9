"""The image tensor inside of an inference request over gRPC, and requests for a local model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from soda_tta.protocols.open_inference import ModelMetadata, Request, RequestedOutput
from soda_tta.protocols.open_inference_grpc import CONTENTS
from soda_tta.protocols.tensors import (
    DATATYPES,
    ProtocolError,
    Tensor,
    from_bytes,
    little_endian,
    reading,
)
from soda_tta.types import Array


@dataclass(frozen=True)
class GrpcTensor:
    """A tensor of a ModelInferRequest."""

    array: Array
    message: Any
    place: int  # among the inputs

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the whole request."""
        return {name: value_of(each) for name, each in self.message.parameters.items()}

    def replaced(self, array: Array) -> bytes:
        """The request with another tensor of the same shape and datatype in its place."""
        if self.message.raw_input_contents:
            self.message.raw_input_contents[self.place] = little_endian(array).tobytes()
        else:
            entry = self.message.inputs[self.place]
            values = getattr(entry.contents, CONTENTS[entry.datatype])
            values[:] = array.ravel().tolist()
        return bytes(self.message.SerializeToString())


def find_grpc_tensor(message: Any, name: str, datatype: str) -> GrpcTensor | None:
    """The tensor of this name and datatype, or None: then the message is for the model alone.

    Raises a `ProtocolError` for a message that no model could read.
    """
    with reading("request"):
        places = [place for place, each in enumerate(message.inputs) if each.name == name]
        if len(places) != 1 or message.inputs[places[0]].datatype != datatype:
            return None
        if any("shared_memory_region" in each.parameters for each in message.inputs):
            return None
        return GrpcTensor(array_of(message, places[0]), message, places[0])


def array_of(message: Any, place: int) -> Array:
    """An input of a request; ValueError if its data do not fit its shape."""
    entry = message.inputs[place]
    shape = tuple(entry.shape)
    dtype = np.dtype(DATATYPES[entry.datatype])
    if message.raw_input_contents:
        if len(message.raw_input_contents) != len(message.inputs):
            raise ValueError("as many raw contents as inputs are needed")
        raw = message.raw_input_contents[place]
        check_count(len(raw) / dtype.itemsize, shape)
        return from_bytes(raw, dtype, len(raw), 0).reshape(shape)
    values = getattr(entry.contents, CONTENTS[entry.datatype])
    check_count(len(values), shape)
    return np.fromiter(values, dtype, len(values)).reshape(shape)


def check_count(values: float, shape: Sequence[int]) -> None:
    """Refuse a shape that does not match the data."""
    if min(shape, default=0) < 0 or math.prod(shape) != values:
        raise ProtocolError(
            f"the request is not valid Open Inference Protocol: its data of {values:g} values do "
            f"not fit the shape {list(shape)[:8]}."
        )


def value_of(parameter: Any) -> Any:
    """The value of a parameter, whichever of its fields is set."""
    chosen = parameter.WhichOneof("parameter_choice")
    return None if chosen is None else getattr(parameter, chosen)


def request_from_grpc(message: Any) -> Request:
    """A ModelInferRequest for a local model."""
    with reading("request"):
        inputs = tuple(
            Tensor(entry.name, array_of(message, place))
            for place, entry in enumerate(message.inputs)
        )
        outputs = tuple(RequestedOutput(each.name, True) for each in message.outputs)
        return Request(inputs, outputs, message.id or None, True)


def response_to_grpc(
    messages: Any, outputs: Sequence[Tensor], *, name: str, version: str, id: str | None
) -> bytes:
    """A ModelInferResponse with raw contents."""
    entries = [
        messages.ModelInferResponse.InferOutputTensor(
            name=each.name, datatype=each.datatype, shape=each.array.shape
        )
        for each in outputs
    ]
    raw = [little_endian(each.array).tobytes() for each in outputs]
    response = messages.ModelInferResponse(
        model_name=name,
        model_version=version,
        id=id or "",
        outputs=entries,
        raw_output_contents=raw,
    )
    return bytes(response.SerializeToString())


def metadata_to_grpc(messages: Any, metadata: ModelMetadata) -> bytes:
    """A ModelMetadataResponse."""
    kind = messages.ModelMetadataResponse
    response = kind(name=metadata.name, versions=metadata.versions, platform=metadata.platform)
    for ours, theirs in ((metadata.inputs, response.inputs), (metadata.outputs, response.outputs)):
        for each in ours:
            theirs.append(
                kind.TensorMetadata(name=each.name, datatype=each.datatype, shape=each.shape)
            )
    return bytes(response.SerializeToString())
