"""Image files of every format, and every way they can be damaged."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image

from soda_tta.data import open_images
from soda_tta.data.decoding import read_image, warn_once
from soda_tta.data.files import find_image_files
from soda_tta.data.resizing import Resize
from soda_tta.errors import ImageError

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")  # Pillow warns about damaged tags

PICTURE = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
FORMATS = ["PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM"]


def encoded(
    picture: np.ndarray | Image.Image = PICTURE, form: str = "PNG", **options: object
) -> bytes:
    buffer = io.BytesIO()
    (picture if isinstance(picture, Image.Image) else Image.fromarray(picture)).save(
        buffer, form, **options
    )
    return buffer.getvalue()


def written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG of these chunks, each with a correct checksum."""
    packed = (
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


# --- decoding


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_files_are_decoded_pixel_by_pixel(form: str, tmp_path: Path) -> None:
    np.testing.assert_array_equal(
        read_image(written(tmp_path / "a.bin", encoded(form=form))), PICTURE
    )


@pytest.mark.parametrize("form", ["JPEG", "WEBP", "GIF"])
def test_lossy_files_are_decoded_as_pillow_decodes_them(form: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.bin", encoded(form=form))
    np.testing.assert_array_equal(read_image(path), np.asarray(Image.open(path).convert("RGB")))


def test_floating_point_pixels_are_refused_because_their_range_is_unknown(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.tiff", encoded(Image.fromarray(np.full((2, 2), 0.5, np.float32)), "TIFF")
    )
    with pytest.raises(ImageError, match=r"a.tiff .*floating"):
        read_image(path)


@pytest.mark.parametrize(
    ("size", "crop"),
    [
        ((6, 8), np.s_[:, :]),  # its own size
        ((6, 6), np.s_[:, 1:7]),  # the height fits: columns 1 to 6 of 8
        ((6, 4), np.s_[:, 2:6]),
    ],
)
def test_the_centre_is_kept_when_only_cropping_is_needed(
    size: tuple[int, int], crop: tuple, tmp_path: Path
) -> None:
    np.testing.assert_array_equal(
        read_image(written(tmp_path / "a.png", encoded()), Resize(size)), PICTURE[crop]
    )


@given(
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    size=st.tuples(st.integers(1, 30), st.integers(1, 30)),
)
@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_image_is_resized_to_any_size(
    height: int, width: int, size: tuple[int, int], tmp_path: Path
) -> None:
    path = written(tmp_path / "a.png", encoded(np.full((height, width, 3), 99, np.uint8)))
    got = read_image(path, Resize(size))
    assert got.shape == (*size, 3) and (got == 99).all()


# --- listing


def test_images_are_found_below_the_folder_in_a_stable_order(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/10.JPG", "a.jpeg", "z.webp"):
        written(tmp_path / name, b"")
    written(tmp_path / "notes.txt", b"")
    (tmp_path / "folder.png").mkdir()
    assert [str(p.relative_to(tmp_path)) for p in find_image_files(tmp_path)] == [
        "a.jpeg",
        "b/10.JPG",
        "b/2.png",
        "z.webp",
    ]


def test_links_that_loop_or_lead_nowhere_are_skipped(tmp_path: Path) -> None:
    written(tmp_path / "a.png", encoded())
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self.png").symlink_to(tmp_path / "self.png")
    (tmp_path / "dangling.png").symlink_to(tmp_path / "absent.png")
    assert find_image_files(tmp_path) == [tmp_path / "a.png"]
    assert len(open_images(tmp_path)) == 1


def test_a_link_to_a_folder_elsewhere_is_followed_and_one_inside_is_not(tmp_path: Path) -> None:
    for name in ("set/a/1.png", "elsewhere/2.png"):
        written(tmp_path / name, encoded())
    (tmp_path / "set" / "b").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "set" / "latest").symlink_to(tmp_path / "set" / "a", target_is_directory=True)
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "set", target_is_directory=True)
    names = [str(path.relative_to(tmp_path)) for path in find_image_files(tmp_path / "set")]
    assert names == ["set/a/1.png", "set/b/2.png"]


def test_hidden_files_and_folders_are_skipped(tmp_path: Path) -> None:
    for name in ("a.png", "._a.png", ".thumbnails/a.png"):
        written(tmp_path / name, encoded())
    assert find_image_files(tmp_path) == [tmp_path / "a.png"]


def test_a_path_that_is_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ImageError, match="loop is a link to nothing or to itself"):
        open_images(tmp_path / "loop")


