"""The scripts in examples/ run as they are and print what they promise."""

import os
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from soda_tta.cli import build_parser
from soda_tta.serve.keys import ADMIN_VARIABLE

EXAMPLES = Path(__file__).parents[1] / "examples"
Run = Callable[..., str]


@pytest.fixture
def run_example(monkeypatch, capsys) -> Run:
    """A function that runs a script as the main program and returns what it prints."""

    def run(name: str, *arguments: str) -> str:
        path = str(EXAMPLES / name)
        monkeypatch.setattr(sys, "argv", [path, *arguments])
        runpy.run_path(path, run_name="__main__")
        return capsys.readouterr().out

    return run


def test_every_example_is_run() -> None:
    here = Path(__file__).parent
    files = (
        Path(__file__),
        here / "real" / "test_examples_real.py",
        here / "peers" / "test_clusters.py",
        here / "browser" / "test_site.py",
    )
    text = "".join(path.read_text() for path in files)
    assert not [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in text]


def test_first_adaptation() -> None:
    """In a process of its own, as a user starts it."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / "first_adaptation.py"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    assert "accuracy    30.0% -> 9" in done.stdout and "Adopt:" in done.stdout


@pytest.mark.filterwarnings("ignore")
def test_own_onnx_model(tmp_path, run_example: Run) -> None:
    from soda_tta.zoo.digits import hazy_digits

    model, images = hazy_digits(tmp_path)
    printed = run_example("own_onnx_model.py", str(model), str(images), "--out", str(tmp_path))
    assert "the verdict is to adopt" in printed
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 900
    assert (tmp_path / "adaptor.onnx").exists()


@pytest.mark.filterwarnings("ignore")
def test_stream(run_example: Run) -> None:
    printed = run_example("stream.py")
    assert printed.count("queries per image so far") == 3


@pytest.mark.filterwarnings("ignore")
def test_own_method(run_example: Run) -> None:
    printed = run_example("own_method.py")
    assert "brighten on 64 images" in printed and "Finished." in printed


@pytest.mark.filterwarnings("ignore")
def test_fastapi_service(run_example: Run, monkeypatch) -> None:
    pytest.importorskip("fastapi", reason="the example needs FastAPI: pip install fastapi")
    monkeypatch.setattr(os, "environ", os.environ.copy())
    printed = run_example("fastapi_service.py")
    assert printed.count("'confidence'") == 3 and "arrived 3" in printed
    assert "saved stream.safetensors" in printed


def served(words: list[str]):
    """The options of a `soda-tta serve` command, as it parses them."""
    return build_parser().parse_args(words)


def test_the_compose_file_agrees_with_itself_and_with_the_command() -> None:
    compose = yaml.safe_load((EXAMPLES / "docker-compose.yaml").read_text())
    triton, proxy = compose["services"]["triton"], compose["services"]["proxy"]
    options = served(proxy["command"])
    assert options.upstream == "http://triton:8000/v2/models/cats"  # the name of the service
    assert "--http-port=8000" in triton["command"] and triton["expose"] == ["8000"]
    assert proxy["ports"] == [f"127.0.0.1:{options.port}:{options.port}"]
    assert proxy["volumes"] == [f"state:{options.state}"] and "state" in compose["volumes"]
    assert options.admin_key_file == "/run/secrets/admin_key" and options.host == "0.0.0.0"
    assert set(proxy["secrets"]) == set(compose["secrets"]) == {"admin_key"}
    assert set(proxy["depends_on"]) < set(compose["services"])
    assert (EXAMPLES / proxy["build"]["context"] / proxy["build"]["dockerfile"]).is_file()


def test_the_kserve_manifest_serves_what_kserve_tells_it(tmp_path: Path) -> None:
    manifest = yaml.safe_load((EXAMPLES / "kserve" / "transformer.yaml").read_text())
    assert manifest["apiVersion"] == "serving.kserve.io/v1beta1"
    transformer = manifest["spec"]["transformer"]
    (container,) = transformer["containers"]
    stub = tmp_path / "soda-tta"
    stub.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    appended = "--model_name cats --predictor_host cats-predictor.default --http_port 8080"
    done = subprocess.run(
        [*container["command"], *container["args"], *shlex.split(appended)],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    options = served(done.stdout.splitlines())
    assert options.upstream == "http://cats-predictor.default/v2/models/cats"
    (port,) = (each["containerPort"] for each in container["ports"])
    assert options.port == port == container["readinessProbe"]["httpGet"]["port"]
    (mount,) = container["volumeMounts"]
    assert options.state == mount["mountPath"]
    assert [mount["name"]] == [volume["name"] for volume in transformer["volumes"]]
    assert [each["name"] for each in container["env"]] == [ADMIN_VARIABLE]
