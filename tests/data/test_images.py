"""`open_images`: the same pixels from every kind of source, and errors for everything else."""

import io
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from soda_tta.data import Images, open_images
from soda_tta.errors import ImageError

SHAPE = (7, 6, 5, 3)  # n, height, width, channels
PIXELS = np.random.default_rng(0).integers(0, 256, SHAPE, np.uint8)
EXPECTED = PIXELS.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
FLOATS = PIXELS.astype(np.float32) / np.float32(255)
LABELS = torch.arange(7)


def folder(path: Path) -> Path:
    for index, picture in enumerate(PIXELS):
        Image.fromarray(picture).save(path / f"{index}.png")
    return path


def saved(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def zipped(path: Path, **arrays: np.ndarray) -> Path:
    np.savez_compressed(path, **arrays)
    return path


class Dataset:
    """A map-style data set, in the terms of PyTorch."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class Pairs(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(EXPECTED[index]), index


def pictures() -> list[Image.Image]:
    return [Image.fromarray(picture) for picture in PIXELS]


SOURCES: dict[str, Callable[[Path], Any]] = {
    "bytes, channels last": lambda _: PIXELS,
    "bytes, channels first": lambda _: PIXELS.transpose(0, 3, 1, 2),
    "floats, channels last": lambda _: FLOATS,
    "floats, channels first": lambda _: EXPECTED,
    "float64": lambda _: EXPECTED.astype(np.float64),
    "big-endian floats": lambda _: EXPECTED.astype(">f4"),
    "a tensor": lambda _: torch.from_numpy(EXPECTED),
    ".npy of bytes": lambda path: saved(path / "a.npy", PIXELS),
    ".npy of floats": lambda path: saved(path / "a.npy", EXPECTED),
    ".npy in Fortran's order": lambda path: saved(path / "a.npy", np.asfortranarray(PIXELS)),
    ".npy by its name": lambda path: str(saved(path / "a.npy", PIXELS)),
    ".npz called .npy": lambda path: zipped(path / "a.npz", images=PIXELS).rename(path / "a.npy"),
    ".npy called .npz": lambda path: saved(path / "a.npy", PIXELS).rename(path / "a.npz"),
    ".npz": lambda path: zipped(path / "a.npz", images=PIXELS, labels=np.arange(7)),
    "a folder": folder,
    "a list of files": lambda path: sorted(folder(path).glob("*.png")),
    "a tuple of names": lambda path: tuple(
        str(file) for file in sorted(folder(path).glob("*.png"))
    ),
    "a list of arrays": lambda _: list(PIXELS),
    "a list of pictures": lambda _: pictures(),
    "a data set of arrays": lambda _: Dataset(list(EXPECTED)),
    "a data set of pairs": lambda _: Dataset([(picture, 3) for picture in PIXELS]),
    "a data set of pictures and labels": lambda _: Dataset(
        [[picture, "cat"] for picture in pictures()]
    ),
    "a PyTorch data set": lambda _: Pairs(),
    "a PyTorch loader of pairs": lambda _: torch.utils.data.DataLoader(Pairs(), batch_size=3),
    "a PyTorch loader of images": lambda _: torch.utils.data.DataLoader(EXPECTED, batch_size=3),
    "a generator of images": lambda _: (picture for picture in PIXELS),
    "a generator of pictures": lambda _: (picture for picture in pictures()),
    "a generator of pairs": lambda _: ((picture, 1) for picture in FLOATS),
    "a generator of batches": lambda _: (PIXELS[start : start + 3] for start in (0, 3, 6)),
    "a generator of batches with labels": lambda _: (
        (EXPECTED[s : s + 3], LABELS[s : s + 3]) for s in (0, 3, 6)
    ),
    "a generator of files": lambda path: (file for file in sorted(folder(path).glob("*.png"))),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_pixels_and_the_same_fingerprint(
    source: Callable, tmp_path: Path
) -> None:
    images = open_images(source(tmp_path))
    assert (len(images), tuple(images.size)) == (7, (6, 5))
    pixels = images[slice(0, 7)]
    assert pixels.dtype == np.float32 and pixels.flags.c_contiguous
    np.testing.assert_array_equal(pixels, EXPECTED)
    np.testing.assert_array_equal(images[np.array([5, 0, 0, 3])], EXPECTED[[5, 0, 0, 3]])
    np.testing.assert_array_equal(images[np.arange(7) % 2 == 1], EXPECTED[1::2])
    assert images[slice(3, 3)].shape == images[np.array([], int)].shape == (0, 3, 6, 5)
    assert images.fingerprint() == open_images(PIXELS).fingerprint()


GREY = {
    "n, height, width": PIXELS[..., 0],
    "one channel last": PIXELS[..., :1],
    "one channel first": PIXELS[..., :1].transpose(0, 3, 1, 2),
    "flat pictures": [Image.fromarray(picture) for picture in PIXELS[..., 0]],
    "flat arrays": list(PIXELS[..., 0]),
}


@pytest.mark.parametrize("source", GREY.values(), ids=GREY)
def test_grey_images_are_repeated_in_three_channels(source: Any) -> None:
    images = open_images(source)
    assert tuple(images.size) == (6, 5)
    np.testing.assert_array_equal(images[slice(None)], np.repeat(EXPECTED[:, :1], 3, axis=1))


def test_a_set_too_large_to_keep_is_decoded_on_each_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soda_tta.data.lazy.KEPT_BYTES", 0)
    images = open_images(folder(tmp_path))
    assert not images.fits_in_memory
    np.testing.assert_array_equal(images[np.array([6, 2])], EXPECTED[[6, 2]])
    assert images[slice(0, 0)].shape == (0, 3, 6, 5)
    (tmp_path / "4.png").write_bytes(b"gone")
    np.testing.assert_array_equal(images[slice(0, 4)], EXPECTED[:4])
    with pytest.raises(ImageError, match=r"4.png cannot be read"):
        images[slice(0, 5)]


def test_an_npy_file_is_memory_mapped(tmp_path: Path) -> None:
    assert isinstance(open_images(saved(tmp_path / "a.npy", PIXELS)).array, np.memmap)


def test_an_iterator_is_read_once_into_an_unnamed_file() -> None:
    reads = []

    def stream() -> Iterator[np.ndarray]:
        for picture in PIXELS:
            reads.append(1)
            yield picture

    images = open_images(stream())
    assert isinstance(images.array, np.memmap)
    images[slice(None)], images[slice(None)]
    assert len(reads) == 7


def test_a_set_of_images_is_returned_as_it_is() -> None:
    images = open_images(PIXELS)
    assert open_images(images) is images


@given(st.data())
@settings(deadline=None)
def test_any_float_or_byte_array_of_three_channels_is_a_set_of_images(data: st.DataObject) -> None:
    count, height, width = (data.draw(st.integers(1, 5)) for _ in range(3))
    shape = (
        (count, 3, height, width)
        if height in (1, 3) or data.draw(st.booleans())
        else (count, height, width, 3)
    )
    dtype = data.draw(st.sampled_from([np.uint8, np.float16, np.float32, np.float64]))
    elements = st.integers(0, 255) if dtype == np.uint8 else st.floats(0, 1, width=16)
    array = data.draw(hnp.arrays(dtype, shape, elements=elements))
    images = open_images(array)
    pixels = images[slice(None)]
    assert pixels.shape == (count, 3, height, width) and (len(images), tuple(images.size)) == (
        count,
        (height, width),
    )
    assert pixels.dtype == np.float32 and pixels.min() >= 0 and pixels.max() <= 1
    planar = array if shape[1:] == (3, height, width) else array.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(pixels, planar / (255 if dtype == np.uint8 else 1), atol=1e-6)


# --- names and fingerprints


def test_images_are_named_by_their_files_or_their_positions(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "0.png").rename(tmp_path / "deep" / "zero.png")
    inside = open_images(tmp_path)
    assert [inside.name(i) for i in (0, 6)] == ["1.png", str(Path("deep") / "zero.png")]
    assert open_images([tmp_path / "3.png"]).name(0) == str(tmp_path / "3.png")
    assert open_images(PIXELS).name(4) == "4"


def test_images_are_indexed_by_positions_only_and_convert_to_an_array() -> None:
    images = open_images(np.arange(4 * 12, dtype=np.uint8).reshape(4, 2, 2, 3))
    np.testing.assert_array_equal(images[[2, 0]], images[:][[2, 0]])
    np.testing.assert_array_equal(np.asarray(images), images[:])
    assert images[[]].shape == (0, 3, 2, 2) and images[
        np.array([True, False, False, True])
    ].shape == (2, 3, 2, 2)
    with pytest.raises(ValueError, match="always makes a copy"):
        images.__array__(copy=False)
    several = ((Ellipsis, slice(None, None, -1)), (0, 1), (slice(None), [0, 2]), ([0, 1], 0))
    for index in (0, *several, np.zeros((2, 2), int)):
        with pytest.raises(ImageError, match="by a slice or a list of positions"):
            images[index]  # type: ignore[index]


@given(position=st.tuples(*(st.integers(0, extent - 1) for extent in PIXELS.shape)))
@settings(max_examples=20, deadline=None)
def test_one_pixel_changes_the_fingerprint(position: tuple[int, ...]) -> None:
    changed = PIXELS.copy()
    changed[position] ^= 1
    assert open_images(changed).fingerprint() != open_images(PIXELS).fingerprint()


def test_order_count_and_shape_change_the_fingerprint() -> None:
    sets = [
        PIXELS,
        PIXELS[::-1],
        PIXELS[:6],
        np.zeros((7, 6, 5, 3), np.uint8),
        np.zeros((7, 5, 6, 3), np.uint8),
    ]
    prints = {open_images(np.ascontiguousarray(array)).fingerprint() for array in sets}
    assert len(prints) == 5
    assert all(text.startswith("sha256:") for text in prints)


# --- sizes


def test_mixed_sizes_name_both_files_and_the_remedy(tmp_path: Path) -> None:
    folder(tmp_path)
    Image.new("RGB", (9, 4)).save(tmp_path / "wide.png")
    message = r"0.png is 5x6, .*wide.png is 9x4; pass size=224, for example, to resize them all"
    with pytest.raises(ImageError, match=message):
        open_images(tmp_path)
    assert open_images(tmp_path, size=8)[slice(None)].shape == (8, 3, 8, 8)


@pytest.mark.parametrize("size", [(4, 6), [4, 6], (np.int64(4), 6)])
def test_a_size_is_height_and_width(tmp_path: Path, size: Any) -> None:
    images = open_images(folder(tmp_path), size=size)
    assert tuple(images.size) == (4, 6) and images[slice(0, 1)].shape == (1, 3, 4, 6)


@pytest.mark.parametrize("size", [0, -1, (8, 0), (8, 8, 8)])
def test_a_size_that_is_not_valid_is_refused(tmp_path: Path, size: Any) -> None:
    with pytest.raises(ImageError, match="size"):
        open_images(folder(tmp_path), size=size)


def test_arrays_are_not_resized() -> None:
    with pytest.raises(ImageError, match="size= resizes files only"):
        open_images(PIXELS, size=8)
    assert len(open_images(PIXELS, size=(6, 5))) == 7


@pytest.mark.parametrize("wrap", [list, Dataset, iter], ids=["list", "data set", "iterator"])
def test_mixed_sizes_in_a_sequence_name_the_position(wrap: Callable) -> None:
    source = wrap([PIXELS[0], PIXELS[1], PIXELS[2][:, :4]])
    with pytest.raises(ImageError, match="image 2 is 4x6, the first is 5x6"):
        open_images(source)[slice(None)]


# --- what is not a set of images


NOT_IMAGES = {
    "int32": (np.zeros((2, 3, 4, 4), np.int32), "holds int32; images are uint8, or floats"),
    "truth values": (np.zeros((2, 3, 4, 4), bool), "holds bool"),
    "text": (np.full((2, 3, 4, 4), "a"), "holds <U1"),
    "objects": (np.full((2, 3, 4, 4), None), "holds object"),
    "empty": (np.zeros((0, 3, 4, 4), np.uint8), "holds no image"),
    "no pixels": (np.zeros((5, 0, 0, 3), np.uint8), "holds no"),
    "one image": (PIXELS[0], r"shape \(6, 5, 3\); for one image pass"),
    "flat": (np.zeros((2, 12), np.uint8), r"shape \(2, 12\); a set of images has four dimensions"),
    "one number": (np.uint8(3), "four dimensions"),
    "video": (np.zeros((2, 3, 4, 4, 4), np.uint8), "four dimensions"),
    "four channels": (np.zeros((2, 4, 4, 4), np.uint8), r"one of its axes must hold 3 channels"),
    "an empty list": ([], "empty"),
    "an empty stream": (iter([]), "gave no image"),
    "a number": (42, "int is not a set of images; pass an array, a folder"),
    "nothing": (None, "NoneType is not a set of images"),
    "objects in a stream": (iter([object()]), "image 0 holds object"),
    "words in a stream": (iter(["cat"]), "cat cannot be read as an image"),
    "a dictionary": ({"images": PIXELS}, "dict is not a set of images"),
    "items that are dictionaries": ([{"image": PIXELS[0]}], "image 0"),
}


@pytest.mark.parametrize(("source", "message"), NOT_IMAGES.values(), ids=NOT_IMAGES)
def test_what_is_not_a_set_of_images_is_refused_and_described(source: Any, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        open_images(source)


BAD_FLOATS = {
    "bytes as floats": (
        PIXELS.astype(np.float32),
        "holds floats from 0 to 255; images are uint8, or floats in",
    ),
    "below zero": (FLOATS - 0.5, "holds floats from -0.5"),
    "NaN": (np.full((2, 3, 4, 4), np.nan), "from nan to nan"),
    "infinity": (np.full((2, 3, 4, 4), np.inf), "from inf to inf"),
}


@pytest.mark.parametrize(("array", "message"), BAD_FLOATS.values(), ids=BAD_FLOATS)
def test_floats_outside_0_to_1_are_refused_when_they_are_read(
    array: np.ndarray, message: str, tmp_path: Path
) -> None:
    for source in (array, saved(tmp_path / "a.npy", array)):
        with pytest.raises(ImageError, match=message):
            open_images(source)[slice(None)]
    with pytest.raises(ImageError, match="image 0 holds floats"):
        open_images(iter(array))


def test_the_fingerprint_finds_one_bad_pixel_before_the_first_query() -> None:
    array = np.zeros((3000, 3, 2, 2), np.float32)
    array[2999, 1, 1, 1] = np.nan
    with pytest.raises(ImageError, match="nan"):
        open_images(array).fingerprint()


class Touch:
    """A pickle that leaves a file behind when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_pickles_are_never_opened(suffix: str, tmp_path: Path) -> None:
    trap = tmp_path / "opened"
    array = np.empty(1, object)
    array[0] = Touch(trap)
    path = tmp_path / f"a{suffix}"
    np.save(path, array) if suffix == ".npy" else np.savez(path, images=array)
    with pytest.raises(ImageError, match="cannot be read as an array of images"):
        open_images(path)
    path.write_bytes(pickle.dumps(Touch(trap)))
    with pytest.raises(ImageError, match="cannot be read as an array of images"):
        open_images(path)
    assert not trap.exists()


def npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, PIXELS)
    return buffer.getvalue()


