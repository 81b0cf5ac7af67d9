"""What an environment with one extra alone must be able to do: python smoke.py EXTRA FOLDER

It is run by a fresh environment, which has the wheel and not the checkout. FOLDER
holds small models and images that the test has written.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np

import soda_tta
from soda_tta import BoxError, SodaError, adapt, apply, load_box, open_images

Check = Callable[[Path], None]
IMAGES = np.random.default_rng(0).random((40, 3, 8, 8), np.float32)
NEEDED = {  # what is missing without an extra, and how to see it
    "onnx": lambda folder: load_box(str(folder / "model.onnx")),
    "tflite": lambda folder: load_box(str(folder / "model.tflite")),
    "remote": lambda folder: load_box("http://127.0.0.1:1/v2/models/x"),
    "grpc": lambda folder: load_box("grpc://127.0.0.1:1/x"),
    "report": lambda folder: finished_run().report(folder / "never.html"),
    "heic": lambda folder: open_images(folder / "heic")[:],
    "dicom": lambda folder: open_images(folder / "dicom")[:],
    "dask": lambda folder: enter(soda_tta.find_backend("dask")),
    "demo": lambda folder: digits(),
}


def model(images: np.ndarray) -> np.ndarray:
    share = images.mean(axis=(1, 2, 3))
    return np.stack([share, 1 - share], axis=1)


def finished_run() -> soda_tta.Run:
    return adapt(IMAGES, model, method="soda", epochs=1, width=4, batch=20)


def enter(backend: object) -> None:
    with backend:  # type: ignore[attr-defined]
        pass


def digits() -> None:
    from soda_tta.zoo.digits import load_digits

    load_digits(0)


def command(*words: str) -> str:
    """The output of a command of this environment."""
    done = subprocess.run(
        [sys.executable, "-m", "soda_tta", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"soda-tta {' '.join(words)}: {done.stderr}"
    return done.stdout


def core(folder: Path) -> None:
    """Without an extra: learn, save, apply; what is missing is named with its remedy."""
    run = finished_run()
    run.save(folder / "run")
    assert len(apply(folder / "run", IMAGES, model).predictions) == 40
    assert soda_tta.__version__ in command("--version")
    assert "soda-e" in command("methods")
    for package, name in (("report", "page.html"), ("serve", "dashboard.html"), ("", "py.typed")):
        home = resources.files("soda_tta")
        assert list((home / package).rglob(name)), f"{name} is not in the wheel"
    for extra, use in NEEDED.items():
        try:
            use(folder)
        except SodaError as error:
            named = re.findall(r"pip install 'soda-tta\[(\w+)\]'", str(error))
            assert named == [extra], f"without {extra}: {error}"
        else:
            raise AssertionError(f"{extra} is installed, or not needed")


def onnx(folder: Path) -> None:
    run = adapt(IMAGES, folder / "model.onnx", method="soda", epochs=1, width=4, batch=20)
    assert run.adaptor.to_onnx(folder / "adaptor.onnx") < 1e-4
    words = ("--model", f"{folder}/model.onnx", "--images", f"{folder}/images")
    command("adapt", *words, "--method", "deployed", "--out", f"{folder}/deployed")


def tflite(folder: Path) -> None:
    assert load_box(str(folder / "model.tflite"))(IMAGES[:3]).shape == (3, 4)


def remote(folder: Path) -> None:
    refused("http://127.0.0.1:1/v2/models/x")


def grpc(folder: Path) -> None:
    refused("grpc://127.0.0.1:1/x")


def refused(address: str) -> None:
    """A client is there and tries to connect."""
    try:
        load_box(address, retries=0)(IMAGES[:1])
    except BoxError as error:
        assert "pip install" not in str(error), error
    else:
        raise AssertionError("somebody answers")


def report(folder: Path) -> None:
    page = finished_run().report(folder / "report.html", images=IMAGES)
    assert page.read_text().lower().startswith("<!doctype html")


def heic(folder: Path) -> None:
    assert open_images(folder / "heic")[:].shape == (1, 3, 64, 64)


def dicom(folder: Path) -> None:
    assert open_images(folder / "dicom")[:].shape == (1, 3, 8, 8)


def archive(folder: Path) -> None:
    from soda_tta.adaptors import Identity

    summary = soda_tta.apply_archive(Identity(), folder / "images", model, folder / "answers")
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(folder / "answers").num_rows
    assert rows == 6, summary


def dask(folder: Path) -> None:
    enter(soda_tta.find_backend("dask", jobs=1))


def serve(folder: Path) -> None:
    """The proxy starts in front of a server that is not there yet, and says that it lives."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    upstream = "http://127.0.0.1:1/v2/models/x"
    words = ("serve", "--upstream", upstream, "--port", str(port), "--state", f"{folder}/state")
    proxy = subprocess.Popen([sys.executable, "-m", "soda_tta", *words])
    try:
        for _ in range(200):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/live") as answer:
                    assert answer.status == 200
                return
            except urllib.error.URLError:
                assert proxy.poll() is None, "the proxy ended"
                time.sleep(0.1)
        raise AssertionError("the proxy does not respond")
    finally:
        proxy.terminate()
        proxy.wait(timeout=30)


def demo(folder: Path) -> None:
    shown = json.loads(command("demo", "--json", "--out", f"{folder}/demo"))
    economy = shown["methods"]["soda-e"]
    assert economy["after"] - shown["before"] > 0.4 and economy["queries_per_image"] <= 10


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (core, onnx, tflite, remote, grpc, report, heic, dicom, archive, dask, serve, demo)
}

if __name__ == "__main__":
    assert "site-packages" in soda_tta.__file__, f"this is not the wheel: {soda_tta.__file__}"
    chosen, place = sys.argv[1:]
    CHECKS[chosen](Path(place))
    print(f"{chosen}: works")
