"""`load_dataset`: what it refuses, subsets, names and layouts."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from soda_tta.data import Dataset, load_dataset, open_images
from soda_tta.data.catalogue import spelled
from soda_tta.data.corruptions import CORRUPTIONS
from soda_tta.data.formats.cifar import CIFAR10
from soda_tta.data.layouts import recognise
from soda_tta.errors import CorruptionError, ImageError

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


def test_images_of_several_sizes_need_a_size(tmp_path: Path) -> None:
    save(tmp_path / "set/a/1.png"), save(tmp_path / "set/a/2.png", PIXELS[0, :20])
    with pytest.raises(ImageError, match=r"a/1\.png is 32x32, .*a/2\.png is 32x20; pass size=224"):
        load_dataset(tmp_path / "set")[ALL]
    assert load_dataset(tmp_path / "set", size=16)[ALL].shape == (2, 3, 16, 16)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS[:5], "20 images but 5 labels"),
        (LABELS + 1, "labels run from 1 to 10"),
        (LABELS - 1, "labels run from -1"),
        (LABELS / 2, "float64"),
        (LABELS[:, None], r"shape \(20, 1\)"),
    ],
)
def test_labels_must_match_the_images(home: Path, labels: np.ndarray, message: str) -> None:
    np.savez(home / "cifar10-test.npz", images=PIXELS, labels=labels)
    with pytest.raises(ImageError, match=rf"cifar10-test\.npz: .*{message}"):
        load_dataset("cifar10")


def test_arrays_that_are_not_images_are_refused(home: Path) -> None:
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


def test_errors_for_unknown_names_list_the_choices(home: Path) -> None:
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
    with pytest.raises(ImageError, match=r"readme\.txt is not a data set"):
        load_dataset(home / "readme.txt")
    png_tree(home / "splits", ["train/a/1"])
    with pytest.raises(ImageError, match="splits has no folder for test"):
        load_dataset(home / "splits")


# --- subsets, names, layouts


@given(st.lists(st.integers(0, 19), min_size=1, max_size=30))
@settings(deadline=None, max_examples=30)
def test_a_subset_equals_indexing_the_whole(indices: list[int]) -> None:
    whole = Dataset(open_images(PIXELS), LABELS, CIFAR10, "twenty")
    part = whole.subset(indices)
    np.testing.assert_array_equal(part.pixels(), PIXELS[indices])
    np.testing.assert_array_equal(part[ALL], FLOATS[indices])
    assert part.labels is not None and part.labels.tolist() == LABELS[indices].tolist()
    assert [part.name(i) for i in range(len(part))] == [whole.name(i) for i in indices]


def test_a_dataset_is_a_set_of_images() -> None:
    whole = Dataset(open_images(PIXELS), LABELS)
    assert open_images(whole) is whole
    assert whole.fingerprint() == open_images(PIXELS).fingerprint()
    with pytest.raises(ImageError, match="no image is selected"):
        whole.subset([])


def test_names_are_recognised_in_any_spelling() -> None:
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
