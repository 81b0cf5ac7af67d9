"""Files that cannot be read, and images of formats that are not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from soda_tta import adapt
from soda_tta.data import group_images, load_dataset, open_images
from soda_tta.errors import ImageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two images and two files that are not."""
    place = tmp_path / "night"
    place.mkdir()
    for name in ("1.png", "3.png"):
        Image.new("RGB", (8, 8), "red").save(place / name)
    whole = (place / "1.png").read_bytes()
    (place / "0.png").write_bytes(b"not an image")  # the first gives the size of the set
    (place / "2.png").write_bytes(whole[: len(whole) // 2])
    return place


def test_an_unreadable_file_fails_with_the_remedy(folder: Path) -> None:
    with pytest.raises(ImageError, match=r'0\.png cannot .* leave it out with on_bad_image="skip"'):
        open_images(folder)
    with pytest.raises(ImageError, match=r"0\.png cannot") as error:
        load_dataset(folder)
    assert "on_bad_image" not in str(error.value)  # it has no such argument


def test_unreadable_files_are_named_left_out_and_on_the_card(folder: Path) -> None:
    with pytest.warns(UserWarning, match=r"2 of 4 files .* left out: 0\.png, 2\.png\.$"):
        images = open_images(folder, on_bad_image="skip")
    assert [images.name(index) for index in range(len(images))] == ["1.png", "3.png"]
    assert images.card()["skipped"] == ["0.png", "2.png"]
    (folder / "0.png").unlink(), (folder / "2.png").unlink()
    whole = open_images(folder, on_bad_image="skip")
    assert "skipped" not in whole.card() and whole.fingerprint() == images.fingerprint()


@pytest.mark.filterwarnings("ignore:.*left out")
def test_files_that_a_table_lists_may_be_missing(folder: Path) -> None:
    table = folder / "t.csv"
    table.write_text("file,site\ngone.png,a\n1.png,a\n2.png,a\n3.png,b\n")
    images = open_images(table, on_bad_image="skip")
    assert images.skipped == ["gone.png", "2.png"]
    assert group_images(images, "csv:site")[0].tolist() == [0, 1]
    with pytest.raises(ImageError, match=r"gone\.png is neither"):
        open_images(table)


def test_nothing_readable_and_a_wrong_choice_are_errors(folder: Path) -> None:
    with pytest.raises(ImageError, match="none of the 2 files can be read"):
        open_images([folder / "0.png", folder / "2.png"], on_bad_image="skip")
    with pytest.raises(ImageError, match="use 'fail' or 'skip'"):
        open_images(np.zeros((1, 8, 8, 3), np.uint8), on_bad_image="drop")


def test_formats_that_are_not_read_are_counted(tmp_path: Path) -> None:
    for name in ("a.AVIF", "sub/b.avif", "c.dng", "notes.txt", "._d.avif"):
        (tmp_path / "x" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "x" / name).touch()
    counts = r"2 \.avif files, 1 \.dng file, which cannot be read: convert them"
    with pytest.raises(ImageError, match=f"holds no image .* It holds {counts}"):
        open_images(tmp_path / "x")
    Image.new("RGB", (8, 8)).save(tmp_path / "x" / "e.png")
    with pytest.warns(UserWarning, match=f"ignored {counts}"):
        assert len(open_images(tmp_path / "x")) == 1


def test_class_folders_count_them_too(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "cat" / "a.png")
    (tmp_path / "cat" / "b.avif").touch()
    with pytest.warns(UserWarning, match=r"ignored 1 \.avif file,"):
        load_dataset(tmp_path)


def test_a_large_set_fails_before_anything_is_paid(
    folder: Path, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "0.png").unlink()
    monkeypatch.setattr("soda_tta.data.lazy.KEPT_BYTES", 0)  # nothing is decoded when it is opened
    images = open_images(folder)
    with pytest.raises(ImageError, match=r'2\.png cannot .* on_bad_image="skip"'):
        adapt(images, model, method="deployed")
    assert model.asked == 0
