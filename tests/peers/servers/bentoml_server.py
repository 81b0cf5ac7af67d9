"""Serve the digits of the demo from a real BentoML: an image as the body or a form field.

`python bentoml_server.py MODEL.onnx PORT`, with the python of .venv-bentoml, in an empty folder.
"""

import os
import sys
from pathlib import Path

import bentoml
import numpy as np
import onnxruntime
from PIL import Image


@bentoml.service(workers=1)
class Digits:
    """`POST /classify` with the form field `image`, or `POST /raw` with the file as the body."""

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # leave the other cores to the tests
        self.session = onnxruntime.InferenceSession(
            os.environ["MODEL"], options, providers=["CPUExecutionProvider"]
        )

    @bentoml.api
    def classify(self, image: Image.Image) -> dict[str, float]:
        return self.by_label(image)

    @bentoml.api
    def raw(self, image: Image.Image, /) -> dict[str, float]:
        return self.by_label(image)

    def by_label(self, image: Image.Image) -> dict[str, float]:
        pixels = np.asarray(image.convert("RGB")).transpose(2, 0, 1)[None]
        images = (pixels.astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.25)
        row = self.session.run(None, {"images": images})[0][0]
        return {f"digit {index}": float(score) for index, score in enumerate(row)}


if __name__ == "__main__":
    command = str(Path(sys.executable).with_name("bentoml"))
    here = str(Path(__file__).resolve().parent)
    serve = [command, "serve", "bentoml_server:Digits", "--port", sys.argv[2]]
    own = {
        "MODEL": str(Path(sys.argv[1]).resolve()),
        "BENTOML_DO_NOT_TRACK": "True",
        "BENTOML_HOME": str(Path.cwd()),  # otherwise it writes below the home directory
    }
    os.execve(command, [*serve, "--host", "127.0.0.1", "--working-dir", here], os.environ | own)
