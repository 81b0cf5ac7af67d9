"""CIFAR in its official batches, as arrays, as class folders, and with corruptions."""

import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from soda_tta.data import load_dataset
from soda_tta.data.catalogue import homes
from soda_tta.data.corruptions import corrupt
from soda_tta.data.formats.cifar import CIFAR10, CIFAR100
from soda_tta.errors import ImageError, SodaError

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (20, 32, 32, 3), np.uint8)
LABELS = np.arange(20) % 10
FLOATS = PIXELS.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
ALL = slice(None)


def save(path: Path, pixels: np.ndarray = PIXELS[0], **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


def png_tree(folder: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        save(folder / f"{name}.png", PIXELS[number])
    return folder


def written_by_python_2(pixels: np.ndarray, key: bytes, labels: list[int]) -> bytes:
    """A batch as the official ones are: protocol 2, old module names, 8-bit strings."""
    rows = pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    kind = (
        b"cnumpy\ndtype\n"
        + text(b"u1")
        + b"K\x00K\x01\x87R(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xff" * 1
    )
    kind += b"J\xff\xff\xff\xffK\x00tb"
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    )
    shape = b"M" + struct.pack("<H", len(rows)) + b"M" + struct.pack("<H", 3072) + b"\x86"
    array += (
        b"(K\x01" + shape + kind + b"\x89T" + struct.pack("<I", rows.size) + rows.tobytes() + b"tb"
    )
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(key) + numbers + b"u."


def binary(pixels: np.ndarray, *labels: np.ndarray) -> bytes:
    columns = [label.astype(np.uint8)[:, None] for label in labels]
    return np.hstack([*columns, pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)]).tobytes()


def test_an_npz_file_of_the_data_home_is_found_by_name(home: Path) -> None:
    np.savez(home / "cifar10-test.npz", images=PIXELS, labels=LABELS)
    for name in ("cifar10", "CIFAR-10"):
        dataset = load_dataset(name)
        np.testing.assert_array_equal(dataset[ALL], FLOATS)
        assert (
            dataset.labels is not None
            and dataset.labels.dtype == np.int64
            and dataset.labels.tolist() == [*LABELS]
        )
        assert dataset.classes == CIFAR10 and dataset.title == "cifar10"
    with pytest.raises(ImageError, match=r"cifar10-train\.npz .*data get cifar10"):
        load_dataset("cifar10", split="train")


