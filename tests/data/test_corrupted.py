"""A corrupted data set: computed lazily in any batch, and written to disk and read again."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from soda_tta.data import Corrupted, Dataset, load_dataset, open_images
from soda_tta.data.corruptions import CORRUPTIONS, corrupt
from soda_tta.data.write import write_corrupted
from soda_tta.errors import CorruptionError, ImageError, RunError

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (12, 32, 32, 3), np.uint8)
LABELS = np.arange(12) % 3
CLASSES = ("cat", "dog", "elk")
ALL = slice(None)


def clean() -> Dataset:
    return Dataset(open_images(PIXELS), LABELS, CLASSES, "pets")


def as_bytes(images: np.ndarray) -> np.ndarray:
    return np.rint(images * 255).astype(np.uint8).transpose(0, 2, 3, 1)


# --- on the fly


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_lazy_corruption_equals_corrupting_the_whole_array(name: str) -> None:
    dataset = Corrupted(clean(), name, severity=3, seed=7)
    np.testing.assert_array_equal(as_bytes(dataset[ALL]), corrupt(PIXELS, name, 3, 7))
    assert (
        dataset.labels is not None
        and dataset.labels.tolist() == LABELS.tolist()
        and dataset.classes == CLASSES
    )
    assert dataset.title == f"pets, {name} 3"


@given(
    batches=st.lists(st.lists(st.integers(0, 11), max_size=6), max_size=4),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=30)
def test_an_image_does_not_depend_on_its_batch(batches: list[list[int]], seed: int) -> None:
    expected = corrupt(PIXELS, "shot_noise", 5, seed)
    dataset = Corrupted(clean(), "shot_noise", 5, seed)
    for batch in batches:
        np.testing.assert_array_equal(as_bytes(dataset[np.array(batch, int)]), expected[batch])


def test_a_set_too_large_to_keep_is_computed_again_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("soda_tta.data.lazy.KEPT_BYTES", 100)
    dataset = Corrupted(clean(), "snow", 2)
    some = np.array([4, 5, 1, 4])
    np.testing.assert_array_equal(as_bytes(dataset[some]), corrupt(PIXELS, "snow", 2)[some])
    assert dataset[slice(0, 0)].shape == (0, 3, 32, 32)


def test_any_set_of_images_can_be_corrupted_even_a_corrupted_one() -> None:
    floats = PIXELS.transpose(0, 3, 1, 2) / 255
    twice = Corrupted(Corrupted(floats, "fog", 1), "contrast", 2)
    np.testing.assert_array_equal(
        as_bytes(twice[ALL]), corrupt(corrupt(PIXELS, "fog", 1), "contrast", 2)
    )
    assert twice.labels is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"corruption": "rain"}, "corruption 'rain' does not exist; choose one of gaussian_noise"),
        ({"corruption": "fog", "severity": 0}, "severity 0 does not exist"),
        ({"corruption": "fog", "seed": -1}, "seed is -1"),
        ({"corruption": "fog", "constants": "tiny"}, "constant set 'tiny' does not exist"),
        ({"corruption": "frost", "frost": "nowhere"}, "nowhere is not a folder"),
    ],
)
def test_wrong_arguments_fail_before_the_first_image(arguments: dict, message: str) -> None:
    with pytest.raises(CorruptionError, match=message):
        Corrupted(clean(), **arguments)


# --- on disk


def test_a_folder_is_copied_as_png(tmp_path: Path) -> None:
    for number, name in enumerate(("a/1.jpg", "a/2.png", "b/1.bmp")):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(PIXELS[number]).save(tmp_path / "in" / name)
    source = load_dataset(tmp_path / "in")
    assert write_corrupted(source, tmp_path / "out", ["fog"], [3], seed=1) == [tmp_path / "out"]
    written = load_dataset(tmp_path / "out")
    assert [written.name(i) for i in range(3)] == ["a/1.png", "a/2.png", "b/1.png"]
    assert written.classes == source.classes == ("a", "b")
    np.testing.assert_array_equal(written[ALL], Corrupted(source, "fog", 3, seed=1)[ALL])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_several_corruptions_go_to_folders_of_their_own_and_load_again(tmp_path: Path) -> None:
    write_corrupted(clean(), tmp_path / "out", ["fog", "snow"], [1, 4])
    for name in ("fog", "snow"):
        for severity in (1, 4):
            written = load_dataset(tmp_path / "out", corruption=name, severity=severity)
            order = np.argsort(LABELS, kind="stable")  # by class folder
            np.testing.assert_array_equal(
                as_bytes(written[ALL]), corrupt(PIXELS, name, severity)[order]
            )
            assert written.classes == CLASSES and [*written.labels] == sorted(LABELS)  # type: ignore[misc]


def test_labels_that_are_not_class_folders_are_written_as_a_table(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        Image.fromarray(PIXELS[number]).save(folder / f"{number}.png")
    (folder / "labels.csv").write_text("file,label\n2.png,5\n0.png,9\n1.png,5\n")
    write_corrupted(load_dataset(folder), tmp_path / "out", ["fog"], [5])
    written = load_dataset(tmp_path / "out")
    assert written.labels is not None and written.labels.tolist() == [5, 9, 5]
    np.testing.assert_array_equal(written[ALL], Corrupted(load_dataset(folder), "fog", 5)[ALL])


def test_the_cifar_c_layout_is_the_published_one(tmp_path: Path) -> None:
    out = tmp_path / "PETS-C"
    write_corrupted(clean(), out, ["fog"], [1], "cifar-c")
    write_corrupted(clean(), out, ["snow"], [1], "cifar-c")  # a corruption can be added later
    rows, labels = np.load(out / "fog.npy"), np.load(out / "labels.npy")
    assert rows.shape == (60, 32, 32, 3) and rows.dtype == np.uint8
    np.testing.assert_array_equal(labels, np.tile(LABELS, 5))
    np.testing.assert_array_equal(
        rows, np.concatenate([corrupt(PIXELS, "fog", s) for s in range(1, 6)])
    )
    stored = load_dataset(out, corruption="snow", severity=2)
    np.testing.assert_array_equal(stored[ALL], Corrupted(clean(), "snow", 2)[ALL])
    other = Dataset(open_images(PIXELS), LABELS[::-1].copy(), CLASSES, "others")
    with pytest.raises(ImageError, match=r"labels\.npy holds other labels than others"):
        write_corrupted(other, out, ["frost"], [1], "cifar-c")
    assert sorted(path.name for path in out.iterdir()) == ["fog.npy", "labels.npy", "snow.npy"]


def test_the_imagenet_c_layout_is_the_published_one(tmp_path: Path) -> None:
    write_corrupted(clean(), tmp_path / "out", ["contrast"], [2, 3], "imagenet-c")
    files = sorted(path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.*"))
    assert len(files) == 24 and files[0] == Path("contrast/2/cat/00000.JPEG")
    with Image.open(tmp_path / "out" / files[0]) as picture:
        assert picture.format == "JPEG" and picture.size == (32, 32)
        tables = picture.quantization  # type: ignore[attr-defined]
    Image.fromarray(PIXELS[0]).save(tmp_path / "quality85.jpg", quality=85)
    with Image.open(tmp_path / "quality85.jpg") as picture:
        assert tables == picture.quantization  # type: ignore[attr-defined]
    written = load_dataset(tmp_path / "out", corruption="contrast", severity=3)
    assert written.classes == CLASSES and len(written) == 12


@pytest.mark.parametrize("layout", ["cifar-c", "imagenet-c"])
def test_published_layouts_need_labels(layout: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=f"pets has no labels, which the layout {layout} stores"):
        write_corrupted(
            Dataset(open_images(PIXELS), title="pets"), tmp_path / "out", ["fog"], [1], layout
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("layout", ["folder", "cifar-c", "imagenet-c"])
def test_existing_files_are_not_overwritten(layout: str, tmp_path: Path) -> None:
    write_corrupted(clean(), tmp_path / "out", ["fog"], [1], layout)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(RunError, match="exists and is not overwritten"):
        write_corrupted(clean(), tmp_path / "out", ["fog"], [1], layout)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("failure", [ImageError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("layout", ["folder", "cifar-c", "imagenet-c"])
def test_a_failure_leaves_no_partial_output(
    layout: str, failure: type[BaseException], tmp_path: Path
) -> None:
    def advance(images: int) -> None:
        raise failure("in the middle")

    with pytest.raises((failure, RunError)):
        write_corrupted(clean(), tmp_path / "out", ["fog"], [1], layout, advance=advance)
    assert not list(tmp_path.iterdir())


def test_two_images_with_one_target_name_are_refused(tmp_path: Path) -> None:
    for name in ("a.png", "a.bmp"):
        Image.fromarray(PIXELS[0]).save(tmp_path / name)
    with pytest.raises(ImageError, match=r"a\.bmp and a\.png would both become a\.png"):
        write_corrupted(load_dataset(tmp_path), tmp_path / "out", ["fog"], [1])
