"""Triton's back end `onnxruntime` in Python, for a server that has only the Python back end."""

import json
from pathlib import Path
from typing import Any

import onnxruntime
import triton_python_backend_utils as triton


class TritonPythonModel:
    """One model of the repository: the inputs and outputs that its `config.pbtxt` names."""

    @staticmethod
    def auto_complete_config(config: Any) -> Any:
        return config  # nothing is completed: the configuration must be right as it is

    def initialize(self, arguments: dict[str, str]) -> None:
        folder = Path(arguments["model_repository"]) / arguments["model_version"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # leave the other cores to the tests
        self.session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        config = json.loads(arguments["model_config"])
        self.inputs = [each["name"] for each in config["input"]]
        self.outputs = [each["name"] for each in config["output"]]

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Any) -> Any:
        tensors = {
            name: triton.get_input_tensor_by_name(request, name).as_numpy() for name in self.inputs
        }
        results = self.session.run(self.outputs, tensors)
        return triton.InferenceResponse(
            [triton.Tensor(*pair) for pair in zip(self.outputs, results, strict=True)]
        )
