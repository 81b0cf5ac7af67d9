"""Groups of images that belong together, by folder, column, EXIF tag or name."""

from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from soda_tta.data import Corrupted, group_images, groups_from_rule, load_dataset, open_images
from soda_tta.errors import ImageError

TAGS = {name: number for number, name in ExifTags.TAGS.items()}


def save(path: Path, **tags: str) -> Path:
    """A small image file with EXIF tags."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    for name, value in tags.items():
        if name == "DateTimeOriginal":
            exif.get_ifd(ExifTags.IFD.Exif)[TAGS[name]] = value
        else:
            exif[TAGS[name]] = value
    Image.new("RGB", (16, 16)).save(path, exif=exif.tobytes())
    return path


def cameras(folder: Path) -> Path:
    for name in ("north/1.png", "north/2.png", "south/1.png"):
        save(folder / name)
    return folder


def test_folders_are_groups(tmp_path: Path) -> None:
    groups, names = group_images(cameras(tmp_path), "folder")
    assert groups.tolist() == [0, 0, 1] and groups.dtype == np.int64
    assert names == ["north", "south"]


def test_a_list_of_files_has_groups_too(tmp_path: Path) -> None:
    cameras(tmp_path)
    paths = [tmp_path / name for name in ("south/1.png", "north/2.png", "south/1.png")]
    assert group_images(paths, "folder")[0].tolist() == [1, 0, 1]


def test_the_first_capture_group_of_a_name_is_the_group(tmp_path: Path) -> None:
    for name in ("a_cam1_07.png", "b_cam2_07.png", "c_cam1_08.png"):
        save(tmp_path / name)
    assert group_images(tmp_path, r"name:_cam(\d)_")[1] == ["1", "2"]
    groups, names = group_images(tmp_path, r"name:\d\d")  # without a capture group
    assert names == ["07", "08"]
    assert groups.tolist() == [0, 0, 1]


def test_a_column_of_the_table_that_lists_the_images(tmp_path: Path) -> None:
    cameras(tmp_path / "images")
    table = tmp_path / "labels.csv"
    lines = ["file,label,site", "north/1.png,0,x", "south/1.png,1,y", "north/2.png,0,x"]
    table.write_text("\n".join(lines))
    assert group_images(table, "csv:site")[0].tolist() == [0, 1, 0]  # in the order of the table
    assert group_images(tmp_path, "csv:site")[0].tolist() == [0, 0, 1]  # in the order of paths
    dataset = load_dataset(table).subset([1, 0])
    assert group_images(dataset, "csv:site")[0].tolist() == [1, 0]
    with pytest.raises(ImageError, match="no column 'camera'; it has file, label, site"):
        group_images(table, "csv:camera")


def test_a_file_with_two_values_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "1.png")
    (tmp_path / "t.csv").write_text("file,site\n1.png,x\n1.png,y\n")
    with pytest.raises(ImageError, match=r"line 3: 1\.png is listed with two values"):
        group_images(tmp_path / "t.csv", "csv:site")


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tif"])
def test_exif_tags_of_every_format(tmp_path: Path, suffix: str) -> None:
    save(tmp_path / f"1{suffix}", Model="A", DateTimeOriginal="2026:11:18 09:30:12")
    save(tmp_path / f"2{suffix}", Model="B", DateTimeOriginal="2026:11:18 09:59:59")
    save(tmp_path / f"3{suffix}", Model="A", DateTimeOriginal="2026:11:18 10:00:00")
    assert group_images(tmp_path, "exif:Model")[0].tolist() == [0, 1, 0]
    assert group_images(tmp_path, "exif:DateTimeOriginal")[0].tolist() == [0, 1, 2]
    groups, names = group_images(tmp_path, "exif:DateTimeOriginal:hour")
    assert groups.tolist() == [0, 0, 1]
    assert names == ["2026:11:18 09", "2026:11:18 10"]


def test_images_that_a_rule_says_nothing_about_are_one_group(tmp_path: Path) -> None:
    save(tmp_path / "1.jpg", Model="A")
    save(tmp_path / "2.jpg")
    save(tmp_path / "3.png")
    with pytest.warns(UserWarning, match="nothing about 2 of 3 images, such as 2.jpg"):
        groups, names = group_images(tmp_path, "exif:Model")
    assert groups.tolist() == [0, 1, 1]
    assert names == ["A", "unknown"]


def test_no_pixel_is_decoded(tmp_path: Path) -> None:
    cameras(tmp_path)
    whole = (tmp_path / "north/2.png").read_bytes()
    (tmp_path / "south/1.png").write_bytes(whole[: len(whole) // 2])
    assert group_images(tmp_path, "folder")[0].tolist() == [0, 0, 1]


def test_groups_of_corrupted_images_are_those_of_their_files(tmp_path: Path) -> None:
    foggy = Corrupted(open_images(cameras(tmp_path)), "contrast")
    groups = groups_from_rule(foggy, "folder")
    assert groups is not None and groups.tolist() == [0, 0, 1]
    assert groups_from_rule(foggy, None) is None


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("camera", "'camera' is not a valid rule for groups; use folder, csv:COLUMN"),
        ("csv", "'csv' is not a valid rule"),
        ("folder:2", "'folder:2' is not a valid rule"),
        ("name:(", "'\\(' is not a valid regular expression"),
        ("name:xyz", "matches none of the 3 images"),
        ("name:png", "puts all 3 images in one group, 'png'"),
        ("csv:site", "not listed in a CSV file"),
        ("exif:Modell", "is not the name of an EXIF tag; use one such as Model"),
        ("exif:DateTime:week", "cut to day, hour or minute"),
        ("exif:Model", "matches none"),
    ],
)
def test_errors_say_what_is_wrong_with_a_rule(tmp_path: Path, rule: str, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        group_images(cameras(tmp_path), rule)


def test_arrays_have_no_names() -> None:
    with pytest.raises(ImageError, match="in Python, pass one number per image"):
        group_images(np.zeros((3, 8, 8, 3), np.uint8), "folder")
