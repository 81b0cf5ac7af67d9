"""The servers themselves: each answers as ONNX Runtime does in this process."""

import json
import urllib.request
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

pytestmark = pytest.mark.peers

IMAGES = np.random.default_rng(1).random((5, 3, 16, 16), dtype=np.float32)


@pytest.fixture(scope="module")
def expected(small_model: Path) -> np.ndarray:
    session = onnxruntime.InferenceSession(small_model, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["probabilities"], {"images": IMAGES})[0])


@pytest.mark.parametrize("server", ["triton_url", "mlserver_url"])
def test_json(server: str, request: pytest.FixtureRequest, expected: np.ndarray) -> None:
    url = request.getfixturevalue(server)
    tensor = {"name": "images", "datatype": "FP32", "shape": list(IMAGES.shape), "data": IMAGES.ravel().tolist()}
    body = json.dumps({"inputs": [tensor]}).encode()
    post = urllib.request.Request(f"{url}/infer", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(post, timeout=30) as answer:
        [output] = json.load(answer)["outputs"]
    assert (output["name"], output["datatype"]) == ("probabilities", "FP32")
    np.testing.assert_allclose(np.reshape(output["data"], output["shape"]), expected, atol=1e-5, rtol=0)


def test_binary(triton_url: str, expected: np.ndarray) -> None:
    raw = IMAGES.astype("<f4").tobytes()
    tensor = {
        "name": "images",
        "datatype": "FP32",
        "shape": list(IMAGES.shape),
        "parameters": {"binary_data_size": len(raw)},
    }
    wanted = {"name": "probabilities", "parameters": {"binary_data": True}}
    header = json.dumps({"inputs": [tensor], "outputs": [wanted]}).encode()
    headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))}
    post = urllib.request.Request(f"{triton_url}/infer", header + raw, headers)
    with urllib.request.urlopen(post, timeout=30) as answer:
        split, body = int(answer.headers["Inference-Header-Content-Length"]), answer.read()
    [output] = json.loads(body[:split])["outputs"]
    assert output["parameters"]["binary_data_size"] == len(body) - split
    probabilities = np.frombuffer(body[split:], "<f4").reshape(output["shape"])
    np.testing.assert_allclose(probabilities, expected, atol=1e-5, rtol=0)
