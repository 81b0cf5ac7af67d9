"""Many servers of one model, and a server that is far away: what is left of their throughput.

    python benchmarks/pool.py                  # about 2 minutes
    python benchmarks/pool.py --table          # only write the table again

Servers are processes on this machine. Their model only averages colours; a request takes a fixed
time, so that the result is that of the client and not of the processor. The servers of the pool
compute one request at a time, 20 ms each; the far one takes 50 ms for any number at once. All cases
are ratios within one run. Writes results/pool.json and the table of docs/research/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from pages import markdown, replace_tables
from soda_tta import adapt, load_box
from soda_tta.box import Box
from soda_tta.protocols.open_inference import (
    BINARY_EXTENSION,
    ModelMetadata,
    Tensor,
    TensorMetadata,
    decode_request,
    encode_metadata,
    encode_response,
)
from soda_tta.types import Array

ROOT = Path(__file__).parents[1]
OUT = ROOT / "results" / "pool.json"
PAGE = ROOT / "docs" / "research" / "performance.md"
SIZE = 32  # pixels
SERVERS = 4
POOL_SECONDS = 0.02  # of one request, one after the other
SLOW_SECONDS = 0.2  # ten times as long
REQUEST = 8  # images
STEP = 32  # requests that are waited for together, as in a step of a search
STEPS = 12
FAR_SECONDS = 0.05  # of one request, any number at once
WORKERS = 8
REQUEST_SIZES = (1, 8)  # images; under a budget, 64 images are in flight at most
IMAGES = 200  # of the runs
BUDGET = 20  # queries per image
PLAIN = 4  # passes over the images without a run, for comparison
WEIGHTS = 8 * np.random.default_rng(7).normal(size=(3, 4))


# -- a server ------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """The model over the Open Inference Protocol, with binary tensors."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it would add 40 ms to every response
    seconds: float
    turn: Any  # held while computing, if requests are computed one after the other

    def do_GET(self) -> None:
        image = TensorMetadata("images", "FP32", (-1, 3, SIZE, SIZE))
        scores = TensorMetadata("probabilities", "FP32", (-1, 4))
        model = encode_metadata(ModelMetadata("colours", (image,), (scores,), ("1",)))
        server = {"name": "pool", "version": "1", "extensions": [BINARY_EXTENSION]}
        self.reply(json.dumps(server if self.path == "/v2" else model).encode(), {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = decode_request(body, headers)
        with self.turn:
            time.sleep(self.seconds)
        rows = probabilities(request.inputs[0].array)
        self.reply(
            *encode_response(
                [Tensor("probabilities", rows)],
                model_name="colours",
                id=request.id,
                binary=["probabilities"],
            )
        )

    def reply(self, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def probabilities(images: Array) -> Array:
    """What the model answers."""
    logits = (images.mean(axis=(2, 3)) - 0.5) @ WEIGHTS
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    rows: Array = (exponents / exponents.sum(axis=1, keepdims=True)).astype(np.float32)
    return rows


def serve(seconds: float, in_turn: bool) -> None:
    """Serve until killed; prints the port."""
    turn = threading.Lock() if in_turn else ExitStack()
    bound = type("Bound", (Handler,), {"seconds": seconds, "turn": turn})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


class Server:
    """A server in a process of its own."""

    def __init__(self, seconds: float, *, in_turn: bool) -> None:
        words = [sys.executable, __file__, "--serve", str(seconds)]
        self.process = subprocess.Popen(
            words + ["--in-turn"] * in_turn,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{port}/v2/models/colours"

    def kill(self) -> None:
        """Kill it, as a crash does."""
        self.process.kill()
        self.process.wait()


@contextmanager
def pool(*seconds: float) -> Iterator[tuple[list[Server], Box]]:
    """Servers that take so many seconds per request, and the box of all of them."""
    with ExitStack() as running:
        servers = [Server(each, in_turn=True) for each in seconds]
        for server in servers:
            running.callback(server.kill)
        yield servers, load_box(",".join(server.url for server in servers), batch=REQUEST)


# -- the cases -----------------------------------------------------------------------------------


def requests_per_second(box: Box, during: Callable[[int], None] = lambda step: None) -> float:
    """Requests per second over all steps, each of which waits for all of its responses."""
    images = np.random.default_rng(0).random((STEP * REQUEST, 3, SIZE, SIZE), np.float32)
    expected = probabilities(images)
    box(images)  # connections are open, and speeds are known
    began = time.perf_counter()
    for step in range(STEPS):
        during(step)
        np.testing.assert_allclose(box(images), expected, atol=1e-6)
    return STEPS * STEP / (time.perf_counter() - began)


def pools() -> dict[str, float]:
    """Requests per second of one server, of four, and of four one of which is bad."""
    speeds = {}
    fast = [POOL_SECONDS] * SERVERS
    with pool(POOL_SECONDS) as (_, box):
        speeds["1 server"] = requests_per_second(box)
    with pool(*fast) as (_, box):
        speeds["4 servers"] = requests_per_second(box)
    with pool(*fast) as (servers, box):
        servers[0].kill()
        speeds["4 servers, one dead"] = requests_per_second(box)
    with pool(*fast) as (servers, box):
        kill = lambda step: servers[0].kill() if step == STEPS // 2 else None  # noqa: E731
        speeds["4 servers, one killed in the middle"] = requests_per_second(box, kill)
    with pool(SLOW_SECONDS, *fast[1:]) as (_, box):
        speeds["4 servers, one 10 times as slow"] = requests_per_second(box)
    return {name: round(speed, 1) for name, speed in speeds.items()}


def far(request_size: int) -> dict[str, float]:
    """A run of `adapt` against the far server: wall time, and the least that latency allows.

    The least is requests x latency / concurrency. Plain queries without a run need more, too: what
    HTTP and the processor add.
    """
    images = np.random.default_rng(1).random((IMAGES, 3, 1, 1)) * np.ones((1, 1, SIZE, SIZE))
    noise = 0.1 * np.random.default_rng(2).standard_normal((IMAGES, 3, SIZE, SIZE))
    photos = np.clip(0.4 + 0.2 * images + noise, 0, 1).astype(np.float32)
    server = Server(FAR_SECONDS, in_turn=False)
    try:
        box = load_box(server.url, workers=WORKERS, batch=request_size)
        with tempfile.TemporaryDirectory() as folder:
            adapt(photos, probabilities, budget=BUDGET)  # libraries are loaded
            began = time.perf_counter()
            run = adapt(photos, box, budget=BUDGET, out=Path(folder) / "run")
            seconds = time.perf_counter() - began
        began = time.perf_counter()
        box(np.concatenate([photos] * PLAIN))
        plain = time.perf_counter() - began
    finally:
        server.kill()
    least = run.ledger.calls * FAR_SECONDS / WORKERS
    return {
        "queries": run.ledger.total,
        "requests": run.ledger.calls,
        "seconds": round(seconds, 2),
        "ratio": round(seconds / least, 3),
        "plain_ratio": round(plain / (box.requests(PLAIN * IMAGES) * FAR_SECONDS / WORKERS), 3),
    }


# -- the page ------------------------------------------------------------------------------------


def table(results: dict[str, Any]) -> str:
    """The stored results as Markdown tables."""
    speeds = results["pools"]
    one = speeds["1 server"]
    rows = [["pool", "requests per second", "times one server"]]
    rows += [[name, f"{speed:.0f}", f"{speed / one:.2f}"] for name, speed in speeds.items()]
    heads = ["queries", "requests", "seconds", "times the least", "plain queries"]
    runs = [["images per request", *heads]]
    for size, run in results["far"].items():
        cells = [f"{run['queries']:,}", f"{run['requests']:,}", f"{run['seconds']:.1f}"]
        runs.append([size, *cells, f"{run['ratio']:.2f}", f"{run['plain_ratio']:.2f}"])
    return f"{markdown(rows)}\n\n{markdown(runs)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="only write the table again")
    parser.add_argument("--serve", type=float, metavar="SECONDS", help="be one of the servers")
    parser.add_argument("--in-turn", action="store_true", help="with --serve: one at a time")
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.in_turn)
        return
    if not options.table:
        results = {"pools": pools(), "far": {str(size): far(size) for size in REQUEST_SIZES}}
        OUT.write_text(json.dumps(results, indent=1) + "\n")
    text = table(json.loads(OUT.read_text()))
    PAGE.write_text(replace_tables(PAGE.read_text(), {"pool": text}))
    print(text)


if __name__ == "__main__":
    main()
