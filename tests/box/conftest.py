"""A model server in this process that can be made to misbehave."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta.box import Retrying

MATRIX = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
DTYPES = {"FP32": "<f4", "FP16": "<f2", "FP64": "<f8", "UINT8": "u1"}


class Server:
    """`softmax(mean colour @ matrix)` over the Open Inference Protocol.

    Each entry of `faults` spoils one inference: it is called with the handler and the correct
    response, and sends a reply of its own. `asked` lists the number of images of each inference,
    `headers` the headers of each request, and `pages` replaces replies to GET, by path.
    """

    matrix = MATRIX

    def __init__(self, scheme: str = "http", context: ssl.SSLContext | None = None) -> None:
        self.binary = False
        self.key: dict[str, str] = {}
        self.datatype = "FP32"
        self.shape = [-1, 3, 8, 8]
        self.outputs = ["probabilities"]
        self.faults: list[Callable[[Handler, Any], None]] = []
        self.asked: list[int] = []
        self.headers: list[dict[str, str]] = []
        self.pages: dict[str, Any] = {}
        self.lock = threading.Lock()
        self.closing = threading.Event()
        self.http = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Bound", (Handler,), {"server_state": self})
        )
        self.http.daemon_threads = True
        if context is not None:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.root = f"{scheme}://127.0.0.1:{self.http.server_port}"
        self.url = f"{self.root}/v2/models/tiny"
        self.thread = threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    def __enter__(self) -> Server:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()

    def expected(self, images: Any) -> Any:
        """What a correct client returns for these images."""
        return self.infer(images)["probabilities"]

    def infer(self, tensor: Any) -> dict[str, Any]:
        scores = tensor.astype(np.float64).mean((2, 3)) @ MATRIX
        exponents = np.exp(scores - scores.max(1, keepdims=True))
        return {"logits": scores, "probabilities": exponents / exponents.sum(1, keepdims=True)}


class Handler(BaseHTTPRequestHandler):
    server_state: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        state = self.server_state
        if not self.admitted():
            return
        described = {"name": "images", "datatype": state.datatype, "shape": state.shape}
        outputs = [{"name": name, "datatype": "FP32", "shape": [-1, 4]} for name in state.outputs]
        extensions = ["binary_tensor_data"] if state.binary else []
        pages = {
            "/v2": {"name": "test", "version": "1", "extensions": extensions},
            "/v2/models/tiny": {
                "name": "tiny",
                "versions": ["1", "2"],
                "inputs": [described],
                "outputs": outputs,
            },
        }
        page = (pages | state.pages).get(self.path)
        if callable(page):
            page(self)
        elif page is None:
            self.reply({"error": f"unknown: {self.path}"}, status=404)
        else:
            self.reply(page)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.admitted():
            return
        state = self.server_state
        split = self.headers.get("Inference-Header-Content-Length")
        request = json.loads(body if split is None else body[: int(split)])
        (sent,) = request["inputs"]
        (wanted,) = request["outputs"]
        dtype = DTYPES[sent["datatype"]]
        raw = sent["data"] if split is None else np.frombuffer(body[int(split) :], dtype)
        tensor = np.array(raw, dtype).reshape(sent["shape"])
        assert sent["name"] == "images" and sent["datatype"] == state.datatype
        with state.lock:
            state.asked.append(len(tensor))
            fault = state.faults.pop(0) if state.faults else None
        rows = state.infer(tensor)[wanted["name"]]
        output = {"name": wanted["name"], "datatype": "FP32", "shape": list(rows.shape)}
        if fault is not None:
            fault(self, {"outputs": [{**output, "data": rows.ravel().tolist()}]})
        elif wanted.get("parameters", {}).get("binary_data"):
            tail = rows.astype("<f4").tobytes()
            header = json.dumps(
                {"outputs": [{**output, "parameters": {"binary_data_size": len(tail)}}]}
            ).encode()
            self.reply(header + tail, {"Inference-Header-Content-Length": str(len(header))})
        else:
            self.reply({"outputs": [{**output, "data": rows.ravel().tolist()}]})

    def admitted(self) -> bool:
        state = self.server_state
        with state.lock:
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
        if all(self.headers.get(name) == value for name, value in state.key.items()):
            return True
        self.reply({"error": "unauthorized"}, status=401)
        return False

    def reply(self, body: Any, headers: dict[str, str] | None = None, status: int = 200) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits before every retry, in seconds; none of them takes any time."""
    waits: list[float] = []
    monkeypatch.setitem(Retrying.__init__.__kwdefaults__, "sleep", waits.append)
    return waits


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")  # a developer may have a proxy
    with Server() as running:
        yield running


@pytest.fixture
def tls_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Server, Path]]:
    """A server with a certificate of its own authority, and the PEM file of that authority."""
    import trustme

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    with Server("https", context) as running:
        yield running, tmp_path / "authority.pem"
