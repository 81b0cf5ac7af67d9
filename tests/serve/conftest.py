"""A real proxy on the loopback interface, in front of a real model that is served the same way."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from soda_tta.adaptors import PLAIN, Answering
from soda_tta.box import load_box
from soda_tta.protocols.open_inference import (
    RequestedOutput,
    Tensor,
    decode_response,
    encode_request,
)
from soda_tta.serve.answers import Answers
from soda_tta.serve.live import FixedAdaptor
from soda_tta.serve.local import LocalModel
from soda_tta.serve.logs import Log
from soda_tta.serve.pixels import Pixels
from soda_tta.serve.proxy import Proxy
from soda_tta.serve.server import Listening, Running
from soda_tta.serve.upstream import HttpUpstream

FACTS = '{"mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}'
PATH = "/v2/models/tiny/infer"
PATIENCE = 30.0  # seconds for what takes milliseconds on an idle machine


class Darker:
    """Halves the pixels of bright images, and remembers what it gets."""

    def __init__(self) -> None:
        self.keys: list[str | None] = []
        self.arrivals: list[tuple[Any, Any, str | None]] = []
        self.origins: list[tuple[Any, str]] = []
        self.got = threading.Event()
        self.saved = 0
        self.fails = False

    def adapted(self, images: Any, key: str | None = None) -> tuple[Any, Any]:
        self.keys.append(key)
        if self.fails:
            raise RuntimeError("a bug of the adaptor")
        bright = images.mean(axis=(1, 2, 3)) > 0.5
        changed = images.copy()
        changed[bright] /= 2
        return changed, SimpleNamespace(familiar=bright)

    def answering(self, key: str | None = None) -> Answering:
        return PLAIN

    def arrived(
        self, images: Any, answers: Any, key: str | None, *, routes: Any, client: str
    ) -> None:
        self.arrivals.append((images, answers, key))
        self.origins.append((routes, client))
        self.got.set()

    def learn(self) -> bool:
        return False

    def facts(self) -> dict[str, Any]:
        return {"learning": True, "kept": len(self.arrivals)}

    def save(self) -> None:
        self.saved += 1


@dataclass
class Served:
    """A proxy that listens, and a client of it."""

    proxy: Proxy
    running: Running
    lines: list[str]

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def url(self) -> str:
        return self.running.url

    def ask(
        self, verb: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(verb, path, body or None, headers or {})
            response = connection.getresponse()
            lower = {name.lower(): value for name, value in response.headers.items()}
            return response.status, lower, response.read()
        finally:
            connection.close()

    def infer(self, tensor: Any, *, binary: bool = True, **headers: str) -> Any:
        """The probabilities of a tensor."""
        body, own = message(tensor, binary=binary)
        status, received, content = self.ask("POST", PATH, body, {**own, **headers})
        assert status == 200, content
        return decode_response(content, received)["probabilities"]

    def count(self, name: str) -> float:
        return self.proxy.metrics.totals().get(name, 0)


def message(tensor: Any, *, binary: bool = True, **more: Any) -> tuple[bytes, dict[str, str]]:
    wanted = [RequestedOutput("probabilities", binary)]
    return encode_request([Tensor("images", tensor)], wanted, binary=binary, **more)


def error_of(content: bytes) -> str:
    """The reason of an error, which has the shape of the protocol."""
    return str(json.loads(content)["error"])


def wait_for(condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait until something holds; on a busy machine it may take a while."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


@contextmanager
def listening(proxy: Proxy, place: Listening | None = None, grpc: Any = None) -> Iterator[Running]:
    """Run a proxy in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE)

    async def start() -> Running:
        running = Running(proxy, place or Listening(port=0, grpc_port=0), grpc)
        await running.start()
        return running

    running = wait(start())
    try:
        yield running
    finally:
        if not proxy.draining:
            wait(running.drain())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


Start = Callable[..., Served]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts proxies for a test: `start(upstream, live, **options)`."""
    with ExitStack() as stack:

        def started(upstream: Any, live: Any = None, *, box: Any = None, **options: Any) -> Served:
            place = options.pop("place", None)
            limits = options.pop("limits", None)
            grpc = options.pop("grpc", None)
            lines: list[str] = []
            proxy = Proxy(upstream, log=Log(lines.append), **options)
            if limits is not None:
                proxy.set_limits(limits)
            if box is not None:
                pixels = Pixels("images", box.input)
                proxy.begin(pixels, live or FixedAdaptor(), Answers(box, "probabilities"))
            running = stack.enter_context(listening(proxy, place, grpc))
            return Served(proxy, running, lines)

        yield started


@pytest.fixture
def model_box(tiny_onnx: Any) -> Any:
    return load_box(str(tiny_onnx(facts=FACTS)))


@pytest.fixture
def direct(start: Start, model_box: Any) -> Served:
    """The model, served as it is."""
    return start(LocalModel(model_box, "tiny"))


@pytest.fixture
def proxied(start: Start, direct: Served, model_box: Any) -> Callable[..., Served]:
    """Starts a proxy in front of the model: `proxied(live, **options)`."""

    def started(live: Any = None, *, timeout: float = PATIENCE, **options: Any) -> Served:
        upstream = HttpUpstream(direct.url, timeout=timeout)
        return start(upstream, live, box=model_box, **options)

    return started


@pytest.fixture
def tensor(images: Any) -> Any:
    """Four images as a client prepares them: two dark, two bright."""
    dark = images[:2] * np.float32(0.4)
    bright = 1 - images[2:4] * np.float32(0.4)
    return ((np.concatenate([dark, bright]) - 0.5) / 0.25).astype(np.float32)


Reply = tuple[int, dict[str, str], bytes]


class Scripted:
    """A server whose replies are a test's: the next of `replies`, or 200 with `{}`."""

    def __init__(self) -> None:
        self.replies: list[Reply | Callable[[Any], None]] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        state = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                state.requests.append((self.path, dict(self.headers), body))
                reply = state.replies.pop(0) if state.replies else (200, {}, b"{}")
                if callable(reply):
                    reply(self)
                    return
                status, headers, content = reply
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v2/models/tiny"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    server = Scripted()
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def behind(start: Any, scripted: Scripted, model_box: Any) -> Callable[..., Any]:
    """Starts a proxy in front of the scripted server."""

    def started(live: Any = None, *, timeout: float = PATIENCE, **options: Any) -> Any:
        upstream = HttpUpstream(scripted.url, timeout=timeout, most=10_000)
        return start(upstream, live, box=model_box, **options)

    return started