def test_the_error_for_a_folder_without_images_lists_the_suffixes(tmp_path: Path) -> None:
    written(tmp_path / "deep" / "notes.txt", b"")
    with pytest.raises(ImageError, match=r"holds no image \(.*\.jpeg.*\.png"):
        open_images(tmp_path)


# --- damaged files


DAMAGED = {
    "empty": b"",
    "text": b"this is not an image",
    "HTML": b"<!DOCTYPE html><html></html>",
    "a PNG's first bytes": encoded()[:8],
    "half a PNG": encoded()[: len(encoded()) // 2],
    "a PNG without its end": encoded()[:-30],
    "half a JPEG": encoded(form="JPEG")[: len(encoded(form="JPEG")) // 2],
    "a JPEG's last bytes missing": encoded(np.zeros((64, 64, 3), np.uint8), "JPEG")[:-20],
    "half a BMP": encoded(form="BMP")[:60],
    "half a WEBP": encoded(form="WEBP")[:40],
    "half a TIFF": encoded(form="TIFF")[:60],
    "no pixels": png((b"IHDR", struct.pack(">IIBBBBB", 0, 0, 8, 2, 0, 0, 0)), (b"IEND", b"")),
    "a wrong checksum": encoded().replace(b"IDAT", b"IDAX"),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    written(tmp_path / "good.png", encoded())
    path = written(tmp_path / "holiday.png", content)
    with pytest.raises(ImageError, match=r"holiday.png cannot be read as an image: "):
        read_image(path)
    with pytest.raises(ImageError, match=r"holiday.png"):
        open_images(tmp_path)


def test_a_file_that_is_missing_from_a_list_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"absent\.png"):
        open_images([written(tmp_path / "a.png", encoded()), tmp_path / "absent.png"])


def test_a_folder_in_a_list_of_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="deep cannot be read as an image"):
        open_images([str(written(tmp_path / "deep" / "a.png", encoded())), str(tmp_path / "deep")])


HUGE = png(
    (b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)),
    (b"IDAT", zlib.compress(bytes(100_000))),
    (b"IEND", b""),
)


def test_a_decompression_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = written(tmp_path / "bomb.png", HUGE)  # 10 GB if it were unpacked
    with pytest.raises(
        ImageError, match=r"bomb.png would unpack to more pixels than is safe.*shrink it first"
    ):
        open_images(tmp_path)
    assert path.exists()


def test_an_image_that_pillow_only_warns_about_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "large.png", encoded())  # 48 pixels
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)
    with pytest.raises(ImageError, match="more pixels than is safe"):
        read_image(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 48)
    assert read_image(path).shape == (6, 8, 3)


CONTENTS = {form: encoded(form=form) for form in FORMATS}


@settings(
    deadline=None, max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    form=st.sampled_from(FORMATS),
    cut=st.integers(0, 400),
    place=st.integers(0, 400),
    byte=st.integers(0, 255),
)
@example(form="PNG", cut=0, place=16, byte=255)
def test_damage_raises_image_errors_only(
    form: str, cut: int, place: int, byte: int, tmp_path: Path
) -> None:
    content = bytearray(CONTENTS[form])
    content[place % len(content)] = byte
    path = written(
        tmp_path / "damaged",
        bytes(content[: len(content) - cut] if cut < len(content) else content),
    )
    try:
        assert read_image(path).shape[2] == 3
    except ImageError as error:
        assert "damaged" in str(error)


@pytest.mark.filterwarnings("default")
def test_values_of_twelve_bits_are_warned_about_once(tmp_path) -> None:
    warn_once.cache_clear()
    for name, top in (("a", 4000), ("b", 3000), ("c", 60_000)):
        Image.fromarray(np.full((6, 8), top, np.uint16)).save(tmp_path / f"{name}.png")
    with pytest.warns(UserWarning, match="scale the values to 16 bits") as warned:
        images = open_images(tmp_path)[slice(None)]
    assert len(warned) == 1 and images[2].max() == np.float32(60_000) / np.float32(65_535)
