"""A model server that counts what it computes and fails in every way a network can."""

from __future__ import annotations

import gzip
import json
import math
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from soda_tta.box import Retrying
from soda_tta.types import Array

WEIGHTS = 8 * np.random.default_rng(7).normal(size=(3, 4))


def probabilities(images: Array) -> Array:
    """What the model answers."""
    logits = (images.astype(np.float64).mean(axis=(2, 3)) - 0.5) @ WEIGHTS
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (exponents / exponents.sum(axis=1, keepdims=True)).astype(np.float32)


class FaultyServer:
    """Speaks the Open Inference Protocol with binary tensors.

    `faults` are the names of methods of `Handler`, one per inference from the first; None is a
    correct response. `computed` counts the images that a vendor would bill, and `requests` lists
    the images of each inference. Every inference takes `delay` seconds, one after the other; the
    server is dead after the inference number `dies_after`, and overloaded while `flaps` is True.
    """

    def __init__(self, place: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.faults: list[str | None] = []
        self.computed = 0
        self.requests: list[int] = []
        self.echoes_id = True
        self.delay = 0.0
        self.dies_after = math.inf
        self.flaps = False
        self.version = "1"
        self.turn = threading.Lock()
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()
        self.closing = threading.Event()
        bound = type("Bound", (Handler,), {"state": self})
        self.http = ThreadingHTTPServer(place, bound)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v2/models/tiny"
        self.thread = threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    def __enter__(self) -> FaultyServer:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()

    def die(self) -> None:
        """Refuse new connections."""
        self.http.shutdown()
        self.http.server_close()

    def misbehave(self, seed: int, requests: int, share: float) -> None:
        """Plan random faults for the next requests."""
        generator = random.Random(seed)
        self.faults = [
            generator.choice(PASSING) if generator.random() < share else None
            for _ in range(requests)
        ]


class Handler(BaseHTTPRequestHandler):
    state: FaultyServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it would add 40 ms to every response

    def do_GET(self) -> None:
        image = {"name": "x", "datatype": "FP32", "shape": [-1, 3, 8, 8]}
        output = {"name": "p", "datatype": "FP32", "shape": [-1, 4]}
        model = {
            "name": "tiny",
            "versions": [self.state.version],
            "inputs": [image],
            "outputs": [output],
        }
        server = {"name": "faulty", "version": "1", "extensions": ["binary_tensor_data"]}
        self.reply(json.dumps(server if self.path == "/v2" else model).encode())

    def do_POST(self) -> None:
        state = self.state
        body = self.rfile.read(int(self.headers["Content-Length"]))
        length = int(self.headers["Inference-Header-Content-Length"])
        request = json.loads(body[:length])
        shape = request["inputs"][0]["shape"]
        with state.lock:
            state.requests.append(shape[0])
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            fault = state.faults.pop(0) if state.faults else None
            is_dead = len(state.requests) > state.dies_after
        if is_dead:
            state.die()
            self.hang_up()
            return
        if state.delay:
            with state.turn:
                state.closing.wait(state.delay)
        if state.flaps:
            fault = "unavailable"
        if fault in DECLINED:
            getattr(self, fault)(b"", {})
            return
        rows = probabilities(np.frombuffer(body[length:], "<f4").reshape(shape))
        with state.lock:
            state.computed += len(rows)
        answer, headers = self.answer(request.get("id"), rows)
        if fault is None:
            self.reply(answer, headers)
        else:
            getattr(self, fault)(answer, headers)

    def answer(self, id: str | None, rows: Array) -> tuple[bytes, dict[str, str]]:
        raw = rows.astype("<f4").tobytes()
        output = {"name": "p", "datatype": "FP32", "shape": list(rows.shape)}
        message: dict[str, Any] = {
            "outputs": [{**output, "parameters": {"binary_data_size": len(raw)}}]
        }
        if id is not None and self.state.echoes_id:
            message["id"] = id
        header = json.dumps(message).encode()
        return header + raw, {"Inference-Header-Content-Length": str(len(header))}

    def reply(self, body: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    # -- faults that pass ------------------------------------------------------------------------

    def too_many_requests(self, answer: bytes, headers: dict[str, str]) -> None:
        self.reply(b'{"error": "slow down"}', {"Retry-After": "2"}, 429)

    def unavailable(self, answer: bytes, headers: dict[str, str]) -> None:
        self.reply(b'{"error": "overloaded"}', status=503)

    def silent(self, answer: bytes, headers: dict[str, str]) -> None:
        """Close the connection without a response."""
        self.hang_up()

    def cut(self, answer: bytes, headers: dict[str, str]) -> None:
        """Close the connection in the middle of the response."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[: len(answer) // 2])
        self.hang_up()

    def answer_of_another(self, answer: bytes, headers: dict[str, str]) -> None:
        """The response to an earlier request, as after a duplicated one."""
        other, headers = self.answer("another", np.full((1, 4), 0.25, np.float32))
        self.reply(other, headers)

    def twice(self, answer: bytes, headers: dict[str, str]) -> None:
        """The response, and once more: it is waiting when the next request is sent."""
        self.reply(answer, headers)
        self.reply(answer, headers)

    # -- faults that do not ----------------------------------------------------------------------

    def trickle(self, answer: bytes, headers: dict[str, str]) -> None:
        """One byte now and then, for ever."""
        self.send_response(200)
        self.send_header("Content-Length", str(10**6))
        self.end_headers()
        while not self.state.closing.wait(0.05):
            self.wfile.write(b" ")

    def trickling_headers(self, answer: bytes, headers: dict[str, str]) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Padding: ")
        while not self.state.closing.wait(0.05):
            self.wfile.write(b"x")

    def endless(self, answer: bytes, headers: dict[str, str]) -> None:
        """A body without an end."""
        self.send_response(200)
        self.send_header("Content-Length", str(10**12))
        self.end_headers()
        while not self.state.closing.is_set():
            self.wfile.write(b" " * 2**16)

    def bomb(self, answer: bytes, headers: dict[str, str]) -> None:
        """A small body that decodes to a large one."""
        self.reply(gzip.compress(bytes(2**24)), {"Content-Encoding": "gzip"})

    def hang_up(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:  # the client has closed the connection
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


DECLINED = ("too_many_requests",)  # nothing is computed
PASSING = ["too_many_requests", "unavailable", "silent", "cut", "answer_of_another", "twice"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")  # a developer may have a proxy
    with FaultyServer() as running:
        yield running


@pytest.fixture
def more_servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., FaultyServer]]:
    """Starts a server, at some place."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,pool.test")
    with ExitStack() as running:
        yield lambda *place: running.enter_context(FaultyServer(*place))


@pytest.fixture
def servers(more_servers: Callable[..., FaultyServer]) -> list[FaultyServer]:
    """Four servers of one model."""
    return [more_servers() for _ in range(4)]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits before every retry, in seconds; none of them takes any time."""
    waits: list[float] = []
    monkeypatch.setitem(Retrying.__init__.__kwdefaults__, "sleep", waits.append)
    return waits


@pytest.fixture
def images() -> Array:
    """120 images of little contrast, each with its own colour."""
    generator = np.random.default_rng(3)
    colours = generator.random((120, 3, 1, 1)) + 0.2 * generator.standard_normal((120, 3, 8, 8))
    return np.clip(0.4 + 0.2 * colours, 0, 1).astype(np.float32)


@pytest.fixture
def expected(images: Array) -> Array:
    return probabilities(images)