def npz(method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("images.npy", npy())
    return buffer.getvalue()


BAD_FILES = {
    "empty npy": ("a.npy", b""),
    "text npy": ("a.npy", b"hello"),
    "half an npy": ("a.npy", npy()[:300]),
    "empty npz": ("a.npz", b""),
    "text npz": ("a.npz", b"hello"),
    "half an npz": ("a.npz", npz()[:400]),
    "an npz with a damaged member": (
        "a.npz",
        npz().replace(bytes(PIXELS[3]), bytes(len(bytes(PIXELS[3])))),
    ),
    "a compressed npz with a damaged member": (
        "a.npz",
        (d := npz(zipfile.ZIP_DEFLATED))[:90] + bytes(40) + d[130:],
    ),
}


@pytest.mark.parametrize(("name", "content"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_damaged_array_file_is_named(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ImageError, match=rf"{name} cannot be read as an array of images"):
        open_images(tmp_path / name)


def test_the_error_for_an_npz_without_images_lists_its_arrays(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"holds no array 'images' \(it has x, y\)"):
        open_images(zipped(tmp_path / "a.npz", x=PIXELS, y=np.arange(7)))


def test_an_npz_whose_images_are_not_an_array_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("images", "see folder")
    with pytest.raises(ImageError, match=r"holds \|S10; images are uint8"):
        open_images(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["absent", "absent.npy", "absent.png", "absent.npz"])
def test_a_path_that_does_not_exist_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=f"{name} does not exist"):
        open_images(tmp_path / name)


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "images.txt").write_text("1,2,3")
    with pytest.raises(
        ImageError, match=r"images.txt is not a data set; give a folder, an image, "
    ):
        open_images(tmp_path / "images.txt")


def test_one_image_file_is_a_set_of_one(tmp_path: Path) -> None:
    images: Images = open_images(folder(tmp_path) / "2.png")
    np.testing.assert_array_equal(images[slice(None)], EXPECTED[2:3])
