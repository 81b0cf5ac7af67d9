"""`soda-tta corrupt` and `soda-tta data`, run as a user runs them."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soda_tta.cli import main
from soda_tta.data import Corrupted, load_dataset

SODA = [sys.executable, "-c", "from soda_tta.cli import main; raise SystemExit(main())"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(6):
        path = tmp_path / "day" / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(number).integers(0, 256, (32, 32, 3), np.uint8)).save(
            path
        )
    (tmp_path / "home").mkdir()
    return tmp_path


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def soda(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> Callable[..., Done]:
    monkeypatch.chdir(folder)
    for name, value in environment(folder).items():
        monkeypatch.setenv(name, value)

    def run(*words: str) -> Done:
        return Done(main(words), *capsys.readouterr())

    return run


def environment(folder: Path) -> dict[str, str]:
    return {
        "SODA_TTA_DATA": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "no_proxy": "127.0.0.1",
    }


CORRUPT = ["corrupt", "--images", "day", "--corruption", "fog"]


def test_corrupt_copies_a_folder_in_a_separate_process(folder: Path) -> None:
    command = [*SODA, *CORRUPT, "--severity", "3", "--seed", "4", "--out", "foggy"]
    variables = {**os.environ, **environment(folder)}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=variables, check=False
    )
    assert (done.returncode, done.stderr) == (0, "") and "6 corrupted images" in done.stdout
    expected = Corrupted(load_dataset(folder / "day"), "fog", 3, seed=4)
    np.testing.assert_array_equal(
        load_dataset(folder / "foggy")[slice(None)], expected[slice(None)]
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_sigterm_leaves_no_partial_output(folder: Path) -> None:
    np.save(folder / "many.npy", np.zeros((20_000, 32, 32, 3), np.uint8))
    command = [*SODA, "corrupt", "--images", "many.npy", "--corruption", "fog", "--out", "foggy"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not list(folder.glob(".foggy.*.tmp/*.png")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in errors
    assert sorted(os.listdir(folder)) == ["day", "home", "many.npy"]


def test_corrupt_writes_all_19_corruptions_in_the_published_layouts(
    soda: Callable[..., Done], folder: Path
) -> None:
    done = soda(
        *[
            "corrupt",
            "--images",
            "day",
            "--corruption",
            "all",
            "--layout",
            "cifar-c",
            "--out",
            "C",
            "--json",
        ]
    )
    facts = json.loads(done.stdout)
    assert (
        done.returncode == 0
        and done.stderr == ""
        and facts["images"] == 6
        and len(facts["written"]) == 20
    )
    assert facts["protocol"]["constants"] == "cifar" and facts["protocol"]["frost"] == "drawn"
    assert len(list((folder / "C").glob("*.npy"))) == 20 and np.load(
        folder / "C" / "frost.npy"
    ).shape == (30, 32, 32, 3)
    done = soda(*CORRUPT, "--severity", "1,2", "--layout", "imagenet-c", "--out", "I")
    assert done.returncode == 0 and len(list((folder / "I" / "fog" / "2").rglob("*.JPEG"))) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["corrupt", "--images", "day", "--corruption", "rain", "--out", "o"],
            "'rain' does not exist; choose one of",
        ),
        (
            [*CORRUPT, "--severity", "7", "--out", "o"],
            "severity '7' does not exist; choose one of 1, 2, 3, 4, 5",
        ),
        ([*CORRUPT, "--out", "home/../day"], "exists and is not overwritten"),
        (
            ["corrupt", "--images", "gone", "--corruption", "fog", "--out", "o"],
            "gone does not exist; give a folder",
        ),
        ([*CORRUPT, "--domain", "photo", "--out", "o"], "day has no domains"),
        (
            [*CORRUPT, "--frost", "gone", "--corruption", "frost", "--out", "o"],
            "gone is not a folder",
        ),
        (["data", "get", "mnist"], "'mnist' cannot be downloaded; only cifar10 and cifar100"),
        (
            ["data", "get", "cifar100", "--url", "http://127.0.0.1:1/x"],
            "the only source of cifar100",
        ),
        (
            ["data", "get", "cifar10", "--from", "official", "--url", "http://127.0.0.1:1/x"],
            "cannot be read",
        ),
    ],
)
def test_errors_are_one_sentence_and_leave_no_files(
    soda: Callable[..., Done], folder: Path, arguments: list[str], message: str
) -> None:
    before = sorted(map(str, folder.rglob("*")))
    done = soda(*arguments)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert sorted(map(str, folder.rglob("*"))) == before


def test_a_damaged_image_is_named_and_no_files_are_left(
    soda: Callable[..., Done], folder: Path
) -> None:
    (folder / "day" / "dog" / "5.png").write_text("not an image")
    done = soda(*CORRUPT, "--out", "foggy")
    assert done.returncode == 2 and "day/dog/5.png cannot be read as an image" in done.stderr
    assert sorted(os.listdir(folder)) == ["day", "home"]


def test_data_list_shows_which_data_sets_exist_and_where(
    soda: Callable[..., Done], folder: Path
) -> None:
    np.savez(
        folder / "home" / "cifar10-test.npz",
        images=np.zeros((2, 32, 32, 3), np.uint8),
        labels=[0, 1],
    )
    (folder / "home" / "README.md").write_text("not a data set")
    (folder / "home" / "models").mkdir()
    (folder / "day").rename(folder / "home" / "pets")
    listed = json.loads(soda("data", "list", "--json").stdout)
    assert listed["homes"] == [str(folder / "home")]
    assert [(row["name"], row["layout"]) for row in listed["found"]] == [
        ("cifar10", "npz"),
        (None, "classes"),
    ]
    assert listed["found"][0]["bytes"] == (folder / "home" / "cifar10-test.npz").stat().st_size
    assert "cifar100" in listed["absent"] and "cifar10" not in listed["absent"]
    text = soda("data", "list").stdout
    assert "cifar10-test.npz" in text and "6.7 kB" in text and "soda-tta data get cifar100" in text


def test_data_get_refuses_a_file_that_is_not_the_official_archive(
    soda: Callable[..., Done], folder: Path
) -> None:
    (folder / "served").mkdir()
    (folder / "served" / "x.tar.gz").write_bytes(b"something else" * 100)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder / "served")))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/x.tar.gz"
        done = soda("data", "get", "cifar10", "--url", url, "--json")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert (
        done.returncode == 2
        and "not c32a1d4ab5d03f1284b67883e8d87530; it was deleted" in done.stderr
    )
    assert not list((folder / "home").iterdir())
