"""`soda-tta serve` as a process: starts, reloads, refuses a second one, and ends in order."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from soda_tta import load_box
from soda_tta.cli import build_parser, main
from soda_tta.cli.serve import grpc_from, proxy_from
from soda_tta.serve import grpc_upstream, start


def serve(words: list[str], out: str) -> None:
    """The command in a process of its own; standard output goes to a file."""
    descriptor = os.open(out, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os._exit(main(["serve", *words]))


def test_a_proxy_starts_reloads_and_drains(warm_processes, tiny_onnx, tmp_path: Path, capsys):
    model = str(tiny_onnx())
    config = tmp_path / "serve.toml"
    config.write_text("[limits]\nqueue = 3\n")
    state, out = str(tmp_path / "state"), tmp_path / "out.txt"
    words = ["--model", model, "--name", "tiny", "--port", "0", "--json"]
    words += ["--state", state, "--config", str(config)]
    process = warm_processes.Process(target=serve, args=(words, str(out)))
    process.start()
    try:
        url = json.loads(wait_for_line(out, '"http"'))["http"]
        images = np.full((2, 3, 8, 8), 0.25, np.float32)
        np.testing.assert_allclose(load_box(url)(images), load_box(model)(images), atol=1e-6)
        assert main(["serve", *words]) == 2
        assert "another proxy uses" in capsys.readouterr().err
        config.write_text("[limits]\nqueue = 4\n")
        os.kill(process.pid, signal.SIGHUP)
        wait_for_line(out, "limits reloaded")
        with urllib.request.urlopen(f"{url.partition('/v2')[0]}/control/status") as response:
            status = json.load(response)
        assert status["limits"]["queue"] == 4 and status["counts"]["upstream_queries_total"] == 2
        os.kill(process.pid, signal.SIGTERM)
        process.join(10)
        assert process.exitcode == 0
    finally:
        process.kill()
        process.join()
    lines = (tmp_path / "state" / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["adapting", "limits reloaded"]


def test_the_limit_of_responses_holds_from_the_start(tmp_path: Path, monkeypatch) -> None:
    """Over HTTP and over gRPC, whose channel has the option."""
    remote = []
    monkeypatch.setattr(grpc_upstream, "RemoteGrpc", lambda url, **facts: remote.append(facts))
    monkeypatch.setattr(start, "begin_when_ready", lambda *_: None)
    config = tmp_path / "serve.toml"
    config.write_text("[limits]\nresponse_bytes = 12345\n")
    words = ["serve", "--upstream", "http://h/v2/models/a", "--config", str(config)]
    words += ["--grpc-port", "0", "--grpc-upstream", "grpc://h:8001/a"]
    options = build_parser().parse_args(words)
    proxy = proxy_from(options, None)
    assert proxy.upstream.most == 12345
    grpc_from(options, proxy)
    assert remote[0]["most"] == 12345
    proxy.close()


def wait_for_line(path: Path, text: str) -> str:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        for line in path.read_text().splitlines() if path.exists() else []:
            if text in line:
                return line
        time.sleep(0.01)
    pytest.fail(f"{text!r} was not printed: {path.read_text()}")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "give --upstream URL, or --model FILE"),
        (["--upstream", "http://h/v2/models/a", "--model", "a.onnx"], "give --upstream URL"),
        (["--upstream", "http://h/v2/models/a", "--name", "b"], "--name is for a file"),
        (["--upstream", "localhost:8000"], "names no model"),
        (["--model", "a.onnx", "--tls-key", "k.pem"], "needs its certificate"),
    ],
)
def test_options_that_make_no_sense(words: list[str], problem: str, capsys) -> None:
    assert main(["serve", *words]) == 2
    assert problem in capsys.readouterr().err
