"""`soda-tta apply` with a folder as --out."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from soda_tta.adaptors import Bank, Identity
from soda_tta.cli import main
from soda_tta.errors import StorageError
from soda_tta.scale.archive import apply_archive


@pytest.fixture
def command(folder: Path, tiny_onnx, tmp_path: Path, monkeypatch) -> list[str]:
    """The command without --out and --images."""
    monkeypatch.chdir(tmp_path)
    Bank().adaptor({"brightness": 0.3}).save("adaptor.safetensors")
    return ["apply", "--adaptor", "adaptor.safetensors", "--model", str(tiny_onnx())]


def test_a_folder_of_answers(command, capsys, rows) -> None:
    words = [*command, "--images", "photos", "--shard-size", "10"]
    assert main([*words, "--out", "answers/", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts == {
        "out": "answers/",
        "shards": 3,
        "finished": 3,
        "images": 23,
        "errors": 1,
        "queries": 22,
        "complete": True,
    }
    assert len(rows("answers")) == 23
    assert main([*words, "--out", "answers/"]) == 2
    assert "continue them with --resume, or choose another --out" in capsys.readouterr().err
    assert main([*words, "--out", "answers/", "--resume"]) == 0
    printed = capsys.readouterr().err
    assert "23 answers, 1 image not readable, 22 queries, 3 files -> answers/" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--images", "x.tar", "--out", "a.csv"], "x.tar is an archive; write to a folder"),
        (["--images", "s3://b/c"], "s3://b/c is an archive; write to a folder"),
        (["--images", "photos", "--jobs", "2"], "--jobs is for archives; write to a folder"),
        (["--images", "photos", "--out", "a/", "--force"], "--force is for answers in a file"),
        (["--images", "photos", "--out", "a/", "--save-images", "b"], "--save-images is for"),
        (["--images", "photos", "--out", "a/", "--address", "x"], "--address is for --backend"),
        (["--images", "photos", "--out", "ftq://a/"], "give a path, or an address"),
    ],
)
def test_what_is_refused(command, capsys, words: list[str], message: str) -> None:
    assert main([*command, *words]) == 2
    assert message in capsys.readouterr().err
    assert not Path("a").exists()


@pytest.fixture
def web(folder: Path) -> Iterator[str]:
    """The photos on a web server."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments) -> None:
            pass

    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_images_on_a_web_server(web: str, folder: Path, memory, model, rows, photos) -> None:
    summary = apply_archive(Identity(), f"{web}/", model, f"{memory}/out")
    assert summary.images == 23 and summary.errors == 1
    assert [row["name"] for row in rows(f"{memory}/out")] == list(photos)
    with pytest.raises(StorageError, match="can only be read"):
        apply_archive(Identity(), folder, model, web)
