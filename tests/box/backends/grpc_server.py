"""A model server over gRPC in this process, with the real library on both sides of the wire."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta.box.backends.grpc_client import libraries

grpc, messages = libraries()
from tritonclient.grpc import service_pb2_grpc as stubs  # noqa: E402 - after the quiet import above

MATRIX = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
DTYPES = {"FP32": "<f4", "FP16": "<f2", "UINT8": "u1"}


class GrpcServer(stubs.GRPCInferenceServiceServicer):
    """`softmax(mean colour @ matrix)` over the Open Inference Protocol.

    Each entry of `faults` spoils one inference: it is called with the context of the call and the
    correct response, and returns the response to send. `asked` lists the number of images of each
    inference, `headers` the metadata of each call.
    """

    matrix = MATRIX

    def __init__(self, credentials: Any = None, port: int = 0) -> None:
        self.typed = False  # answer with typed contents, as some servers do
        self.key: dict[str, str] = {}
        self.datatype = "FP32"
        self.shape = [-1, 3, 8, 8]
        self.outputs = {"probabilities": ("FP32", [-1, 4])}
        self.faults: list[Callable[[Any, Any], Any]] = []
        self.asked: list[int] = []
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.pool = ThreadPoolExecutor(8)
        self.server = grpc.server(self.pool)
        stubs.add_GRPCInferenceServiceServicer_to_server(self, self.server)
        if credentials is None:
            self.port = self.server.add_insecure_port(f"127.0.0.1:{port}")
        else:
            self.port = self.server.add_secure_port(f"127.0.0.1:{port}", credentials)
        scheme = "grpc" if credentials is None else "grpcs"
        self.root = f"{scheme}://127.0.0.1:{self.port}"
        self.url = f"{self.root}/tiny"

    def __enter__(self) -> GrpcServer:
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.server.stop(0).wait()
        self.pool.shutdown()

    def expected(self, images: Any) -> Any:
        """What a correct client returns for these images."""
        scores = images.astype(np.float64).mean((2, 3)) @ MATRIX
        exponents = np.exp(scores - scores.max(1, keepdims=True))
        return exponents / exponents.sum(1, keepdims=True)

    def admit(self, context: Any) -> None:
        received = dict(context.invocation_metadata())
        with self.lock:
            self.headers.append(received)
        if any(received.get(name) != value for name, value in self.key.items()):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "unauthorized")

    def ModelMetadata(self, request: Any, context: Any) -> Any:
        self.admit(context)
        if request.name != "tiny":
            context.abort(grpc.StatusCode.NOT_FOUND, f"unknown: {request.name}")
        tensor = messages.ModelMetadataResponse.TensorMetadata
        return messages.ModelMetadataResponse(
            name="tiny",
            versions=[request.version] if request.version else ["1", "2"],
            inputs=[tensor(name="images", datatype=self.datatype, shape=self.shape)],
            outputs=[
                tensor(name=name, datatype=datatype, shape=shape)
                for name, (datatype, shape) in self.outputs.items()
            ],
        )

    def ModelInfer(self, request: Any, context: Any) -> Any:
        self.admit(context)
        (sent,) = request.inputs
        (raw,) = request.raw_input_contents
        assert (request.model_name, sent.name, sent.datatype) == ("tiny", "images", self.datatype)
        tensor = np.frombuffer(raw, DTYPES[sent.datatype]).reshape(list(sent.shape))
        with self.lock:
            self.asked.append(len(tensor))
            self.requests.append(request)
            fault = self.faults.pop(0) if self.faults else None
        rows = self.expected(tensor).astype("<f4")
        response = messages.ModelInferResponse(model_name="tiny", id=request.id)
        output = response.outputs.add(
            name=request.outputs[0].name, datatype="FP32", shape=rows.shape
        )
        if self.typed:
            output.contents.fp32_contents.extend(rows.ravel().tolist())
        else:
            response.raw_output_contents.append(rows.tobytes())
        return response if fault is None else fault(context, response)


def failing(code: str, details: str = "too many requests", **trailing: str) -> Any:
    """A fault: the call ends with this status."""

    def fault(context: Any, response: Any) -> None:
        context.set_trailing_metadata(
            [(name.replace("_", "-"), value) for name, value in trailing.items()]
        )
        context.abort(grpc.StatusCode[code], details)

    return fault


@pytest.fixture(name="failing")
def failing_fixture() -> Any:
    return failing


@pytest.fixture
def grpc_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[GrpcServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # a developer may have a proxy
    with GrpcServer() as running:
        yield running


@pytest.fixture
def tls_grpc_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[tuple[GrpcServer, Path]]:
    """A server with a certificate of its own authority, and the PEM file of that authority."""
    import trustme

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    authority = trustme.CA()
    own = authority.issue_cert("127.0.0.1")
    chain = b"".join(each.bytes() for each in own.cert_chain_pems)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    with GrpcServer(grpc.ssl_server_credentials([(own.private_key_pem.bytes(), chain)])) as running:
        yield running, tmp_path / "authority.pem"
