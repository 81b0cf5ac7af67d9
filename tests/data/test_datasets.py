"""Every layout people have on disk, made small: what is read, in which order and with which labels, what is refused."""

import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from soda_tta import adapt
from soda_tta.cli import main
from soda_tta.data import Dataset, load_dataset, open_images
from soda_tta.data.catalogue import homes, spelled
from soda_tta.data.corruptions import CORRUPTIONS, corrupt
from soda_tta.data.files import read_image
from soda_tta.data.formats.cifar import CIFAR10, CIFAR100
from soda_tta.data.layouts import recognise
from soda_tta.data.resizing import Resize
from soda_tta.errors import CorruptionError, ImageError, SodaError

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (20, 32, 32, 3), np.uint8)
LABELS = np.arange(20) % 10
FLOATS = PIXELS.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
ALL = slice(None)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data home of its own for each test."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("SODA_TTA_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def save(path: Path, pixels: np.ndarray = PIXELS[0], **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


def png_tree(folder: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        save(folder / f"{name}.png", PIXELS[number])
    return folder


def written_by_python_2(pixels: np.ndarray, key: bytes, labels: list[int]) -> bytes:
    """A batch, byte for byte as the official ones are built: protocol 2, old module names, 8-bit strings."""
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


# --- CIFAR


def test_an_npz_of_the_data_home_is_found_by_name(home: Path) -> None:
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


def test_what_was_downloaded_to_the_cache_is_found_too(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "soda-tta" / "data"
    cache.mkdir(parents=True)
    np.savez(cache / "cifar100-test.npz", images=PIXELS, labels=LABELS)
    assert load_dataset("cifar100").classes == CIFAR100
    assert cache in homes()


@pytest.mark.parametrize(
    "python_2", [True, False], ids=["as published", "written again by Python 3"]
)
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
    test, train = load_dataset("cifar10"), load_dataset(folder, split="train")
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
    """What a malicious pickle does: have a function called while it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(
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
    )  # "remember this as number 2,147,483,647"
    with pytest.raises(ImageError, match="test_batch holds no rows"):
        load_dataset(tmp_path)


@given(
    changes=st.dictionaries(st.integers(-30, 260), st.integers(0, 255), max_size=4),
    kept=st.integers(0, 4000),
)
@settings(deadline=None, max_examples=150)
def test_a_damaged_batch_is_read_or_refused_but_never_runs_wild(
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


def test_official_binary_batches_stay_on_disk(home: Path) -> None:
    ten, hundred = home / "cifar-10-batches-bin", home / "cifar-100-binary"
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


def test_folders_called_by_the_numbers_of_the_classes(home: Path) -> None:
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
def test_cifar_c_is_mapped_and_chosen_by_corruption_and_severity(
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


def test_cifar_c_says_what_is_wrong(corrupted_set: Path) -> None:
    for wanted, says in [
        ({}, "choose a corruption; it has fog, snow"),
        ({"corruption": "rain"}, "no corruption 'rain'; it has fog, snow"),
        ({"corruption": "fog", "severity": 6}, "no severity 6; it has 1, 2, 3, 4, 5"),
    ]:
        with pytest.raises(ImageError, match=says):
            load_dataset(corrupted_set, **wanted)
    (corrupted_set / "labels.npy").rename(corrupted_set / "forgotten")
    with pytest.raises(ImageError, match=r"labels\.npy cannot be read"):
        load_dataset(corrupted_set, corruption="fog")
    (corrupted_set / "forgotten").rename(corrupted_set / "labels.npy")
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


# --- ImageNet


def test_imagenet_is_resized_to_256_and_cropped_to_224(home: Path) -> None:
    wide = RANDOM.integers(0, 256, (300, 400, 3), np.uint8)
    save(home / "imagenet/val/n01440764/a.JPEG", wide, quality=95)
    save(home / "imagenet/val/n01443537/b.JPEG", wide[:, :290].copy(), quality=95)
    dataset = load_dataset("imagenet")
    assert dataset.size == (224, 224) and dataset.classes == ("n01440764", "n01443537")
    picture = Image.open(home / "imagenet/val/n01440764/a.JPEG").resize(
        (341, 256), Image.Resampling.BILINEAR
    )
    expected = np.asarray(
        picture.crop((58, 16, 58 + 224, 16 + 224))
    )  # round(58.5) is even, as in torchvision
    np.testing.assert_array_equal(
        np.rint(dataset[slice(0, 1)] * 255)[0].transpose(1, 2, 0), expected
    )
    assert load_dataset(home / "imagenet", size=64).size == (64, 64)


@given(height=st.integers(16, 700), width=st.integers(16, 700))
@settings(deadline=None, max_examples=30)
def test_the_standard_view_has_its_size_whatever_comes(
    height: int, width: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = save(
        tmp_path_factory.mktemp("view") / "a.png", np.full((height, width, 3), 77, np.uint8)
    )
    view = read_image(path, Resize.imagenet())
    assert view.shape == (224, 224, 3) and view.min() == view.max() == 77


def test_a_subset_of_imagenet_keeps_its_numbers_when_the_classes_are_given(home: Path) -> None:
    save(home / "val/n02/a.png"), save(home / "val/n07/a.png")
    numbering = [f"n{number:02}" for number in range(10)]
    dataset = load_dataset(home / "val", classes=numbering)
    assert dataset.labels is not None and dataset.labels.tolist() == [2, 7]
    with pytest.raises(ImageError, match=r"n07 is not one of the 5 classes"):
        load_dataset(home / "val", classes=numbering[:5])


@pytest.mark.parametrize("family", ["", "weather/"])
def test_imagenet_c_is_chosen_by_corruption_and_severity_and_not_cropped_again(
    home: Path, family: str
) -> None:
    stored = RANDOM.integers(0, 256, (224, 224, 3), np.uint8)
    for severity in (1, 3):
        save(home / f"ImageNet-C/{family}fog/{severity}/n01440764/a.JPEG", stored, quality=85)
    dataset = load_dataset("imagenet-c", corruption="fog", severity=3)
    as_stored = np.asarray(Image.open(home / f"ImageNet-C/{family}fog/3/n01440764/a.JPEG"))
    np.testing.assert_array_equal(np.rint(dataset[ALL] * 255)[0].transpose(1, 2, 0), as_stored)
    for wanted, says in [
        ({}, "choose a corruption; it has fog"),
        ({"corruption": "snow"}, "no corruption 'snow'; it has fog"),
        ({"corruption": "fog", "severity": 2}, "no severity '2'; it has 1, 3"),
    ]:
        with pytest.raises(ImageError, match=says):
            load_dataset("imagenet-c", **wanted)


# --- trees, folders, tables


def test_a_domain_is_chosen_and_classes_have_one_number_everywhere(home: Path) -> None:
    png_tree(home / "pacs", ["photo/dog/1", "photo/house/1", "sketch/house/1", "sketch/house/2"])
    photo, sketch = (load_dataset("pacs", domain=domain) for domain in ("photo", "sketch"))
    assert photo.classes == sketch.classes == ("dog", "house") and photo.title == "pacs photo"
    assert [*photo.labels] == [0, 1] and [*sketch.labels] == [1, 1]  # type: ignore[misc]
    for domain in (None, "cartoon"):
        with pytest.raises(ImageError, match="it has photo, sketch"):
            load_dataset("pacs", domain=domain)


def test_class_folders_that_are_numbers_keep_them_as_labels(tmp_path: Path) -> None:
    dataset = load_dataset(png_tree(tmp_path / "set", ["2/a", "10/a", "10/b"]))
    assert [*zip([*dataset.labels], [dataset.name(i) for i in range(3)], strict=True)] == [  # type: ignore[misc]
        (10, "10/a.png"),
        (10, "10/b.png"),
        (2, "2/a.png"),
    ]
    assert dataset.classes is None


def test_a_plain_folder_has_no_labels(tmp_path: Path) -> None:
    dataset = load_dataset(png_tree(tmp_path / "night", ["a", "b", "deeper/c"]))
    assert dataset.labels is None and dataset.classes is None and len(dataset) == 3
    assert repr(dataset) == "<night: 3 images of 32x32, without labels>"


@pytest.mark.parametrize(
    ("text", "labels", "classes"),
    [
        ("file,label\na.png,7\nb.png,3\n", [7, 3], None),
        ("label,extra,file\ndog,x,a.png\ncat,y,b.png\n", [1, 0], ("cat", "dog")),
        ("\ufefffile,label\r\nimages/a.png,0\r\nb.png,1\r\n", [0, 1], None),
    ],
)
def test_a_table_of_files_and_labels(
    tmp_path: Path, text: str, labels: list[int], classes: tuple | None
) -> None:
    folder = png_tree(tmp_path / "set", ["images/a", "b"])
    (folder / "labels.csv").write_text(text, encoding="utf-8")
    for source in (folder, folder / "labels.csv"):
        dataset = load_dataset(source)
        assert (
            dataset.labels is not None
            and dataset.labels.tolist() == labels
            and dataset.classes == classes
        )
        np.testing.assert_array_equal(dataset[ALL], FLOATS[:2])


def test_a_table_may_name_files_that_lie_elsewhere(tmp_path: Path, capsys) -> None:
    folder = png_tree(tmp_path / "set", ["a", "b"])
    (tmp_path / "table").mkdir()
    names = [str(folder / "a.png"), str(folder / "b.png")]
    (tmp_path / "table" / "labels.csv").write_text(
        "\n".join(["file,label", *(f"{name},1" for name in names)])
    )
    dataset = load_dataset(tmp_path / "table")
    assert [dataset.name(index) for index in range(2)] == names
    run = adapt(dataset, lambda images: np.full((len(images), 2), 0.5), "deployed")
    assert run.names == names
    code = main(
        [
            "corrupt",
            "--images",
            str(tmp_path / "table"),
            "--corruption",
            "fog",
            "--out",
            str(tmp_path / "foggy"),
        ]
    )
    assert code == 2 and "not your doing" not in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["a.png", "b.png"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,class\na.png,1\n", r"labels\.csv begins with .*file,label"),
        ("", r"labels\.csv begins with None"),
        ("file,label\n", r"labels\.csv lists no file"),
        ("file,label\na.png,1\ngone.png,2\n", r"labels\.csv, line 3: gone\.png is neither"),
        ("file,label\na.png\n", r"labels\.csv, line 2: a file and its label are needed"),
        ("file,label\n,4\n", r"labels\.csv, line 2: a file and its label are needed"),
        (b"file,label\n\xff\xfe,4\n", r"labels\.csv cannot be read as a CSV"),
    ],
)
def test_a_table_that_cannot_be_used(tmp_path: Path, text: str | bytes, says: str) -> None:
    save(tmp_path / "a.png")
    (tmp_path / "labels.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ImageError, match=says):
        load_dataset(tmp_path)


def test_files_are_decoded_when_asked_for_and_once(tmp_path: Path) -> None:
    folder = png_tree(tmp_path / "set", ["a/1", "a/2", "b/1"])
    dataset = load_dataset(folder)
    (folder / "a/2.png").write_bytes(b"this is text")
    np.testing.assert_array_equal(dataset[np.array([2, 0, 2])], FLOATS[[2, 0, 2]])
    with pytest.raises(ImageError, match=r"a/2\.png cannot be read as an image"):
        dataset[ALL]
    (folder / "b/1.png").unlink()
    np.testing.assert_array_equal(dataset[np.array([2])], FLOATS[[2]])
    assert dataset[slice(0, 0)].shape == (0, 3, 32, 32)


# --- what is refused


def test_an_empty_class_folder_is_named(tmp_path: Path) -> None:
    folder = png_tree(tmp_path / "set", ["a/1", "b/1"])
    (folder / "c").mkdir()
    (folder / "c" / "notes.txt").write_text("no image")
    with pytest.raises(ImageError, match=r"set/c holds no image"):
        load_dataset(folder)


def test_links_are_followed_unless_they_loop(tmp_path: Path) -> None:
    folder = png_tree(tmp_path / "set", ["a/1", "b/1"])
    png_tree(tmp_path / "elsewhere", ["1"])
    (folder / "c").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert load_dataset(folder).classes == ("a", "b", "c")
    for target in (folder, tmp_path, folder / "d"):  # its own folder, one above, itself
        (folder / "d").symlink_to(target, target_is_directory=True)
        with pytest.raises(ImageError, match=r"set/d is a link"):
            load_dataset(folder)
        (folder / "d").unlink()
    (folder / "a/2.png").symlink_to(folder / "a/2.png")
    with pytest.raises(ImageError, match=r"a/2\.png is a link to nothing or to itself"):
        load_dataset(folder)
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(ImageError, match="round is a link to nothing or to itself"):
        load_dataset(tmp_path / "round")


def test_images_of_several_sizes_ask_for_one(tmp_path: Path) -> None:
    save(tmp_path / "set/a/1.png"), save(tmp_path / "set/a/2.png", PIXELS[0, :20])
    with pytest.raises(ImageError, match=r"a/1\.png is 32x32, .*a/2\.png is 32x20; pass size=224"):
        load_dataset(tmp_path / "set")[ALL]
    assert load_dataset(tmp_path / "set", size=16)[ALL].shape == (2, 3, 16, 16)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (LABELS[:5], "20 images but 5 labels"),
        (LABELS + 1, "labels run from 1 to 10"),
        (LABELS - 1, "labels run from -1"),
        (LABELS / 2, "float64"),
        (LABELS[:, None], r"shape \(20, 1\)"),
    ],
)
def test_labels_must_match_the_images(home: Path, labels: np.ndarray, says: str) -> None:
    np.savez(home / "cifar10-test.npz", images=PIXELS, labels=labels)
    with pytest.raises(ImageError, match=rf"cifar10-test\.npz: .*{says}"):
        load_dataset("cifar10")


def test_arrays_that_cannot_be_used(home: Path) -> None:
    np.savez(home / "a.npz", pictures=PIXELS)
    with pytest.raises(ImageError, match=r"a\.npz holds no array 'images' \(it has pictures\)"):
        load_dataset(home / "a.npz")
    (home / "a.npz").write_bytes(b"PK but no archive")
    with pytest.raises(ImageError, match=r"a\.npz cannot be read"):
        load_dataset(home / "a.npz")
    np.save(home / "b.npy", PIXELS)
    assert load_dataset(home / "b.npy").labels is None
    with pytest.raises(ImageError, match="resizes files only"):
        load_dataset(home / "b.npy", size=16)


def test_the_unknown_is_answered_with_what_exists(home: Path) -> None:
    with pytest.raises(
        ImageError, match=r"mnist does not exist; give .*by name \(cifar10, cifar100"
    ):
        load_dataset("mnist")
    with pytest.raises(ImageError, match="pacs was not found as pacs or PACS"):
        load_dataset("pacs", domain="photo")
    with pytest.raises(ImageError, match="no split 'dev'; choose train or test"):
        load_dataset("cifar10", split="dev")
    np.savez(home / "cifar10-test.npz", images=PIXELS, labels=LABELS)
    with pytest.raises(ImageError, match=r"has no domains: it is an \.npz file"):
        load_dataset("cifar10", domain="photo")
    with pytest.raises(
        CorruptionError, match="'rain' does not exist; choose one of gaussian_noise"
    ):
        load_dataset("cifar10", corruption="rain")
    with pytest.raises(
        CorruptionError, match="severity 9 does not exist; choose one of 1, 2, 3, 4, 5"
    ):
        load_dataset("cifar10", corruption="fog", severity=9)
    (home / "empty").mkdir()
    with pytest.raises(ImageError, match="empty holds no image"):
        load_dataset(home / "empty")
    (home / "readme.txt").write_text("text")
    with pytest.raises(ImageError, match=r"readme\.txt holds no images"):
        load_dataset(home / "readme.txt")
    png_tree(home / "splits", ["train/a/1"])
    with pytest.raises(ImageError, match="splits has no folder for test"):
        load_dataset(home / "splits")


# --- the rest


@given(st.lists(st.integers(0, 19), min_size=1, max_size=30))
@settings(deadline=None, max_examples=30)
def test_a_subset_is_the_same_as_picking_from_the_whole(indices: list[int]) -> None:
    whole = Dataset(open_images(PIXELS), LABELS, CIFAR10, "twenty")
    part = whole.subset(indices)
    np.testing.assert_array_equal(part.pixels(), PIXELS[indices])
    np.testing.assert_array_equal(part[ALL], FLOATS[indices])
    assert part.labels is not None and part.labels.tolist() == LABELS[indices].tolist()
    assert [part.name(i) for i in range(len(part))] == [whole.name(i) for i in indices]


def test_a_dataset_is_images_to_everything_that_takes_images() -> None:
    whole = Dataset(open_images(PIXELS), LABELS)
    assert open_images(whole) is whole
    assert whole.fingerprint() == open_images(PIXELS).fingerprint()
    with pytest.raises(ImageError, match="no image is selected"):
        whole.subset([])


def test_names_are_recognised_however_they_are_spelled() -> None:
    assert (
        spelled("Cifar_100-C") == "cifar100-c"
        and spelled("OfficeHome") == "office-home"
        and spelled("x") is None
    )


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_every_corruption_is_recognised_as_a_folder_and_as_a_file(
    tmp_path: Path, name: str
) -> None:
    save(tmp_path / f"folders/{name}/1/dog/a.png")
    (tmp_path / "files").mkdir()
    np.save(tmp_path / "files" / f"{name}.npy", PIXELS[:5])
    np.save(tmp_path / "files" / "labels.npy", LABELS[:5])
    assert (recognise(tmp_path / "folders"), recognise(tmp_path / "files")) == (
        "imagenet-c",
        "cifar-c",
    )
