"""Archives on an S3 server (moto), from the first listing to the last upload."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soda_tta.adaptors import Bank, Identity
from soda_tta.data.archives.places import Place
from soda_tta.errors import ImageError, SodaError, StorageError
from soda_tta.scale.archive import apply_archive

pytestmark = pytest.mark.peers
COUNT = 40
MODEL = """
import os, time
import numpy as np
weights = np.random.default_rng(7).normal(size=(3, 4))

def predict(images):
    time.sleep(float(os.environ.get("SLOW", 0)) * len(images))
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
"""


@pytest.fixture
def bucket(moto_url: str, monkeypatch, tmp_path: Path) -> Iterator[str]:
    """An empty bucket; clients find its server through the environment."""
    fsspec = pytest.importorskip("s3fs").S3FileSystem
    settings = {
        "AWS_ENDPOINT_URL": moto_url,
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "not-a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none"),
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    fsspec.clear_instance_cache()
    name = f"photos-{os.getpid()}-{time.monotonic_ns()}"
    fsspec().mkdir(name)
    yield f"s3://{name}"
    fsspec.clear_instance_cache()


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Images of two sizes below a folder, and one file that is no image."""
    random = np.random.default_rng(0)
    for number in range(COUNT):
        pixels = random.integers(0, 256, (8 + number % 2, 8, 3), np.uint8)
        path = tmp_path / "photos" / f"{number % 3}" / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    (tmp_path / "photos" / "1" / "bad.png").write_bytes(b"not an image")
    return tmp_path / "photos"


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "model.py").write_text(MODEL)
    return f"{tmp_path / 'model.py'}:predict"


def upload(folder: Path, address: str) -> str:
    place = Place(address)
    for path in folder.rglob("*.png"):
        place.write(path.relative_to(folder).as_posix(), path.read_bytes())
    return address


def parts(address: str) -> dict[str, bytes]:
    place = Place(address)
    return {name: place.read(name) for name in place.names() if name.startswith("part-")}


def test_an_archive_in_a_bucket(bucket, photos, model, tmp_path) -> None:
    upload(photos, f"{bucket}/2026")
    how = {"adaptor": Bank().adaptor({"brightness": 0.3}), "box": model, "shard_size": 10}
    there = apply_archive(**how, images=f"{bucket}/2026", out=f"{bucket}/answers")
    here = apply_archive(**how, images=photos, out=tmp_path / "answers")
    assert there == here and there.errors == 1 and there.images == COUNT + 1
    assert parts(f"{bucket}/answers") == parts(str(tmp_path / "answers"))
    with pytest.raises(StorageError, match="continue them with resume=True"):
        apply_archive(**how, images=f"{bucket}/2026", out=f"{bucket}/answers")


def test_a_tar_and_a_table_in_a_bucket(bucket, photos, model) -> None:
    import tarfile

    upload(photos, f"{bucket}/2026")
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for path in sorted(photos.rglob("*.png")):
            tar.add(path, path.relative_to(photos).as_posix())
    names = [path.relative_to(photos).as_posix() for path in sorted(photos.rglob("*.png"))]
    place = Place(bucket)
    place.write("shard-000.tar", file.getvalue())
    place.write("2026/list.csv", "\n".join(["file", *names]).encode())
    tar = apply_archive(Identity(), f"{bucket}/shard-*.tar", model, f"{bucket}/a")
    table = apply_archive(Identity(), f"{bucket}/2026/list.csv", model, f"{bucket}/b")
    assert tar == table
    assert parts(f"{bucket}/a") == parts(f"{bucket}/b")


def test_a_killed_command_leaves_whole_files_and_continues(bucket, photos, model, tmp_path) -> None:
    upload(photos, f"{bucket}/2026")
    Identity().save(tmp_path / "adaptor.safetensors")
    words = ["apply", "--adaptor", str(tmp_path / "adaptor.safetensors"), "--model", model]
    words += ["--images", f"{bucket}/2026", "--shard-size", "5"]
    command = [sys.executable, "-m", "soda_tta", *words, "--out", f"{bucket}/out/"]
    slow = {**os.environ, "SLOW": "0.05"}
    process = subprocess.Popen(command, env=slow, start_new_session=True)
    deadline = time.monotonic() + 60
    while len(parts(f"{bucket}/out")) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = parts(f"{bucket}/out")
    assert 2 <= len(before) < 9
    subprocess.run([*command, "--resume"], check=True)
    apply_archive(Identity(), photos, model, tmp_path / "whole", shard_size=5)
    after = parts(f"{bucket}/out")
    assert after == parts(str(tmp_path / "whole"))
    assert all(after[name] == data for name, data in before.items())


def test_missing_buckets_and_credentials_are_named(bucket, photos, model, monkeypatch) -> None:
    with pytest.raises(ImageError, match="does not exist"):
        apply_archive(Identity(), "s3://no-such-bucket/x", model, f"{bucket}/out")
    with pytest.raises(StorageError, match=r"no-such-bucket/out.* could not be written"):
        apply_archive(Identity(), photos, model, "s3://no-such-bucket/out")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    pytest.importorskip("s3fs").S3FileSystem.clear_instance_cache()
    for images, out in ((f"{bucket}/2026", "memory://s3-test"), (photos, f"{bucket}/out2")):
        with pytest.raises(SodaError, match=r"redentials.*AWS_ACCESS_KEY_ID"):
            apply_archive(Identity(), images, model, out)
