"""Archives of a few small images, in every form they may come in."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from soda_tta.data.archives.places import Place
from soda_tta.types import Array

COUNT = 23
BAD = 7  # the position of a file that is not an image


def png(pixels: Array) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


@pytest.fixture(scope="session")
def photos() -> dict[str, bytes]:
    """Names and contents of files: images of two sizes, one of 16 bits, and one that is none."""
    random = np.random.default_rng(0)
    files = {}
    for number in range(COUNT):
        colour = random.integers(0, 256, 3)
        noise = random.integers(-20, 20, (8 + 4 * (number % 3 == 0), 8, 3))
        pixels = np.clip(colour + noise, 0, 255).astype(np.uint8)
        if number == 4:
            pixels = pixels[..., 0].astype(np.uint16) * 257
        files[f"{'cd'[number % 2]}/{number:02}.png"] = png(pixels)
    names = sorted(files)
    files[names[BAD]] = b"not an image"
    return {name: files[name] for name in names}


@pytest.fixture
def memory(tmp_path: Path) -> str:
    """An address in memory that no other test uses."""
    return f"memory://{tmp_path.name}-{id(tmp_path)}"


@pytest.fixture
def folder(photos: dict[str, bytes], tmp_path: Path) -> Path:
    """The photos as files."""
    for name, data in photos.items():
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "photos"


def as_tar(files: dict[str, bytes]) -> bytes:
    """A tar file as WebDataset writes it, with a label beside each image."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, data in files.items():
            for suffix, content in ((".png", data), (".cls", b"3")):
                member = tarfile.TarInfo(name.removesuffix(".png") + suffix)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    end = file.getvalue()
    return end[: -(-len(end.rstrip(b"\0")) // 512) * 512] + bytes(1024)  # without more filling


@pytest.fixture(scope="session")
def tars(photos: dict[str, bytes]) -> list[bytes]:
    """The photos in two tar files, of 10 and of 13 images."""
    files = list(photos.items())
    return [as_tar(dict(files[:10])), as_tar(dict(files[10:]))]


def as_parquet(table: dict, group: int = 10) -> bytes:
    """A Parquet file with row groups of this length."""
    file = io.BytesIO()
    pq.write_table(pa.table(table), file, row_group_size=group)
    return file.getvalue()


@pytest.fixture(scope="session")
def labels_alone() -> bytes:
    """A Parquet file that has no column with images."""
    return as_parquet({"label": [1]})


@pytest.fixture(scope="session")
def forms(photos: dict[str, bytes], tars: list[bytes]) -> dict[str, str]:
    """The same photos in every form, each with the address to open it by."""
    root = "memory://forms"
    place = Place(root)
    names = list(photos)
    addresses = [f"{root}/folder/{name}" for name in names]
    for name, data in photos.items():
        place.write(f"folder/{name}", data)
    place.write("folder/list.csv", "\n".join(["file,label", *(f"{n},0" for n in names)]).encode())
    place.write("folder/sub/ignored.txt", b"text")
    place.write("addresses.csv", "\n".join(["file", *addresses]).encode())
    place.write("paths.parquet", as_parquet({"path": addresses}))
    place.write("bytes.parquet", as_parquet({"name": names, "image": list(photos.values())}))
    struct = [{"bytes": data, "path": name} for name, data in photos.items()]
    place.write("struct.parquet", as_parquet({"image": struct, "label": [0] * len(names)}))
    for number, tar in enumerate(tars):
        place.write(f"tars/part-{number:03}.tar", tar)
    return {
        "folder": f"{root}/folder",
        "csv": f"{root}/folder/list.csv",
        "csv of addresses": f"{root}/addresses.csv",
        "parquet of paths": f"{root}/paths.parquet",
        "parquet of bytes": f"{root}/bytes.parquet",
        "parquet of structs": f"{root}/struct.parquet",
        "folder of tars": f"{root}/tars",
        "numbered tars": root + "/tars/part-{000..001}.tar",
        "starred tars": f"{root}/tars/*.tar",
    }


@pytest.fixture
def rows() -> Callable[[str], list[dict]]:
    """A function that reads all answers, in the order of the parts."""

    def read(out: str) -> list[dict]:
        place = Place(out)
        parts = sorted(name for name in place.names() if name.startswith("part-"))
        tables = [pq.read_table(io.BytesIO(place.read(name))) for name in parts]
        return [row for table in tables for row in table.to_pylist()]

    return read


@pytest.fixture
def contents() -> Callable[[str], dict[str, bytes]]:
    """A function that reads all files of answers as bytes."""

    def read(out: str) -> dict[str, bytes]:
        place = Place(out)
        return {name: place.read(name) for name in place.names() if name.startswith("part-")}

    return read
