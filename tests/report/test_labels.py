"""Labels from files, data sets and arrays."""

import numpy as np
import pytest
from PIL import Image

from soda_tta.errors import ImageError
from soda_tta.report.labels import read_classes, read_labels

NAMES = ["cat/1.png", "cat/2.png", "dog/1.png"]


def read(source, names=NAMES, classes=None, class_count=2):
    return read_labels(source, names, classes, class_count)


def test_numbers_are_read_from_every_kind_of_file(tmp_path) -> None:
    np.save(tmp_path / "l.npy", np.array([0, 0, 1]))
    np.savez(tmp_path / "l.npz", labels=np.array([0, 0, 1]), images=np.zeros(3))
    (tmp_path / "l.txt").write_text("0\n0\n1\n")
    (tmp_path / "l.csv").write_text("label\n0\n0\n1\n")
    (tmp_path / "b.txt").write_text("0\n0\n1\n", encoding="utf-8-sig")
    (tmp_path / "f.csv").write_text("file,label\ndog/1.png,1\ncat/1.png,0\ncat/2.png,0\n")
    for source in (*tmp_path.glob("?.*"), [0, 0, 1], np.array([0, 0, 1])):
        assert read(source).values.tolist() == [0, 0, 1], source


def test_whole_numbers_are_read_as_numpy_and_pandas_write_them(tmp_path) -> None:
    names, values = [str(place) for place in range(13)], [*range(12), np.nan]
    np.save(tmp_path / "l.npy", np.array(values))
    np.savetxt(tmp_path / "l.txt", values)
    (tmp_path / "l.csv").write_text(
        "label\n" + "".join(f"{value}\n" for value in map(float, values))
    )
    for source in (*tmp_path.glob("l.*"), values):
        assert read(source, names, class_count=12).values.tolist() == [*range(12), -1], source


def test_labels_may_cover_only_some_images(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("image,class\ndog/1.png,1\n")
    labels = read(tmp_path / "l.csv")
    assert labels.values.tolist() == [-1, -1, 1] and labels.known.sum() == 1
    (tmp_path / "l.txt").write_text("\n1\n\n")  # an empty line: the class is unknown
    assert read(tmp_path / "l.txt").values.tolist() == [-1, 1, -1]


def test_files_are_matched_by_their_last_part_if_that_is_unique(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("file,label\n/camera/a.png,1\n/camera/b.png,0\n")
    assert read(tmp_path / "l.csv", ["b.png", "a.png"]).values.tolist() == [0, 1]


def test_names_are_numbered_by_the_models_classes(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("file,label\ncat/1.png,cat\ncat/2.png,cat\ndog/1.png,dog\n")
    assert read(tmp_path / "l.csv", classes=("dog", "cat")).values.tolist() == [1, 1, 0]
    for class_count in (None, 2, 3):  # the number of names does not give their order
        with pytest.raises(ImageError, match=r"names, such as 'cat'.*classes="):
            read(tmp_path / "l.csv", class_count=class_count)
    (tmp_path / "names.txt").write_text("dog\ncat\nbird\n")
    assert read_classes(tmp_path / "names.txt") == ("dog", "cat", "bird")
    (tmp_path / "names.txt").write_text("dog\ncat\nbird\n", encoding="utf-8-sig")
    assert read_classes(tmp_path / "names.txt") == ("dog", "cat", "bird")
    with pytest.raises(ImageError, match="'cat' is not one"):
        read(tmp_path / "l.csv", classes=("dog", "bird"))


def test_class_names_must_be_complete_and_unique(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("file,label\ncat/1.png,cat\ndog/1.png,dog\n")
    for classes in (("class", "cat", "dog"), ("cat",)):  # a header, and a missing name
        message = f"{len(classes)} class names, but the model has 2 classes"
        with pytest.raises(ImageError, match=message):
            read(tmp_path / "l.csv", classes=classes)
    with pytest.raises(ImageError, match="'cat' occurs twice"):
        read(tmp_path / "l.csv", classes=("cat", "dog", "cat"), class_count=None)


def test_contradicting_and_unmatched_labels_are_reported(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("file,label\ncat/1.png,0\nelse/9.png,1\n")
    with pytest.warns(UserWarning, match="1 of 2 labels do not belong to an image"):
        assert read(tmp_path / "l.csv").values.tolist() == [0, -1, -1]
    (tmp_path / "l.csv").write_text("file,label\ncat/1.png,0\ncat/1.png,1\n")
    with pytest.raises(ImageError, match=r"cat/1.png has two labels, 0 and 1"):
        read(tmp_path / "l.csv")
    (tmp_path / "l.csv").write_text("file,label\n1.png,0\n")
    with pytest.raises(ImageError, match=r"1.png is the name of several images.* as in cat/1.png"):
        read(tmp_path / "l.csv")


def test_names_in_a_folders_labels_csv_need_class_names(tmp_path) -> None:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    (tmp_path / "labels.csv").write_text(
        "file,label\n" + "".join(f"{name},{name[:3]}\n" for name in NAMES)
    )
    with pytest.raises(ImageError, match=r"names, such as 'cat'.*classes="):
        read(tmp_path)
    assert read(tmp_path, classes=("dog", "cat")).values.tolist() == [1, 1, 0]
    (tmp_path / "labels.csv").write_text("file,label\n" + "".join(f"{name},1\n" for name in NAMES))
    assert read(tmp_path).values.tolist() == [1, 1, 1]


def test_class_folders_give_labels_and_names(tmp_path) -> None:
    for name in NAMES:
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "set" / name)
    labels = read(tmp_path / "set")
    assert labels.values.tolist() == [0, 0, 1] and labels.classes == ("cat", "dog")
    message = r"2 class folders, but the model has 3 classes.*classes="
    with pytest.raises(ImageError, match=message):
        read(tmp_path / "set", class_count=3)  # the number of the class "dog" is ambiguous
    named = read(tmp_path / "set", classes=("bird", "cat", "dog"), class_count=3)
    assert named.values.tolist() == [1, 1, 2]
    (tmp_path / "set" / "cat" / "._1.png").write_bytes(b"of a Mac")
    assert read(tmp_path / "set").values.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\n1\n", "2 labels for 3 images"),
        ("0\n1\n7\n", "label 7 is not one"),
        ("0\n1\n-3\n", "label -3 is not one"),
        ("\n\n\n", "none of the labels belongs"),
    ],
)
def test_invalid_labels_are_refused(tmp_path, text: str, message: str) -> None:
    (tmp_path / "l.txt").write_text(text)
    with pytest.raises(ImageError, match=message):
        read(tmp_path / "l.txt")


def test_files_without_labels_are_refused(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("a,b\n1,2\n")
    (tmp_path / "l.npy").write_bytes(b"no array")
    np.savez(tmp_path / "l.npz", images=np.zeros(3))
    for name, message in (
        ("l.csv", "must be: file,label"),
        ("l.npy", "cannot be read"),
        ("l.npz", "cannot be read"),
    ):
        with pytest.raises(ImageError, match=message):
            read(tmp_path / name)
    with pytest.raises(ImageError, match="nowhere"):
        read(str(tmp_path / "nowhere"))
