"""The Open Inference Protocol over gRPC: its messages from and to tensors.

The messages are those of the stubs in `tritonclient`. Images are sent as raw bytes. A server may
answer in raw bytes (Triton), or with a list of numbers of the right type (some Python servers).
Nothing here opens a connection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from soda_tta.protocols.open_inference import ModelMetadata, Response, TensorMetadata
from soda_tta.protocols.tensors import (
    DATATYPES,
    MissingOutput,
    Tensor,
    from_bytes,
    little_endian,
    reading,
)

# The field of typed contents that holds the values of a datatype. FP16 has none: raw bytes only.
CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
}


def encode_grpc_request(tensor: Tensor, *, model: str, version: str, output: str, id: str) -> bytes:
    """An inference request with one input, for one output.

    Parameters
    ----------
    tensor : Tensor
        The input.
    model, version : str
        Which model; an empty version leaves the choice to the server.
    output : str
        The name of the output to return.
    id : str
        Returned by the server with the response.
    """
    from tritonclient.grpc import service_pb2 as messages

    request = messages.ModelInferRequest
    image = request.InferInputTensor(
        name=tensor.name, datatype=tensor.datatype, shape=tensor.array.shape
    )
    wanted = request.InferRequestedOutputTensor(name=output)
    head = request(model_name=model, model_version=version, id=id, inputs=[image], outputs=[wanted])
    # The images are appended as the field that they are. Inside the message they would be copied
    # three times, and the call takes twice as long.
    field = request.DESCRIPTOR.fields_by_name["raw_input_contents"]
    raw = little_endian(tensor.array)
    return b"".join((head.SerializeToString(), field_header(field.number, raw.nbytes), raw.data))


def field_header(number: int, size: int) -> bytes:
    """What precedes the bytes of a field in a message of Protocol Buffers.

    >>> field_header(7, 300).hex()
    '3aac02'
    """
    of_bytes = 2  # the kind of field whose length is stated
    return varint(number << 3 | of_bytes) + varint(size)


def varint(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first; all but the last have the eighth bit."""
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def metadata_from_grpc(message: Any) -> ModelMetadata:
    """What a ModelMetadataResponse declares about a model."""
    return ModelMetadata(
        message.name,
        tuple(_declared(tensor) for tensor in message.inputs),
        tuple(_declared(tensor) for tensor in message.outputs),
        tuple(message.versions),
        message.platform,
    )


def response_from_grpc(message: Any, name: str) -> Response:
    """A ModelInferResponse with the output of this name; others may have any datatype."""
    with reading("response"):
        names = [output.name for output in message.outputs]
        if name not in names:
            raise MissingOutput(name, names)
        place = names.index(name)
        output = message.outputs[place]
        dtype = np.dtype(DATATYPES[output.datatype])
        if message.raw_output_contents:
            raw = message.raw_output_contents[place]
            flat = from_bytes(raw, dtype, len(raw), 0)
        else:
            values = getattr(output.contents, CONTENTS[output.datatype])
            flat = np.fromiter(values, dtype, len(values))
        tensor = Tensor(name, flat.reshape(tuple(output.shape)))
        return Response((tensor,), message.model_name, message.model_version, message.id or None)


def _declared(tensor: Any) -> TensorMetadata:
    return TensorMetadata(tensor.name, tensor.datatype, tuple(tensor.shape))
