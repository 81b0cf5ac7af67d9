"""`open_images` and `load_dataset` agree: the same files, order, names and pixels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from soda_tta.data import Corrupted, Dataset, load_dataset, open_images
from soda_tta.data.write import write_corrupted
from soda_tta.errors import ImageError

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (10, 32, 32, 3), np.uint8)
ALL = slice(None)


@pytest.fixture(autouse=True)
def current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty current folder for each test."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def save(path: Path, pixels: np.ndarray = PIXELS[0]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


def photographs(folder: Path, classes: tuple[str, ...] = ("n01440764", "n01443537")) -> Path:
    """Four images of different sizes in class folders."""
    for number, (height, width) in enumerate([(300, 400), (280, 240), (224, 224), (90, 500)]):
        image = RANDOM.integers(0, 256, (height, width, 3), np.uint8)
        save(folder / classes[number % len(classes)] / f"{number}.png", image)
    return folder


def check_agreement(source: Any, **arguments: Any) -> None:
    images = open_images(source, **arguments)
    dataset = load_dataset(source, **arguments)
    assert len(images) == len(dataset)
    names = [images.name(i) for i in range(len(images))]
    assert names == [dataset.name(i) for i in range(len(dataset))]
    np.testing.assert_array_equal(images[ALL], dataset[ALL])
    assert images.card() == dataset.card() == dataset.subset(ALL).card()
    assert not isinstance(images, Dataset) and not hasattr(images, "labels")


@pytest.mark.parametrize("size", [None, 224, 112, (96, 128)])
@pytest.mark.parametrize("split", ["", "val"])
def test_an_imagenet_folder_gives_the_same_pixels_through_both(
    tmp_path: Path, split: str, size: Any
) -> None:
    photographs(tmp_path / "imagenet" / split)
    check_agreement(tmp_path / "imagenet", size=size)


@pytest.mark.parametrize("size", [224, 20, (96, 128)])
def test_any_other_folder_gives_the_same_pixels_through_both(tmp_path: Path, size: Any) -> None:
    photographs(tmp_path / "pets", ("cat", "dog"))
    check_agreement(tmp_path / "pets", size=size)
    save(tmp_path / "plain" / "b.png"), save(tmp_path / "plain" / "deep" / "a.png")
    check_agreement(tmp_path / "plain", size=size)
    check_agreement(tmp_path / "plain")


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        (None, "shorter side resized to 256 (bilinear), centre crop of 224x224; "),
        (224, "shorter side resized to 256 (bilinear), centre crop of 224x224; "),
        (112, "shorter side resized to 128 (bilinear), centre crop of 112x112; "),
    ],
)
def test_the_card_states_the_margin_of_wordnet_folders(
    tmp_path: Path, size: int | None, sentence: str
) -> None:
    photographs(tmp_path / "set")
    card = open_images(tmp_path / "set", size=size).card()
    assert list(card) == ["count", "size", "fingerprint", "resize"]
    assert card["count"] == 4 and card["size"] == [size or 224] * 2
    assert card["resize"].startswith(sentence)


def test_the_card_states_the_resize_of_other_sources(tmp_path: Path) -> None:
    photographs(tmp_path / "set", ("cat", "dog"))
    resized = open_images(tmp_path / "set", size=50)
    assert resized.card()["resize"].startswith("shorter side resized to 50 (bilinear)")
    corrupted = Corrupted(resized, "fog", 1)
    assert corrupted.card()["resize"] == resized.card()["resize"]
    assert open_images(PIXELS).card()["resize"] == "as they are"
    assert open_images(list(PIXELS)).card()["resize"] == "as they are"


def test_written_corruptions_of_imagenet_load_with_the_same_pixels(tmp_path: Path) -> None:
    clean = load_dataset(photographs(tmp_path / "set"))
    write_corrupted(clean, tmp_path / "foggy", ["fog"], [3])
    expected = Corrupted(clean, "fog", 3)[ALL]
    np.testing.assert_array_equal(load_dataset(tmp_path / "foggy")[ALL], expected)
    np.testing.assert_array_equal(open_images(tmp_path / "foggy")[ALL], expected)


def test_a_data_set_by_name_opens_without_its_labels(home: Path) -> None:
    np.savez(home / "cifar10-test.npz", images=PIXELS, labels=np.arange(10))
    for number, domain in enumerate(("photo", "sketch")):
        save(home / "pacs" / domain / "dog" / "1.png", PIXELS[number])
    save(home / "imagenet" / "val" / "n01440764" / "1.png", PIXELS[2])
    for name in ("cifar10", "CIFAR-10", "pacs/sketch", "imagenet", "imagenet/val"):
        check_agreement(name)
    np.testing.assert_array_equal(load_dataset("pacs/sketch").pixels(), PIXELS[1:2])
    for opening in (open_images, load_dataset):
        with pytest.raises(ImageError, match="choose a domain; it has photo, sketch"):
            opening("pacs")
        with pytest.raises(ImageError, match="there is no domain 'oil'; it has photo, sketch"):
            opening("pacs/oil")
    assert len(open_images(home / "pacs")) == 2  # as a path, a folder of images


def test_a_name_goes_before_a_folder_unless_no_data_home_holds_it(home: Path) -> None:
    save(Path("cifar10/test/cat/1.png"))
    check_agreement("cifar10")
    assert len(open_images("cifar10")) == 1
    np.savez(home / "cifar10-test.npz", images=PIXELS, labels=np.arange(10))
    assert len(open_images("cifar10")) == len(load_dataset("cifar10")) == 10
    assert len(open_images("./cifar10")) == len(open_images("cifar10/")) == 1
    assert len(open_images(Path("cifar10"))) == 1
    assert len(open_images("cifar10/test")) == len(load_dataset("cifar10/test")) == 1
    with pytest.raises(ImageError, match=r"pacs was not found .*get it from"):
        open_images("pacs")


def test_images_are_opened_whatever_their_labels_are(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=PIXELS, labels=np.array([0.5]))
    assert len(open_images(tmp_path / "a.npz")) == 10
    with pytest.raises(ImageError, match="labels are float64"):
        load_dataset(tmp_path / "a.npz")
    for number in range(3):
        save(tmp_path / "set" / f"{number}.png", PIXELS[number])
    (tmp_path / "set" / "labels.csv").write_text("file,label\n2.png,5\n")
    assert len(load_dataset(tmp_path / "set")) == 1
    assert len(open_images(tmp_path / "set")) == 3  # a table may label some of the images only
    save(tmp_path / "pets" / "cat" / "1.png"), (tmp_path / "pets" / "dog").mkdir()
    assert len(open_images(tmp_path / "pets")) == 1


def test_a_csv_file_opens_the_files_it_lists_in_its_order(tmp_path: Path) -> None:
    for number in range(3):
        save(tmp_path / "images" / f"{number}.png", PIXELS[number])
    table = tmp_path / "table.csv"
    table.write_text("file\n2.png\n0.png\n")
    images = open_images(table)
    np.testing.assert_array_equal(images[ALL], open_images(PIXELS[[2, 0]])[ALL])
    table.write_text("file,label\n2.png,\n0.png,1\n")
    assert images.fingerprint() == open_images(table).fingerprint()
    table.write_text("name,label\n2.png,3\n")
    with pytest.raises(ImageError, match="its first line must be: file"):
        open_images(table)


def test_only_the_test_split_is_opened_if_there_is_one(tmp_path: Path) -> None:
    save(tmp_path / "set" / "train" / "cat" / "1.png", PIXELS[0])
    assert len(open_images(tmp_path / "set")) == 1
    save(tmp_path / "set" / "val" / "cat" / "2.png", PIXELS[1])
    check_agreement(tmp_path / "set")
    np.testing.assert_array_equal(open_images(tmp_path / "set")[ALL], open_images(PIXELS[1:2])[ALL])
    save(tmp_path / "flat" / "test" / "1.png")
    assert open_images(tmp_path / "flat").name(0) == "1.png"


def test_official_batches_are_opened_and_a_cifar_c_folder_asks_for_a_file(tmp_path: Path) -> None:
    rows = np.hstack([np.zeros((10, 1), np.uint8), PIXELS.transpose(0, 3, 1, 2).reshape(10, -1)])
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "test_batch.bin").write_bytes(rows.tobytes())
    check_agreement(tmp_path / "batches")
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    np.save(folder / "fog.npy", PIXELS)
    np.save(folder / "labels.npy", np.zeros(10, np.uint8))
    with pytest.raises(ImageError, match=r"give one of them, as .*fog\.npy"):
        open_images(folder)
    assert len(open_images(folder / "fog.npy")) == 10  # all severities: the file as it is
    assert len(load_dataset(folder / "fog.npy", severity=2)) == 2


def test_one_image_file_opens_through_both(tmp_path: Path) -> None:
    save(tmp_path / "a.png", PIXELS[3])
    np.testing.assert_array_equal(load_dataset(tmp_path / "a.png").pixels(), PIXELS[3:4])
    np.testing.assert_array_equal(
        open_images(tmp_path / "a.png")[ALL], open_images(PIXELS[3:4])[ALL]
    )
