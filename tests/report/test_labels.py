import numpy as np
import pytest
from PIL import Image

from soda_tta.errors import ImageError
from soda_tta.report.labels import read_classes, read_labels

NAMES = ["cat/1.png", "cat/2.png", "dog/1.png"]


def read(source, names=NAMES, classes=None, of=2):
    return read_labels(source, names, classes, of)


def test_numbers_from_every_kind_of_file(tmp_path) -> None:
    np.save(tmp_path / "l.npy", np.array([0, 0, 1]))
    np.savez(tmp_path / "l.npz", labels=np.array([0, 0, 1]), images=np.zeros(3))
    (tmp_path / "l.txt").write_text("0\n0\n1\n")
    (tmp_path / "l.csv").write_text("label\n0\n0\n1\n")
    (tmp_path / "b.txt").write_text("0\n0\n1\n", encoding="utf-8-sig")
    (tmp_path / "f.csv").write_text("file,label\ndog/1.png,1\ncat/1.png,0\ncat/2.png,0\n")
    for source in (*tmp_path.glob("?.*"), [0, 0, 1], np.array([0, 0, 1])):
        assert read(source).values.tolist() == [0, 0, 1], source


def test_whole_numbers_are_numbers_however_numpy_and_pandas_write_them(tmp_path) -> None:
    names, values = [str(place) for place in range(13)], [*range(12), np.nan]
    np.save(tmp_path / "l.npy", np.array(values))
    np.savetxt(tmp_path / "l.txt", values)
    (tmp_path / "l.csv").write_text(
        "label\n" + "".join(f"{value}\n" for value in map(float, values))
    )
    for source in (*tmp_path.glob("l.*"), values):
        assert read(source, names, of=12).values.tolist() == [*range(12), -1], source


def test_some_of_the_images_are_enough(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("image,class\ndog/1.png,1\n")
    labels = read(tmp_path / "l.csv")
    assert labels.values.tolist() == [-1, -1, 1] and labels.known.sum() == 1
    (tmp_path / "l.txt").write_text("\n1\n\n")  # an empty line: nobody has looked
    assert read(tmp_path / "l.txt").values.tolist() == [-1, 1, -1]


def test_files_are_found_by_their_last_part_where_that_is_enough(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("file,label\n/camera/a.png,1\n/camera/b.png,0\n")
    assert read(tmp_path / "l.csv", ["b.png", "a.png"]).values.tolist() == [0, 1]


def test_names_are_numbered_by_the_models_classes(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("file,label\ncat/1.png,cat\ncat/2.png,cat\ndog/1.png,dog\n")
    assert read(tmp_path / "l.csv", classes=("dog", "cat")).values.tolist() == [1, 1, 0]
    for of in (None, 2, 3):  # as many names as classes say nothing of their order
        with pytest.raises(ImageError, match=r"names, such as 'cat'.*--classes"):
            read(tmp_path / "l.csv", of=of)
    (tmp_path / "names.txt").write_text("dog\ncat\nbird\n")
    assert read_classes(tmp_path / "names.txt") == ("dog", "cat", "bird")
    (tmp_path / "names.txt").write_text("dog\ncat\nbird\n", encoding="utf-8-sig")
    assert read_classes(tmp_path / "names.txt") == ("dog", "cat", "bird")
    with pytest.raises(ImageError, match="'cat' is none"):
        read(tmp_path / "l.csv", classes=("dog", "bird"))


def test_class_names_are_those_of_the_model_each_once(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("file,label\ncat/1.png,cat\ndog/1.png,dog\n")
    for classes, of in ((("class", "cat", "dog"), 2), (("cat",), 2)):  # a header, a name too few
        with pytest.raises(
            ImageError, match=f"{len(classes)} class names, and the model has {of} classes"
        ):
            read(tmp_path / "l.csv", classes=classes, of=of)
    with pytest.raises(ImageError, match="'cat' stands twice"):
        read(tmp_path / "l.csv", classes=("cat", "dog", "cat"), of=None)


def test_labels_that_contradict_or_belong_to_nothing_are_told(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("file,label\ncat/1.png,0\nelse/9.png,1\n")
    with pytest.warns(UserWarning, match="1 of 2 labels belong to no image"):
        assert read(tmp_path / "l.csv").values.tolist() == [0, -1, -1]
    (tmp_path / "l.csv").write_text("file,label\ncat/1.png,0\ncat/1.png,1\n")
    with pytest.raises(ImageError, match=r"cat/1.png has two labels, 0 and 1"):
        read(tmp_path / "l.csv")
    (tmp_path / "l.csv").write_text("file,label\n1.png,0\n")
    with pytest.raises(
        ImageError, match=r"1.png is the name of several images; .* as in cat/1.png"
    ):
        read(tmp_path / "l.csv")


def test_names_in_the_list_of_a_folder_have_no_order_either(tmp_path) -> None:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    (tmp_path / "labels.csv").write_text(
        "file,label\n" + "".join(f"{name},{name[:3]}\n" for name in NAMES)
    )
    with pytest.raises(ImageError, match=r"names, such as 'cat'.*--classes"):
        read(tmp_path)
    assert read(tmp_path, classes=("dog", "cat")).values.tolist() == [1, 1, 0]
    (tmp_path / "labels.csv").write_text("file,label\n" + "".join(f"{name},1\n" for name in NAMES))
    assert read(tmp_path).values.tolist() == [1, 1, 1]


def test_a_folder_of_classes_tells_labels_and_names(tmp_path) -> None:
    for name in NAMES:
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "set" / name)
    labels = read(tmp_path / "set")
    assert labels.values.tolist() == [0, 0, 1] and labels.classes == ("cat", "dog")
    with pytest.raises(
        ImageError, match=r"2 class folders, and the model has 3 classes.*--classes"
    ):
        read(tmp_path / "set", of=3)  # which number has a dog?
    assert read(tmp_path / "set", classes=("bird", "cat", "dog"), of=3).values.tolist() == [1, 1, 2]
    (tmp_path / "set" / "cat" / "._1.png").write_bytes(b"of a Mac")
    assert read(tmp_path / "set").values.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0\n1\n", "2 labels for 3 images"),
        ("0\n1\n7\n", "label 7 is none"),
        ("0\n1\n-3\n", "label -3 is none"),
        ("\n\n\n", "no label belongs"),
    ],
)
def test_what_cannot_be_right_is_refused(tmp_path, text: str, says: str) -> None:
    (tmp_path / "l.txt").write_text(text)
    with pytest.raises(ImageError, match=says):
        read(tmp_path / "l.txt")


def test_files_that_are_no_labels_are_refused(tmp_path) -> None:
    (tmp_path / "l.csv").write_text("a,b\n1,2\n")
    (tmp_path / "l.npy").write_bytes(b"no array")
    np.savez(tmp_path / "l.npz", images=np.zeros(3))
    for name, says in (
        ("l.csv", "begin with: file,label"),
        ("l.npy", "cannot be read"),
        ("l.npz", "cannot be read"),
    ):
        with pytest.raises(ImageError, match=says):
            read(tmp_path / name)
    with pytest.raises(ImageError, match="no data set and no path"):
        read(str(tmp_path / "nowhere"))
