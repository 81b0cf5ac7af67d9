"""Serve an ONNX model from a real MLServer.

`python mlserver_model.py MODEL.onnx HTTP_PORT GRPC_PORT`, with the python of .venv-mlserver, in an
empty folder.
"""

import json
import os
import sys
from pathlib import Path

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Digits(MLModel):
    """Return what ONNX Runtime computes for the request, without any check."""

    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # leave the other cores to the tests
        self.session = onnxruntime.InferenceSession(
            self.settings.parameters.uri, options, providers=["CPUExecutionProvider"]
        )
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        inputs = {tensor.name: NumpyCodec.decode_input(tensor) for tensor in payload.inputs}
        names = [output.name for output in self.session.get_outputs()]
        arrays = self.session.run(names, inputs)
        outputs = [
            NumpyCodec.encode_output(name, array) for name, array in zip(names, arrays, strict=True)
        ]
        return InferenceResponse(id=payload.id, model_name=self.name, outputs=outputs)


def metadata(nodes: list[onnxruntime.NodeArg]) -> list[dict[str, object]]:
    """What GET /v2/models/digits declares; MLServer only repeats its settings."""
    shapes = [[size if isinstance(size, int) else -1 for size in node.shape] for node in nodes]
    return [
        {"name": node.name, "datatype": "FP32", "shape": shape}
        for node, shape in zip(nodes, shapes, strict=True)
    ]


def write_settings(folder: Path, model: Path, http_port: int, grpc_port: int) -> None:
    """Write the two files that `mlserver start` reads."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    server = {
        "host": "127.0.0.1",
        "http_port": http_port,
        "grpc_port": grpc_port,
        "parallel_workers": 0,
        "metrics_endpoint": None,
        "metrics_dir": str(folder),
        "environments_dir": str(folder),
        "debug": False,
    }
    model_settings = {
        "name": "digits",
        "implementation": "mlserver_model.Digits",
        "platform": "onnx",
        "parameters": {"uri": str(model.resolve())},
        "inputs": metadata(session.get_inputs()),
        "outputs": metadata(session.get_outputs()),
    }
    (folder / "settings.json").write_text(json.dumps(server))
    (folder / "model-settings.json").write_text(json.dumps(model_settings))


if __name__ == "__main__":
    model, http_port, grpc_port = sys.argv[1:]
    write_settings(Path.cwd(), Path(model), int(http_port), int(grpc_port))
    command = str(Path(sys.executable).with_name("mlserver"))
    os.execve(
        command,
        [command, "start", "."],
        os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent)},
    )