def test_a_data_set_in_the_cache_is_found_by_name(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "soda-tta" / "data"
    cache.mkdir(parents=True)
    np.savez(cache / "cifar100-test.npz", images=PIXELS, labels=LABELS)
    assert load_dataset("cifar100").classes == CIFAR100
    assert cache in homes()


@pytest.mark.parametrize("python_2", [True, False], ids=["as published", "written by Python 3"])
def test_official_python_batches_of_cifar10(home: Path, python_2: bool) -> None:
    folder = home / "cifar-10-batches-py"
    folder.mkdir()
    for name, part in [
        ("test_batch", slice(0, 4)),
        *((f"data_batch_{n}", slice(2 * n, 2 * n + 2)) for n in range(1, 6)),
    ]:
        labels = LABELS[part].tolist()
        rows = PIXELS[part].transpose(0, 3, 1, 2).reshape(-1, 3072)
        content = pickle.dumps(
            {b"data": rows, b"labels": labels, b"filenames": [b"a.png"] * len(rows)}, protocol=2
        )
        (folder / name).write_bytes(
            written_by_python_2(PIXELS[part], b"labels", labels) if python_2 else content
        )
    test = load_dataset("cifar10")
    train = load_dataset(folder, split="train")
    np.testing.assert_array_equal(test[ALL], FLOATS[:4])
    np.testing.assert_array_equal(train[ALL], FLOATS[2:12])
    assert (
        test.labels is not None and test.labels.tolist() == [0, 1, 2, 3] and test.classes == CIFAR10
    )
    assert (
        train.labels is not None and train.labels.tolist() == [*LABELS[2:12]] and len(train) == 10
    )


def test_official_python_batches_of_cifar100_have_fine_labels(home: Path) -> None:
    folder = home / "cifar-100-python"
    folder.mkdir()
    (folder / "meta").write_bytes(b"")
    (folder / "test").write_bytes(written_by_python_2(PIXELS[:3], b"fine_labels", [99, 0, 5]))
    dataset = load_dataset("cifar100")
    assert (
        dataset.labels is not None
        and dataset.labels.tolist() == [99, 0, 5]
        and dataset.classes == CIFAR100
    )
    np.testing.assert_array_equal(dataset[ALL], FLOATS[:3])


class Trap:
    """A malicious pickle: it calls a function while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_calls_a_function_is_refused_and_calls_nothing(
    tmp_path: Path, protocol: int
) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "test_batch").write_bytes(
        pickle.dumps({"data": Trap(tmp_path / "trapped")}, protocol=protocol)
    )
    with pytest.raises(
        ImageError, match=r"test_batch is not a CIFAR batch .*mkdir, which no CIFAR batch needs"
    ):
        load_dataset(folder)
    assert not (tmp_path / "trapped").exists()


def test_a_forged_index_reserves_no_memory(tmp_path: Path) -> None:
    (tmp_path / "test_batch").write_bytes(
        b"\x80\x02}r\xff\xff\xff\x7f."
    )  # "store this under index 2,147,483,647"
    with pytest.raises(ImageError, match="test_batch holds no rows"):
        load_dataset(tmp_path)


@given(
    changes=st.dictionaries(st.integers(-30, 260), st.integers(0, 255), max_size=4),
    kept=st.integers(0, 4000),
)
@settings(deadline=None, max_examples=150)
def test_a_damaged_batch_is_read_or_refused_with_its_name(
    changes: dict[int, int], kept: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(written_by_python_2(PIXELS[:1], b"labels", [3]))
    for position, value in changes.items():
        content[position] = value
    content = content[:kept]
    folder = tmp_path_factory.mktemp("batches")
    (folder / "test_batch").write_bytes(content)
    try:
        assert len(load_dataset(folder)) == 1
    except SodaError as error:
        assert str(folder) in str(error)


def test_official_binary_batches_are_memory_mapped(home: Path) -> None:
    ten = home / "cifar-10-batches-bin"
    hundred = home / "cifar-100-binary"
    ten.mkdir(), hundred.mkdir()
    (ten / "test_batch.bin").write_bytes(binary(PIXELS, LABELS))
    (hundred / "test.bin").write_bytes(binary(PIXELS, LABELS // 5, LABELS + 80))
    for name, labels in (("cifar10", LABELS), ("cifar100", LABELS + 80)):
        dataset = load_dataset(name)
        np.testing.assert_array_equal(dataset[ALL], FLOATS)
        assert dataset.labels is not None and dataset.labels.tolist() == labels.tolist()
        array = dataset.images.array  # type: ignore[attr-defined]
        assert np.shares_memory(array, array.base) and isinstance(array.base, np.memmap)
    with pytest.raises(ImageError, match=r"data_batch_1\.bin does not exist"):
        load_dataset(ten, split="train")
    (ten / "test_batch.bin").write_bytes(b"12345")
    with pytest.raises(ImageError, match=r"test_batch\.bin has 5 bytes"):
        load_dataset("cifar10")


def test_png_class_folders_of_both_splits(home: Path) -> None:
    png_tree(
        home / "cifar10",
        [f"{split}/{name}/0001" for split in ("train", "test") for name in CIFAR10],
    )
    dataset = load_dataset("cifar10")
    assert (
        dataset.classes == CIFAR10
        and dataset.labels is not None
        and dataset.labels.tolist() == [*range(10)]
    )
    np.testing.assert_array_equal(dataset[ALL], FLOATS[10:])
    np.testing.assert_array_equal(load_dataset(home / "cifar10", split="train")[ALL], FLOATS[:10])
    assert dataset.name(3) == str(Path("cat") / "0001.png")


def test_folders_named_by_class_numbers_keep_the_class_names(home: Path) -> None:
    png_tree(home / "cifar10", ["test/3/a", "test/9/a"])
    dataset = load_dataset("cifar10")
    assert (
        dataset.labels is not None
        and dataset.labels.tolist() == [3, 9]
        and dataset.classes == CIFAR10
    )


@pytest.fixture
def corrupted_set(home: Path) -> Path:
    folder = home / "CIFAR-10-C"
    folder.mkdir()
    for name in ("fog", "snow"):
        np.save(
            folder / f"{name}.npy",
            np.concatenate([corrupt(PIXELS, name, severity) for severity in range(1, 6)]),
        )
    np.save(folder / "labels.npy", np.tile(LABELS.astype(np.uint8), 5))
    return folder


@pytest.mark.parametrize("severity", range(1, 6))
def test_cifar_c_is_memory_mapped_and_selected_by_corruption_and_severity(
    corrupted_set: Path, severity: int
) -> None:
    dataset = load_dataset("cifar10-c", corruption="fog", severity=severity)
    expected = corrupt(PIXELS, "fog", severity)
    np.testing.assert_array_equal(np.rint(dataset[ALL] * 255).transpose(0, 2, 3, 1), expected)
    assert (
        dataset.labels is not None
        and dataset.labels.tolist() == [*LABELS]
        and dataset.classes == CIFAR10
    )
    assert isinstance(dataset.images.array, np.memmap)  # type: ignore[attr-defined]
    same = load_dataset(corrupted_set / "fog.npy", severity=severity)
    np.testing.assert_array_equal(same[ALL], dataset[ALL])
    np.save(corrupted_set / "labels.npy", LABELS)  # once instead of five times
    again = load_dataset(corrupted_set, corruption="fog", severity=severity)
    assert again.labels is not None and again.labels.tolist() == [*LABELS]


def test_errors_of_cifar_c_name_the_file_and_the_choices(corrupted_set: Path) -> None:
    for arguments, message in [
        ({}, "choose a corruption; it has fog, snow"),
        ({"corruption": "rain"}, "no corruption 'rain'; it has fog, snow"),
        ({"corruption": "fog", "severity": 6}, "no severity 6; it has 1, 2, 3, 4, 5"),
    ]:
        with pytest.raises(ImageError, match=message):
            load_dataset(corrupted_set, **arguments)
    (corrupted_set / "labels.npy").rename(corrupted_set / "moved")
    with pytest.raises(ImageError, match=r"labels\.npy cannot be read"):
        load_dataset(corrupted_set, corruption="fog")
    (corrupted_set / "moved").rename(corrupted_set / "labels.npy")
    np.save(corrupted_set / "fog.npy", PIXELS[:7])
    with pytest.raises(ImageError, match=r"fog\.npy has 7 rows; .*multiple of 5"):
        load_dataset(corrupted_set, corruption="fog")
    np.save(corrupted_set / "fog.npy", PIXELS[:10])
    with pytest.raises(
        ImageError,
        match=r"fog\.npy has 10 rows and .*labels\.npy 100 labels; there must be 10, or 2",
    ):
        load_dataset(corrupted_set, corruption="fog")
    (corrupted_set / "snow.npy").write_bytes(b"no array")
    with pytest.raises(ImageError, match=r"snow\.npy cannot be read as an array"):
        load_dataset(corrupted_set, corruption="snow")
    np.save(corrupted_set / "snow.npy", np.array([object()] * 5), allow_pickle=True)
    with pytest.raises(ImageError, match=r"snow\.npy cannot be read as an array"):
        load_dataset(corrupted_set, corruption="snow")
