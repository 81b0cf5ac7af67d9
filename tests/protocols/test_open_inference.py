"""Requests, responses and metadata of the Open Inference Protocol survive both directions."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from soda_tta.protocols.open_inference import (
    DATATYPES,
    ModelMetadata,
    ProtocolError,
    RequestedOutput,
    Tensor,
    TensorMetadata,
    decode_metadata,
    decode_request,
    decode_response,
    encode_metadata,
    encode_request,
    encode_response,
)

NAMES = st.text(min_size=1, max_size=8)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


def arrays(datatypes: list[str]) -> st.SearchStrategy[np.ndarray]:
    return st.sampled_from(datatypes).flatmap(lambda name: hnp.arrays(DATATYPES[name], SHAPES))


ANY = arrays(list(DATATYPES))
IN_JSON = arrays([name for name in DATATYPES if name != "FP16"])


def tensors(values: st.SearchStrategy[np.ndarray]) -> st.SearchStrategy[list[Tensor]]:
    each = st.builds(Tensor, NAMES, values)
    return st.lists(each, min_size=1, max_size=3, unique_by=lambda tensor: tensor.name)


def assert_same(decoded: tuple[Tensor, ...], sent: list[Tensor]) -> None:
    assert [tensor.name for tensor in decoded] == [tensor.name for tensor in sent]
    for one, other in zip(decoded, sent, strict=True):
        assert one.datatype == other.datatype and one.array.shape == other.array.shape
        np.testing.assert_array_equal(one.array, other.array)


@given(tensors(ANY), st.lists(st.builds(RequestedOutput, NAMES, st.booleans())), NAMES)
def test_a_binary_request_is_decoded_to_what_was_encoded(sent, outputs, id) -> None:
    request = decode_request(*encode_request(sent, outputs, binary=True, id=id))
    assert_same(request.inputs, sent)
    assert request.outputs == tuple(outputs) and request.id == id


@given(tensors(IN_JSON), st.lists(st.builds(RequestedOutput, NAMES, st.booleans())))
def test_a_json_request_is_decoded_to_what_was_encoded(sent, outputs) -> None:
    request = decode_request(*encode_request(sent, outputs))
    assert_same(request.inputs, sent)
    assert request.outputs == tuple(outputs) and request.id is None


@given(tensors(IN_JSON), st.data())
def test_a_response_is_decoded_to_what_was_encoded(sent: list[Tensor], data) -> None:
    binary = data.draw(st.sets(st.sampled_from([tensor.name for tensor in sent])))
    message = encode_response(sent, model_name="cats", model_version="3", binary=binary, id="a")
    response = decode_response(*message)
    assert_same(response.outputs, sent)
    assert (response.model_name, response.model_version, response.id) == ("cats", "3", "a")
    for tensor in sent:
        np.testing.assert_array_equal(response[tensor.name], tensor.array)


@given(tensors(ANY), st.data())
def test_one_output_is_decoded_alone(sent: list[Tensor], data) -> None:
    wanted = data.draw(st.sampled_from(sent))
    everything = {tensor.name for tensor in sent}
    message = encode_response(sent, model_name="cats", binary=everything)
    assert_same(decode_response(*message, [wanted.name]).outputs, [wanted])


@given(st.binary(max_size=60), st.integers(-5, 80))
def test_random_bytes_raise_a_protocol_error(body: bytes, length: int) -> None:
    for decode in (decode_request, decode_response):
        for headers in ({}, {"Inference-Header-Content-Length": str(length)}):
            with pytest.raises(ProtocolError, match="is not valid Open Inference Protocol"):
                decode(body, headers)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside),
    max_leaves=6,
)
KEYS = ("name", "shape", "datatype", "data", "parameters")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON_VALUES)))
def test_a_malformed_tensor_raises_a_protocol_error_or_is_decoded(entry: dict) -> None:
    body = json.dumps({"inputs": [entry], "outputs": [entry]}).encode()
    for decode in (decode_request, decode_response):
        try:
            decode(body, {})
        except ProtocolError:
            continue


def test_the_header_is_found_in_upper_and_lower_case() -> None:
    rows = np.array([[0.25, 0.75]], np.float32)
    body, headers = encode_response([Tensor("p", rows)], model_name="m", binary=["p"])
    lower = {name.lower(): value for name, value in headers.items()}
    np.testing.assert_array_equal(decode_response(body, lower)["p"], rows)


def test_raw_bytes_are_little_endian() -> None:
    body, headers = encode_request([Tensor("x", np.array([1.0], ">f4"))], binary=True)
    assert body[int(headers["Inference-Header-Content-Length"]) :] == b"\x00\x00\x80\x3f"


def test_a_client_can_request_all_outputs_as_raw_bytes() -> None:
    data = {"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}
    message = {"inputs": [data], "parameters": {"binary_data_output": True}}
    request = decode_request(json.dumps(message).encode(), {})
    assert request.binary and request.outputs == ()
    message["outputs"] = [{"name": "a"}, {"name": "b", "parameters": {"binary_data": False}}]
    request = decode_request(json.dumps(message).encode(), {})
    assert request.outputs == (RequestedOutput("a", True), RequestedOutput("b", False))


def test_json_data_may_be_nested_and_null_is_nan() -> None:
    data = {"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [[1, 2], [None, 4]]}
    response = decode_response(json.dumps({"outputs": [data]}).encode(), {})
    np.testing.assert_array_equal(response["x"], np.array([[1, 2], [np.nan, 4]], np.float32))


INVALID = {
    "a fraction in an integer tensor": {"datatype": "UINT8", "data": [1.5]},
    "a value out of range": {"datatype": "UINT8", "data": [256]},
    "a negative byte": {"datatype": "UINT8", "data": [-1]},
    "an integer in a tensor of truth values": {"datatype": "BOOL", "data": [1]},
    "text": {"datatype": "FP32", "data": ["one"]},
    "an unknown datatype": {"datatype": "BYTES", "data": ["one"]},
    "another shape": {"datatype": "FP32", "data": [1.0, 2.0]},
    "a negative size": {"datatype": "FP32", "parameters": {"binary_data_size": -4}},
    "a size that is not of whole values": {
        "datatype": "FP32",
        "parameters": {"binary_data_size": 3},
    },
    "neither data nor raw bytes": {"datatype": "FP32"},
}


@pytest.mark.parametrize("entry", INVALID.values(), ids=INVALID)
def test_an_invalid_tensor_is_refused(entry: dict) -> None:
    body = json.dumps({"inputs": [{"name": "x", "shape": [1], **entry}]}).encode()
    with pytest.raises(ProtocolError, match="the request is not valid Open Inference Protocol"):
        decode_request(body, {})


def test_half_precision_has_no_json_form() -> None:
    with pytest.raises(ProtocolError, match="FP16, which JSON cannot carry"):
        encode_request([Tensor("x", np.zeros(1, np.float16))])


def test_a_type_outside_the_protocol_is_refused() -> None:
    with pytest.raises(ProtocolError, match="complex128 values"):
        encode_request([Tensor("x", np.zeros(1, np.complex128))])


@pytest.mark.parametrize("names", [None, ["q"]])
def test_a_missing_output_is_named_with_those_present(names: list[str] | None) -> None:
    message = encode_response([Tensor("p", np.zeros(1))], model_name="m")
    with pytest.raises(ProtocolError, match=r"contains no output 'q' \(it contains p\)"):
        _ = decode_response(*message, names)["q"]


METADATA = st.builds(
    TensorMetadata, NAMES, st.sampled_from(list(DATATYPES)), st.tuples(st.integers(-1, 9))
)


@given(
    st.builds(
        ModelMetadata,
        NAMES,
        st.lists(METADATA, max_size=2).map(tuple),
        st.lists(METADATA, max_size=2).map(tuple),
        st.lists(NAMES, max_size=2).map(tuple),
        NAMES,
    )
)
def test_metadata_is_decoded_to_what_was_encoded(metadata: ModelMetadata) -> None:
    assert decode_metadata(json.loads(json.dumps(encode_metadata(metadata)))) == metadata


@pytest.mark.parametrize("message", [{"inputs": ["x"]}, {"inputs": [{"name": "x"}]}, {"inputs": 3}])
def test_invalid_metadata_is_refused(message: dict) -> None:
    with pytest.raises(ProtocolError, match="model metadata is not valid"):
        decode_metadata(message)
