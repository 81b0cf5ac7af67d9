"""Folders and tables of image files: ImageNet, domains, classes, `labels.csv`."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from soda_tta import adapt
from soda_tta.cli import main
from soda_tta.data import load_dataset
from soda_tta.data.decoding import read_image
from soda_tta.data.resizing import Resize
from soda_tta.errors import ImageError

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
def test_the_standard_view_is_224_pixels_for_any_image(
    height: int, width: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = save(
        tmp_path_factory.mktemp("view") / "a.png", np.full((height, width, 3), 77, np.uint8)
    )
    view = read_image(path, Resize.imagenet())
    assert view.shape == (224, 224, 3) and view.min() == view.max() == 77


def test_a_subset_of_imagenet_keeps_its_labels_if_classes_are_specified(home: Path) -> None:
    save(home / "val/n02/a.png"), save(home / "val/n07/a.png")
    numbering = [f"n{number:02}" for number in range(10)]
    dataset = load_dataset(home / "val", classes=numbering)
    assert dataset.labels is not None and dataset.labels.tolist() == [2, 7]
    with pytest.raises(ImageError, match=r"n07 is not one of the 5 classes"):
        load_dataset(home / "val", classes=numbering[:5])


@pytest.mark.parametrize("family", ["", "weather/"])
def test_imagenet_c_is_selected_by_corruption_and_severity_and_not_cropped_again(
    home: Path, family: str
) -> None:
    stored = RANDOM.integers(0, 256, (224, 224, 3), np.uint8)
    for severity in (1, 3):
        save(home / f"ImageNet-C/{family}fog/{severity}/n01440764/a.JPEG", stored, quality=85)
    dataset = load_dataset("imagenet-c", corruption="fog", severity=3)
    as_stored = np.asarray(Image.open(home / f"ImageNet-C/{family}fog/3/n01440764/a.JPEG"))
    np.testing.assert_array_equal(np.rint(dataset[ALL] * 255)[0].transpose(1, 2, 0), as_stored)
    for arguments, message in [
        ({}, "choose a corruption; it has fog"),
        ({"corruption": "snow"}, "no corruption 'snow'; it has fog"),
        ({"corruption": "fog", "severity": 2}, "no severity '2'; it has 1, 3"),
    ]:
        with pytest.raises(ImageError, match=message):
            load_dataset("imagenet-c", **arguments)


# --- folders and tables


def test_a_class_has_the_same_number_in_all_domains(home: Path) -> None:
    png_tree(home / "pacs", ["photo/dog/1", "photo/house/1", "sketch/house/1", "sketch/house/2"])
    photo, sketch = (load_dataset("pacs", domain=domain) for domain in ("photo", "sketch"))
    assert photo.classes == sketch.classes == ("dog", "house") and photo.title == "pacs photo"
    assert [*photo.labels] == [0, 1] and [*sketch.labels] == [1, 1]  # type: ignore[misc]
    for domain in (None, "cartoon"):
        with pytest.raises(ImageError, match="it has photo, sketch"):
            load_dataset("pacs", domain=domain)


def test_class_folders_named_by_numbers_keep_them_as_labels(tmp_path: Path) -> None:
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
def test_a_table_of_files_and_labels_is_read(
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


def test_a_table_may_list_files_in_other_folders(tmp_path: Path, capsys) -> None:
    folder = png_tree(tmp_path / "set", ["a", "b"])
    (tmp_path / "table").mkdir()
    names = [str(folder / "a.png"), str(folder / "b.png")]
    (tmp_path / "table" / "labels.csv").write_text(
        "\n".join(["file,label", *(f"{name},1" for name in names)])
    )
    dataset = load_dataset(tmp_path / "table")
    assert [dataset.name(index) for index in range(2)] == names
    run = adapt(dataset, lambda images: np.full((len(images), 2), 0.5), method="deployed")
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
    ("text", "message"),
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
def test_a_table_that_cannot_be_read_is_refused(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    save(tmp_path / "a.png")
    (tmp_path / "labels.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ImageError, match=message):
        load_dataset(tmp_path)


def test_files_are_decoded_on_first_use_and_once(tmp_path: Path) -> None:
    folder = png_tree(tmp_path / "set", ["a/1", "a/2", "b/1"])
    dataset = load_dataset(folder)
    (folder / "a/2.png").write_bytes(b"this is text")
    np.testing.assert_array_equal(dataset[np.array([2, 0, 2])], FLOATS[[2, 0, 2]])
    with pytest.raises(ImageError, match=r"a/2\.png cannot be read as an image"):
        dataset[ALL]
    (folder / "b/1.png").unlink()
    np.testing.assert_array_equal(dataset[np.array([2])], FLOATS[[2]])
    assert dataset[slice(0, 0)].shape == (0, 3, 32, 32)
