"""Serve an ONNX model from a real Triton.

`python triton_server.py MODEL.onnx HTTP_PORT GRPC_PORT [CERTIFICATE KEY]`, with the python of
.venv-triton, in an empty folder. With a certificate, gRPC is over TLS.
"""

import signal
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig


def tensor(node: onnxruntime.NodeArg) -> Tensor:
    """Describe one input or output to Triton: without the batch axis, a dynamic axis is -1."""
    shape = tuple(size if isinstance(size, int) else -1 for size in node.shape[1:])
    return Tensor(name=node.name, dtype=np.float32, shape=shape)


def serve(model: str, http_port: int, grpc_port: int, *tls: str) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # leave the other cores to the tests
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    @batch
    def infer(**inputs: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(names, session.run(names, inputs), strict=True))

    encrypted = {}
    if tls:
        encrypted = dict(grpc_use_ssl=True, grpc_server_cert=tls[0], grpc_server_key=tls[1])
    config = TritonConfig(
        http_address="127.0.0.1",
        http_port=http_port,
        grpc_address="127.0.0.1",
        grpc_port=grpc_port,
        allow_metrics=False,
        **encrypted,
    )
    with Triton(config=config, workspace=Path.cwd() / "triton") as triton:
        triton.bind(
            model_name="digits",
            infer_func=infer,
            inputs=[tensor(node) for node in session.get_inputs()],
            outputs=[tensor(node) for node in session.get_outputs()],
            config=ModelConfig(max_batch_size=64),
        )
        triton.serve()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # a regular exit also ends Triton
    model, http_port, grpc_port, *tls = sys.argv[1:]
    serve(model, int(http_port), int(grpc_port), *tls)
