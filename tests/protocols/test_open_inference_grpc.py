"""Messages of the Open Inference Protocol over gRPC, as Protocol Buffers itself reads them."""

import numpy as np
import pytest

from soda_tta.protocols.open_inference import ProtocolError, Tensor
from soda_tta.protocols.open_inference_grpc import (
    CONTENTS,
    encode_grpc_request,
    response_from_grpc,
)
from soda_tta.protocols.tensors import DATATYPES

messages = pytest.importorskip("tritonclient.grpc.service_pb2")


@pytest.mark.parametrize("count", [0, 1, 127, 128, 70_000])
def test_the_library_reads_the_images_that_were_appended(count: int) -> None:
    array = np.arange(count, dtype=np.uint8).reshape(count, 1)
    encoded = encode_grpc_request(
        Tensor("images", array), model="cats", version="3", output="scores", id="one"
    )
    request = messages.ModelInferRequest.FromString(encoded)
    assert (request.model_name, request.model_version, request.id) == ("cats", "3", "one")
    assert list(request.raw_input_contents) == [array.tobytes()]
    assert (request.inputs[0].name, request.inputs[0].datatype) == ("images", "UINT8")
    assert list(request.inputs[0].shape) == [count, 1]
    assert [output.name for output in request.outputs] == ["scores"]
    assert request.SerializeToString(deterministic=True)  # nothing is left unread


@pytest.mark.parametrize("array", [np.eye(3, dtype=">f4"), np.eye(6, dtype="<f4")[::2, ::2]])
def test_images_travel_little_endian_and_in_order(array: np.ndarray) -> None:
    encoded = encode_grpc_request(Tensor("x", array), model="m", version="", output="p", id="")
    (raw,) = messages.ModelInferRequest.FromString(encoded).raw_input_contents
    np.testing.assert_array_equal(np.frombuffer(raw, "<f4").reshape(3, 3), array)


@pytest.mark.parametrize("datatype", CONTENTS)
def test_typed_contents_are_read_from_their_field(datatype: str) -> None:
    response = messages.ModelInferResponse(id="one")
    response.outputs.add(name="other", datatype="BYTES")
    output = response.outputs.add(name="p", datatype=datatype, shape=[2, 1])
    getattr(output.contents, CONTENTS[datatype]).extend([1, 0])
    decoded = response_from_grpc(response, "p")
    np.testing.assert_array_equal(decoded["p"], [[1], [0]])
    assert decoded["p"].dtype == DATATYPES[datatype] and decoded.id == "one"


def test_half_precision_has_no_typed_contents() -> None:
    response = messages.ModelInferResponse()
    response.outputs.add(name="p", datatype="FP16", shape=[1])
    with pytest.raises(ProtocolError, match="FP16"):
        response_from_grpc(response, "p")


def test_raw_contents_are_those_of_their_place() -> None:
    response = messages.ModelInferResponse(raw_output_contents=[b"xx", b"\x00\x3c"])
    response.outputs.add(name="other", datatype="UINT8", shape=[2])
    response.outputs.add(name="p", datatype="FP16", shape=[1])
    np.testing.assert_array_equal(response_from_grpc(response, "p")["p"], [1])
    del response.raw_output_contents[1]
    with pytest.raises(ProtocolError, match="not valid Open Inference Protocol"):
        response_from_grpc(response, "p")
