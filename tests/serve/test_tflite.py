"""A TFLite file behind the protocol: floats and quantised bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.adaptors import Bank
from soda_tta.protocols.open_inference import decode_response, encode_request
from soda_tta.protocols.tensors import Tensor
from soda_tta.serve.live import FixedAdaptor
from soda_tta.serve.local import LocalModel
from soda_tta.serve.pixels import Pixels

from ..box.backends.tflite_models import tiny_tflite

__all__ = ["tiny_tflite"]


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_a_tflite_file_is_served_and_adapted(start, tiny_tflite, images, dtype: str) -> None:
    facts: dict[str, Any] = {} if dtype == "float32" else {"dtype": dtype}
    box = load_box(str(tiny_tflite(**facts)))
    proxy = start(LocalModel(box, "tiny"))
    metadata = json.loads(proxy.ask("GET", "/v2/models/tiny")[2])
    (entry,) = metadata["inputs"]
    pixels = Pixels(entry["name"], box.input)
    assert (entry["datatype"], metadata["platform"]) == (pixels.datatype, "tensorflow_tflite")
    adaptor = Bank().adaptor({"gamma": 0.4})
    for change, live in ((lambda each: each, None), (adaptor, FixedAdaptor(adaptor))):
        if live is not None:
            proxy.proxy.adapting.begin(pixels, live)
        tensor = box.input.prepare(images[:1])
        body, headers = encode_request([Tensor(entry["name"], tensor)], binary=True)
        status, received, content = proxy.ask("POST", "/v2/models/tiny/infer", body, headers)
        assert status == 200, content
        (output,) = decode_response(content, received).outputs
        sent = pixels.images(tensor)
        np.testing.assert_allclose(output.array, box(change(sent)), atol=1e-2)


def test_a_shape_that_the_file_cannot_take_is_an_error(start, tiny_tflite) -> None:
    box = load_box(str(tiny_tflite()))
    proxy = start(LocalModel(box, "tiny"))
    tensor = Tensor(box.input_name, np.zeros((1, 3, 5, 7), np.float32))
    body, headers = encode_request([tensor], binary=True)
    assert proxy.ask("POST", "/v2/models/tiny/infer", body, headers)[0] == 400
    good = box.input.prepare(np.zeros((1, 3, 8, 8), np.float32))
    body, headers = encode_request([Tensor(box.input_name, good)], binary=True)
    assert proxy.ask("POST", "/v2/models/tiny/infer", body, headers)[0] == 200
