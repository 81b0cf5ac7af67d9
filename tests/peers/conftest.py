"""Start third-party inference servers for the tests of our client; see .ci/install-peers."""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from soda_tta.zoo.digits import hazy_digits

SERVERS = Path(__file__).parent / "servers"
ROOT = Path(__file__).parents[2]
STARTUP_LIMIT = 90  # seconds until a server is ready; a few on an idle machine


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX classifier of (n, 3, 16, 16) images into 10 classes, with fixed random weights."""
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
    # old versions on purpose: the ONNX Runtime of the servers may be older than our onnx
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path = tmp_path_factory.mktemp("model") / "digits.onnx"
    onnx.save(model, path)
    return path


@dataclass(frozen=True)
class Peer:
    """A server with the small model: its address over HTTP, and that over gRPC."""

    http: str
    grpc: str


@pytest.fixture(scope="session")
def triton(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with serving(
        "triton", "triton_server.py", small_model, tmp_path_factory.mktemp("triton")
    ) as peer:
        yield peer


@pytest.fixture(scope="session")
def mlserver(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with serving(
        "mlserver", "mlserver_model.py", small_model, tmp_path_factory.mktemp("mlserver")
    ) as peer:
        yield peer


@pytest.fixture(scope="session")
def triton_url(triton: Peer) -> str:
    """The small model in Triton: JSON and binary tensors."""
    return triton.http


@pytest.fixture(scope="session")
def mlserver_url(mlserver: Peer) -> str:
    """The small model in MLServer: JSON only."""
    return mlserver.http


@pytest.fixture(scope="session")
def triton_grpc_url(triton: Peer) -> str:
    """The small model in Triton over gRPC."""
    return triton.grpc


@pytest.fixture(scope="session")
def mlserver_grpc_url(mlserver: Peer) -> str:
    """The small model in MLServer over gRPC."""
    return mlserver.grpc


@pytest.fixture
def encrypted_triton(
    small_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """Triton over gRPC with TLS, and the PEM file of the authority to trust."""
    import trustme

    folder = tmp_path_factory.mktemp("encrypted")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    own = authority.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(str(folder / "key.pem"))
    for each in own.cert_chain_pems:
        each.write_to_path(str(folder / "certificate.pem"), append=True)
    files = (folder / "certificate.pem", folder / "key.pem")
    with serving("triton", "triton_server.py", small_model, folder, *files) as peer:
        yield peer.grpc.replace("grpc", "grpcs"), folder / "authority.pem"


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """The model of the demo, and its hazy images as float32."""
    model, images = hazy_digits(tmp_path_factory.mktemp("digits"))
    return model, np.load(images).astype(np.float32) / np.float32(255)


@pytest.fixture(scope="session")
def litserve_url(digits: tuple, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The digits in LitServe: base64 in JSON."""
    folder = tmp_path_factory.mktemp("litserve")
    model = digits[0]
    with serving("litserve", "litserve_server.py", model, folder, path="", ready="/health") as peer:
        yield peer.http


@pytest.fixture(scope="session")
def bentoml_url(digits: tuple, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The digits in BentoML: image files."""
    folder = tmp_path_factory.mktemp("bentoml")
    model = digits[0]
    with serving("bentoml", "bentoml_server.py", model, folder, path="", ready="/readyz") as peer:
        yield peer.http


@pytest.fixture(scope="session")
def moto_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3 server in memory."""
    folder = tmp_path_factory.mktemp("moto")
    with serving("moto", "moto_server.py", folder, folder, path="", ready="/moto-api/") as peer:
        yield peer.http


@contextmanager
def serving(
    peer: str,
    script: str,
    model: Path,
    folder: Path,
    *more: Path,
    path: str = "/v2/models/digits",
    ready: str = "/ready",
) -> Iterator[Peer]:
    """Run one server in `folder`, and end it with every process it started."""
    environment = ROOT / f".venv-{peer}"
    if not (environment / "complete").exists():
        pytest.skip(f"{environment.name} is absent or half installed: run .ci/install-peers")
    http_port, grpc_port = free_ports(2)
    log = folder / "log.txt"
    python = environment / "bin" / "python"
    ports = [str(http_port), str(grpc_port)]
    command: list[str | Path] = [python, SERVERS / script, model, *ports, *more]
    # otherwise ONNX Runtime writes below the home directory
    quiet = os.environ | {"ORT_DISABLE_TELEMETRY": "1"}
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
        url = f"http://127.0.0.1:{http_port}{path}"
        wait_until_ready(f"{url}{ready}", server, log)
        yield Peer(url, f"grpc://127.0.0.1:{grpc_port}/digits")
    finally:
        end_group(server)


def wait_until_ready(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + STARTUP_LIMIT
    while time.monotonic() < deadline and server.poll() is None:
        # an OSError is a refused or reset connection, or an HTTP error
        with suppress(OSError), urllib.request.urlopen(url, timeout=5) as response:
            if response.status == 200:
                return
        time.sleep(0.1)
    if server.poll() is None:
        state = f"did not answer {url} within {STARTUP_LIMIT} s"
    else:
        state = f"exited with {server.returncode}"
    pytest.fail(
        f"the server {state}; the end of its log:\n{log.read_text(errors='replace')[-3000:]}"
    )


def end_group(server: subprocess.Popen[bytes], grace: float = 10) -> None:
    """Ask the server to end, then kill the rest of its process group."""
    server.terminate()
    with suppress(subprocess.TimeoutExpired):
        server.wait(grace)
    with suppress(ProcessLookupError):  # the whole group has ended
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens to."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens to, all of them different."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
