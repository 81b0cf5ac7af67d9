"""Starts the inference servers that users have, for the tests of our client. Needs .ci/install-peers to have run."""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

SERVERS = Path(__file__).parent / "servers"
ROOT = Path(__file__).parents[2]
PATIENCE = 90  # seconds until ready; a few on an idle machine


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "peers: talks to a third-party server installed by .ci/install-peers"
    )


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX classifier of (n, 3, 16, 16) images into 10 classes, with random weights that are always the same."""
    random = np.random.default_rng(0)
    weights = {
        "filters": random.normal(size=(8, 3, 3, 3)).astype(np.float32),
        "matrix": random.normal(size=(8, 10)).astype(np.float32),
        "bias": random.normal(size=10).astype(np.float32),
    }
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["images", "filters"], ["features"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["features"], ["active"]),
            helper.make_node("GlobalAveragePool", ["active"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["flat"]),
            helper.make_node("Gemm", ["flat", "matrix", "bias"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["probabilities"]),
        ],
        "digits",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, 16, 16])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    # old numbers on purpose: the servers' ONNX Runtime may be older than our onnx
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path = tmp_path_factory.mktemp("model") / "digits.onnx"
    onnx.save(model, path)
    return path


@pytest.fixture(scope="session")
def triton_url(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The small model in a Triton: JSON and binary tensors."""
    with serving(
        "triton", "triton_server.py", small_model, tmp_path_factory.mktemp("triton")
    ) as url:
        yield url


@pytest.fixture(scope="session")
def mlserver_url(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The small model in an MLServer: JSON only."""
    with serving(
        "mlserver", "mlserver_model.py", small_model, tmp_path_factory.mktemp("mlserver")
    ) as url:
        yield url


@contextmanager
def serving(peer: str, script: str, model: Path, folder: Path) -> Iterator[str]:
    """Runs one server in `folder`, and ends it with everything it started."""
    environment = ROOT / f".venv-{peer}"
    if not (environment / "complete").exists():
        pytest.skip(f"{environment.name} is absent or half installed: run .ci/install-peers")
    port, log = free_port(), folder / "log.txt"
    command: list[str | Path] = [environment / "bin" / "python", SERVERS / script, model, str(port)]
    quiet = os.environ | {
        "ORT_DISABLE_TELEMETRY": "1"
    }  # else ONNX Runtime writes under the home directory
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=quiet,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}/v2/models/digits"
        wait_until_ready(f"{url}/ready", server, log)
        yield url
    finally:
        end_group(server)


def wait_until_ready(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        with (
            suppress(OSError),
            urllib.request.urlopen(url, timeout=5) as answer,
        ):  # refused, reset or an HTTP error
            if answer.status == 200:
                return
        time.sleep(0.1)
    state = (
        f"did not answer {url} in {PATIENCE} s"
        if server.poll() is None
        else f"exited with {server.returncode}"
    )
    pytest.fail(
        f"the server {state}; the end of its log:\n{log.read_text(errors='replace')[-3000:]}"
    )


def end_group(server: subprocess.Popen[bytes], grace: float = 10) -> None:
    """Asks the server to end, then kills whatever is left of its process group."""
    server.terminate()
    with suppress(subprocess.TimeoutExpired):
        server.wait(grace)
    with suppress(ProcessLookupError):  # nothing is left
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
