"""Serve the digits of the demo from a real LitServe: base64 inside JSON in, labels with scores out.

`python litserve_server.py MODEL.onnx PORT`, with the python of .venv-litserve, in an empty folder.
"""

import base64
import io
import sys

import litserve
import numpy as np
import onnxruntime
from PIL import Image


class Digits(litserve.LitAPI):
    """`{"instances": [{"b64": ...}, ...], "top": k}` in; the best `k` labels of each image out."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self.model = model

    def setup(self, device: str) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # leave the other cores to the tests
        self.session = onnxruntime.InferenceSession(
            self.model, options, providers=["CPUExecutionProvider"]
        )

    def decode_request(self, request: dict) -> tuple[np.ndarray, int]:
        files = [base64.b64decode(instance["b64"]) for instance in request["instances"]]
        pixels = [np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in files]
        images = np.stack(pixels).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
        return (images - np.float32(0.5)) / np.float32(0.25), request.get("top", 10)

    def predict(self, request: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
        images, top = request
        return self.session.run(None, {"images": images})[0], top

    def encode_response(self, output: tuple[np.ndarray, int]) -> dict[str, list]:
        rows, top = output
        return {"predictions": [best(row, top) for row in rows]}


def best(row: np.ndarray, top: int) -> list[dict[str, object]]:
    """The most probable classes, best first."""
    order = np.argsort(-row)[:top]
    return [{"label": f"digit {index}", "score": float(row[index])} for index in order]


if __name__ == "__main__":
    server = litserve.LitServer(Digits(sys.argv[1]), accelerator="cpu", devices=1)
    port = int(sys.argv[2])
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="warning")
