"""Images per second from real servers: gRPC, HTTP with binary tensors, HTTP with JSON.

    .ci/install-peers                          # once: Triton and MLServer
    python benchmarks/serving_speed.py         # about 5 minutes on two busy cores

64 float32 images of 224 x 224 pixels, as one request and as the four requests at once that are the
default. The model averages each colour, so that the time is that of the transport. All transports
take turns in one run; the median of the rounds is reported, and ratios to HTTP with JSON. Writes
results/serving_speed.json and the table of docs/how-to/open-inference.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pages import markdown, replace_tables
from soda_tta import load_box
from soda_tta.box import Box
from soda_tta.errors import BoxError
from soda_tta.types import Array

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "peers"))
from conftest import serving  # noqa: E402 - the tests know how to start the servers

OUT = ROOT / "results" / "serving_speed.json"
PAGE = ROOT / "docs" / "how-to" / "open-inference.md"
IMAGES = 64
SIZE = 224  # pixels, as ImageNet models take them
REQUESTS = (1, 4)  # at once: 64 images in one request, and 16 images in each of four
ROUNDS = {"gRPC": 11, "HTTP, binary": 11, "HTTP, JSON": 3}  # JSON is slow and steady
SERVERS = {"Triton": ("triton", "triton_server.py"), "MLServer": ("mlserver", "mlserver_model.py")}
LIMIT = 2**28  # bytes of a message that MLServer shall accept; its default is 4 MB
TIMEOUT = 300  # seconds, because of JSON


def mean_colours(folder: Path) -> Path:
    """An ONNX classifier of mean colours: hardly any work."""
    matrix = np.random.default_rng(0).normal(size=(3, 10)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["images"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["colours"]),
            helper.make_node("MatMul", ["colours", "matrix"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["probabilities"]),
        ],
        "colours",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(matrix, "matrix")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "colours.onnx")
    return folder / "colours.onnx"


def boxes(peer: Any, workers: int) -> dict[str, Box]:
    """The same model over every transport that the server speaks."""
    options: dict[str, Any] = {"workers": workers, "timeout": TIMEOUT, "retries": 0}
    spoken = {
        "gRPC": load_box(peer.grpc, **options),
        "HTTP, JSON": load_box(peer.http, binary=False, **options),
    }
    if load_box(peer.http).box.box.binary:
        spoken["HTTP, binary"] = load_box(peer.http, binary=True, **options)
    return {name: spoken[name] for name in ROUNDS if name in spoken}


def measure(spoken: dict[str, Box], images: Array, expected: Array) -> dict[str, Any]:
    """The median and the quartiles of the seconds of each transport; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in spoken}
    refused: dict[str, str] = {}
    for turn in range(-1, max(ROUNDS.values())):  # the first is not counted
        for name, box in spoken.items():
            if turn >= ROUNDS[name] or name in refused:
                continue
            start = time.perf_counter()
            try:
                rows = box(images)
            except BoxError as error:
                refused[name] = str(error)
                continue
            elapsed = time.perf_counter() - start
            np.testing.assert_allclose(rows, expected, atol=1e-6, rtol=0)
            if turn >= 0:
                seconds[name].append(elapsed)
    measured: dict[str, Any] = {}
    for name, times in seconds.items():
        if name in refused:
            measured[name] = {"refused": refused[name]}
            continue
        low, middle, high = statistics.quantiles(times, n=4)
        measured[name] = {
            "images_per_second": round(IMAGES / middle, 1),
            "quartiles": [round(IMAGES / high, 1), round(IMAGES / low, 1)],
            "rounds": len(times),
        }
    return measured


def table() -> str:
    """The stored results as a Markdown table: images per second, and times as fast as JSON."""
    results = json.loads(OUT.read_text())
    heads = [f"{count} request{'s' if count > 1 else ''} at once" for count in REQUESTS]
    lines = [["server", "transport", *heads]]
    for server in SERVERS:
        for transport in ROUNDS:
            cells = []
            for count in REQUESTS:
                measured = results[f"{server}, {count}"]
                slowest = measured["HTTP, JSON"].get("images_per_second")
                cells.append(cell(measured.get(transport, {}), slowest))
            if any(cells):
                lines.append([server, transport, *cells])
    return markdown(lines)


def cell(measured: dict[str, Any], slowest: float | None) -> str:
    """Images per second, and the ratio to JSON."""
    if "refused" in measured:
        return "refused"
    if not measured:
        return ""
    speed = measured["images_per_second"]
    ratio = f" ({rounded(speed / slowest)}x)" if slowest else ""
    return f"{rounded(speed)}{ratio}"


def rounded(value: float) -> str:
    """A number to the accuracy that such times have."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", action="store_true", help="only write the table again")
    if not parser.parse_args().table:
        OUT.write_text(json.dumps(run(), indent=1) + "\n")
    PAGE.write_text(replace_tables(PAGE.read_text(), {"serving speed": table()}))
    print(table())


def run() -> dict[str, Any]:
    """All cells, by server and number of requests at once."""
    os.environ["MLSERVER_GRPC_MAX_MESSAGE_LENGTH"] = str(LIMIT)
    pixels = np.random.default_rng(1).integers(0, 256, (IMAGES, 3, SIZE, SIZE))
    images = (pixels / 255).astype(np.float32)
    results = {}
    for server, (environment, script) in SERVERS.items():
        with tempfile.TemporaryDirectory() as folder:
            model = mean_colours(Path(folder))
            expected = load_box(model)(images)
            with serving(environment, script, model, Path(folder)) as peer:
                for count in REQUESTS:
                    name = f"{server}, {count}"
                    results[name] = measure(boxes(peer, count), images, expected)
                    print(name, results[name], flush=True)
    return results


if __name__ == "__main__":
    main()
