"""The Open Inference Protocol (KServe V2) as bytes, in both directions.

A client encodes requests and decodes responses; a server does the reverse. Tensors travel as JSON
or, with the binary tensor extension, as raw bytes after a JSON header whose length is sent in an
HTTP header. Nothing here opens a connection.

Every decoder raises a `ProtocolError` for anything that does not follow the protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from soda_tta.protocols.tensors import (
    DATATYPES,
    Message,
    MissingOutput,
    ProtocolError,
    Tensor,
    decode_message,
    decode_tensors,
    encode_message,
    encode_tensors,
    parameters_of,
    reading,
)
from soda_tta.types import Array

__all__ = [
    "BINARY_EXTENSION",
    "DATATYPES",
    "Message",
    "MissingOutput",
    "ModelMetadata",
    "ProtocolError",
    "Request",
    "RequestedOutput",
    "Response",
    "Tensor",
    "TensorMetadata",
    "decode_metadata",
    "decode_request",
    "decode_response",
    "encode_metadata",
    "encode_request",
    "encode_response",
]

BINARY_EXTENSION = "binary_tensor_data"  # as a server lists it among its extensions


@dataclass(frozen=True)
class RequestedOutput:
    """An output that a client requests, and whether it wants raw bytes."""

    name: str
    binary: bool = False


@dataclass(frozen=True)
class Request:
    """A decoded inference request. Without `outputs`, the client wants all of them."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[RequestedOutput, ...] = ()
    id: str | None = None
    binary: bool = False  # the form of outputs that are not listed


@dataclass(frozen=True)
class Response:
    """A decoded inference response."""

    outputs: tuple[Tensor, ...]
    model_name: str = ""
    model_version: str | None = None
    id: str | None = None

    def __getitem__(self, name: str) -> Array:
        """The output of that name."""
        for output in self.outputs:
            if output.name == name:
                return output.array
        names = [output.name for output in self.outputs]
        raise MissingOutput(name, names)


def encode_request(
    inputs: Sequence[Tensor],
    outputs: Sequence[RequestedOutput] = (),
    *,
    binary: bool = False,
    id: str | None = None,
) -> Message:
    """The body and the headers of an inference request.

    Parameters
    ----------
    inputs : sequence of Tensor
    outputs : sequence of RequestedOutput, default ()
        The outputs to return. Default: all of them.
    binary : bool, default False
        Send the inputs as raw bytes.
    id : str, optional
        Returned by the server with the response.

    Examples
    --------
    >>> import numpy as np
    >>> body, headers = encode_request([Tensor("x", np.zeros(2, np.float32))])
    >>> body
    b'{"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [0.0, 0.0]}]}'
    >>> decode_request(body, headers).inputs[0].array
    array([0., 0.], dtype=float32)
    """
    names = [tensor.name for tensor in inputs]
    described, raw = encode_tensors(inputs, names if binary else ())
    message: dict[str, Any] = {} if id is None else {"id": id}
    message["inputs"] = described
    if outputs:
        message["outputs"] = [_encode_requested(each) for each in outputs]
    return encode_message(message, raw)


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    """Read an inference request.

    Parameters
    ----------
    body : bytes
    headers : mapping
        The HTTP headers of the request; upper and lower case are the same.
    """
    with reading("request"):
        message, offset = decode_message(body, headers)
        binary = bool(parameters_of(message).get("binary_data_output", False))
        outputs = tuple(
            RequestedOutput(each["name"], bool(parameters_of(each).get("binary_data", binary)))
            for each in message.get("outputs") or []
        )
        inputs = decode_tensors(message["inputs"], body, offset)
        return Request(inputs, outputs, message.get("id"), binary)


def encode_response(
    outputs: Sequence[Tensor],
    *,
    model_name: str,
    model_version: str | None = None,
    binary: Collection[str] = (),
    id: str | None = None,
) -> Message:
    """The body and the headers of an inference response.

    Parameters
    ----------
    outputs : sequence of Tensor
    model_name : str
    model_version : str, optional
    binary : collection of str, default ()
        Names of the outputs to send as raw bytes.
    id : str, optional
        The id of the request.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.25, 0.75]], np.float32)
    >>> message = encode_response([Tensor("p", rows)], model_name="cats", binary=["p"])
    >>> decode_response(*message)["p"]
    array([[0.25, 0.75]], dtype=float32)
    """
    message: dict[str, Any] = {"model_name": model_name}
    if model_version is not None:
        message["model_version"] = model_version
    if id is not None:
        message["id"] = id
    message["outputs"], raw = encode_tensors(outputs, binary)
    return encode_message(message, raw)


def decode_response(
    body: bytes, headers: Mapping[str, str], names: Collection[str] | None = None
) -> Response:
    """Read an inference response.

    Parameters
    ----------
    body : bytes
    headers : mapping
        The HTTP headers of the response; upper and lower case are the same.
    names : collection of str, optional
        Decode only these outputs, which must be present; the others may have any datatype.
        Default: all.
    """
    with reading("response"):
        message, offset = decode_message(body, headers)
        present = [str(each["name"]) for each in message["outputs"]]
        for name in names or ():
            if name not in present:
                raise MissingOutput(name, present)
        outputs = decode_tensors(message["outputs"], body, offset, names)
        return Response(
            outputs, message.get("model_name", ""), message.get("model_version"), message.get("id")
        )


@dataclass(frozen=True)
class TensorMetadata:
    """What a model declares about one of its tensors; an extent of -1 is any extent."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class ModelMetadata:
    """What a server declares about a model."""

    name: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    versions: tuple[str, ...] = ()
    platform: str = ""


def encode_metadata(metadata: ModelMetadata) -> dict[str, Any]:
    """The JSON object of a model's metadata.

    Parameters
    ----------
    metadata : ModelMetadata

    Examples
    --------
    >>> images = TensorMetadata("images", "FP32", (-1, 3, 8, 8))
    >>> cats = ModelMetadata("cats", (images,), ())
    >>> decode_metadata(encode_metadata(cats)) == cats
    True
    """
    return {
        "name": metadata.name,
        "versions": list(metadata.versions),
        "platform": metadata.platform,
        "inputs": [_described(tensor) for tensor in metadata.inputs],
        "outputs": [_described(tensor) for tensor in metadata.outputs],
    }


def decode_metadata(message: Mapping[str, Any]) -> ModelMetadata:
    """Read the JSON object of a model's metadata.

    Parameters
    ----------
    message : mapping
        As parsed from JSON. Shapes and datatypes of outputs may be absent.
    """
    with reading("model metadata"):
        return ModelMetadata(
            str(message.get("name", "")),
            tuple(
                TensorMetadata(str(each["name"]), str(each["datatype"]), tuple(each["shape"]))
                for each in message.get("inputs") or []
            ),
            tuple(
                TensorMetadata(
                    str(each["name"]), str(each.get("datatype", "")), tuple(each.get("shape") or ())
                )
                for each in message.get("outputs") or []
            ),
            tuple(str(version) for version in message.get("versions") or []),
            str(message.get("platform") or ""),
        )


def _described(tensor: TensorMetadata) -> dict[str, Any]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


def _encode_requested(output: RequestedOutput) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": output.name}
    if output.binary:
        entry["parameters"] = {"binary_data": True}
    return entry
