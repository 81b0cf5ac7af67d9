"""The proxy in front of real servers, asked by NVIDIA's own client and by curl."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.adaptors import Bank
from soda_tta.box import OnnxBox

from .conftest import ROOT, SERVERS, Peer

pytestmark = pytest.mark.peers

IMAGES = np.random.default_rng(1).random((5, 3, 16, 16), dtype=np.float32)
CONTRAST = Bank().adaptor({"standard contrast": 0.5, "gamma": 0.3})


@contextmanager
def proxy(peer: Peer, folder: Path, *words: str) -> Iterator[dict[str, str]]:
    """`soda-tta serve` in front of a server: its addresses."""
    command = [sys.executable, "-m", "soda_tta", "serve", "--json", "--port", "0"]
    command += ["--upstream", peer.http, "--grpc-upstream", peer.grpc, "--grpc-port", "0", *words]
    with (folder / "proxy.txt").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "proxy.txt").read_text()
        yield json.loads(line)
    finally:
        process.terminate()
        assert process.wait(30) == 0


@pytest.fixture
def adaptor(tmp_path: Path) -> str:
    CONTRAST.save(tmp_path / "adaptor.safetensors")
    return str(tmp_path / "adaptor.safetensors")


@pytest.mark.parametrize("name", ["triton", "mlserver"])
def test_tritonclient_gets_adapted_answers(
    name: str, request: Any, small_model: Path, tmp_path: Path, adaptor: str
) -> None:
    peer = request.getfixturevalue(name)
    python = ROOT / ".venv-triton" / "bin" / "python"
    if not python.exists():
        pytest.skip(".venv-triton is absent: run .ci/install-peers")
    np.save(tmp_path / "images.npy", IMAGES)
    form = "binary" if name == "triton" else "json"  # MLServer does not offer binary tensors
    with proxy(peer, tmp_path, "--adaptor", adaptor, "--freeze") as places:
        ours = [places["http"].split("/")[2], places["grpc"].split("/")[2]]
        command = [python, SERVERS / "triton_client.py", *ours, tmp_path / "images.npy", form]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        with urllib.request.urlopen(peer.http) as response:
            metadata = json.load(response)
    result = json.loads(done.stdout)
    box = OnnxBox(small_model)
    adapted, unadapted = box(CONTRAST(IMAGES)), box(IMAGES)
    assert np.abs(adapted - unadapted).max() > 0.01
    for way, answers in result["answers"].items():
        np.testing.assert_allclose(answers, adapted, atol=1e-5, err_msg=way)
    assert result["http"] == metadata
    assert result["grpc"] == ["digits", "images", [-1, 3, 16, 16]]


@pytest.mark.parametrize("name", ["triton", "mlserver"])
def test_a_client_cannot_tell_the_proxy_from_the_model(
    name: str, request: Any, tmp_path: Path
) -> None:
    peer = request.getfixturevalue(name)
    with proxy(peer, tmp_path, "--freeze") as places:
        for ours, theirs in ((places["http"], peer.http), (places["grpc"], peer.grpc)):
            box, direct = load_box(ours), load_box(theirs)
            np.testing.assert_array_equal(box(IMAGES), direct(IMAGES))
            assert box.input == direct.input and box.box.box.version == direct.box.box.version
        for path in ("/v2", "/v2/models/digits", "/v2/models/absent", "/v2/health/ready"):
            ours, theirs = (
                answer_of(address.partition("/v2")[0] + path)
                for address in (places["http"], peer.http)
            )
            assert ours == theirs, path


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("name", ["triton", "mlserver"])
def test_curl(name: str, request: Any, small_model: Path, tmp_path: Path, adaptor: str) -> None:
    peer = request.getfixturevalue(name)
    data = {"name": "images", "datatype": "FP32", "shape": [5, 3, 16, 16], "data": IMAGES.tolist()}
    (tmp_path / "request.json").write_text(json.dumps({"inputs": [data]}))
    with proxy(peer, tmp_path, "--adaptor", adaptor, "--freeze") as places:
        command = ["curl", "-sS", "-H", "Content-Type: application/json"]
        command += ["-d", f"@{tmp_path / 'request.json'}", f"{places['http']}/infer"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    (output,) = json.loads(done.stdout)["outputs"]
    rows = np.reshape(output["data"], output["shape"])
    np.testing.assert_allclose(rows, OnnxBox(small_model)(CONTRAST(IMAGES)), atol=1e-5)


def answer_of(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
