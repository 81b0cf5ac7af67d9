"""Image files as they are: exact pixels by hand for every depth, mode, orientation and frame."""

import io
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image

from soda_tta.data import load_dataset, open_images
from soda_tta.data.colours import colour_of
from soda_tta.data.decoding import decode, decode_bytes
from soda_tta.data.resizing import Resize
from soda_tta.errors import ImageError

RED, GREEN, BLUE, WHITE, BLACK = [255, 0, 0], [0, 255, 0], [0, 0, 255], [255] * 3, [0] * 3


def encoded(picture: Any, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    image.save(buffer, form, **options)
    return buffer.getvalue()


def bytes_of(*values: Any) -> np.ndarray:
    return np.array(values, np.uint8)


def png_of_16_bits(kind: int, values: list[list[int]], *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG of one row with 16 bits per channel; 0: grey, 2: RGB, 4: grey and alpha, 6: RGBA."""
    row = b"\0" + np.array(values, ">u2").tobytes()
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", len(values), 1, 16, kind, 0, 0, 0)),
        *chunks,
        (b"IDAT", zlib.compress(row)),
        (b"IEND", b""),
    ]
    packed = (
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def tiff_of_16_bits(values: list[list[int]]) -> bytes:
    """A TIFF of one row of RGB with 16 bits per channel, without compression."""
    pixels = np.array(values, "<u2").tobytes()
    after = 8 + 2 + 9 * 12 + 4  # where the entries end
    entries = [
        *((256, 3, 1, len(values)), (257, 3, 1, 1), (258, 3, 3, after), (259, 3, 1, 1)),
        *((262, 3, 1, 2), (273, 4, 1, after + 6), (277, 3, 1, 3), (278, 3, 1, 1)),
        (279, 4, 1, len(pixels)),
    ]
    packed = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    header = b"II*\0" + struct.pack("<IH", 8, len(entries))
    return header + packed + bytes(4) + struct.pack("<HHH", 16, 16, 16) + pixels


def palette(**options: Any) -> bytes:
    image = Image.fromarray(bytes_of([0, 1], [2, 1])).convert("P")
    image.putpalette([*RED, *GREEN, *BLUE])
    return encoded(image, **options)


GREYS_OF_16_BITS = np.array([[0, 255, 32_768, 65_535]], np.uint16)
DEEP = [[[value] * 3 for value in GREYS_OF_16_BITS[0].tolist()]]
CMYK = Image.fromarray(
    bytes_of([[0, 0, 0, 0], [255, 0, 0, 0], [0, 0, 0, 255], [0, 100, 0, 55]]), "CMYK"
)
FROM_CMYK = [[WHITE, [0, 255, 255], BLACK, [200, 122, 200]]]  # 200 - 200 x 100 / 255 = 122
HALF = encoded(bytes_of([[0, 100, 200, 128], [9, 8, 7, 0], [1, 2, 3, 255]]))
OVER = "transparent, laid over white"
# name: (file, pixels, notes)
FILES: dict[str, tuple[bytes, list, tuple[str, ...]]] = {
    "grey": (encoded(bytes_of([0, 7, 255])), [[BLACK, [7] * 3, WHITE]], ()),
    "black and white": (encoded(Image.new("1", (1, 1), 1)), [[WHITE]], ()),
    "grey of 16 bits": (encoded(Image.fromarray(GREYS_OF_16_BITS)), DEEP, ()),
    "grey of 16 bits, TIFF": (encoded(Image.fromarray(GREYS_OF_16_BITS), "TIFF"), DEEP, ()),
    "grey of 16 bits with a transparent value": (
        png_of_16_bits(0, [[77], [65_535]], (b"tRNS", struct.pack(">H", 77))),
        [[[65_535] * 3, [65_535] * 3]],
        (OVER,),
    ),
    "RGB of 16 bits": (
        png_of_16_bits(2, [[0x12FF, 0x8000, 0xFFFF]]),
        [[[0x12, 0x80, 0xFF]]],
        ("colours of 16 bits read with 8",),
    ),
    "RGB of 16 bits, TIFF": (
        tiff_of_16_bits([[0x12FF, 0x8000, 0xFFFF]]),
        [[[0x12, 0x80, 0xFF]]],
        ("colours of 16 bits read with 8",),
    ),
    # 0 x 128 + 255 x 127 = 32,385 = 127 x 255; 45,185 / 255 = 177.2; 57,985 / 255 = 227.4
    "RGBA": (HALF, [[[127, 177, 227], WHITE, [1, 2, 3]]], (OVER,)),
    "opaque RGBA": (encoded(bytes_of([[1, 2, 3, 255]])), [[[1, 2, 3]]], ()),
    # 77 x 51 + 255 x 204 = 55,947; / 255 = 219.4
    "grey with alpha": (encoded(Image.new("LA", (1, 1), (77, 51))), [[[219] * 3]], (OVER,)),
    "RGB with a transparent colour": (
        encoded(bytes_of([RED, BLUE]), transparency=(255, 0, 0)),
        [[WHITE, BLUE]],
        (OVER,),
    ),
    "palette": (palette(), [[RED, GREEN], [BLUE, GREEN]], ()),
    "palette with transparency": (
        palette(transparency=b"\x00\xff\x33"),  # 0x33 = 51: a fifth of blue, four fifths of white
        [[WHITE, GREEN], [[204, 204, 255], GREEN]],
        (OVER,),
    ),
    "CMYK": (encoded(CMYK, "TIFF"), FROM_CMYK, ()),
    "CMYK JPEG": (encoded(Image.new("CMYK", (8, 8)), "JPEG"), [[WHITE] * 8] * 8, ()),
    "animated GIF": (
        encoded(
            Image.new("RGB", (2, 1), (255, 0, 0)),
            "GIF",
            save_all=True,
            append_images=[Image.new("RGB", (2, 1), (0, 0, 255))],
        ),
        [[RED, RED]],
        ("the first of several frames",),
    ),
    "TIFF of two pages": (
        encoded(
            Image.new("RGB", (1, 1), (0, 255, 0)),
            "TIFF",
            save_all=True,
            append_images=[Image.new("RGB", (3, 3))],
        ),
        [[GREEN]],
        ("the first of several frames",),
    ),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore:some images have more than 8 bits")
def test_every_kind_of_file_has_exact_pixels_and_says_what_was_decided(
    name: str, tmp_path: Path
) -> None:
    content, pixels, notes = FILES[name]
    path = tmp_path / "a.png"  # the content decides, not the suffix
    path.write_bytes(content)
    decoded = decode(path)
    assert decoded.pixels.tolist() == pixels
    assert decoded.notes == notes
    images = open_images(path)
    white = np.float32(65_535 if decoded.pixels.dtype == np.uint16 else 255)
    expected = np.array(pixels, np.float32).transpose(2, 0, 1)[None] / white
    np.testing.assert_array_equal(images[:], expected)
    assert images.card().get("decoding", {}) == dict.fromkeys(notes, 1)


@pytest.mark.parametrize(
    ("over", "pixel"),
    [("black", [0, 50, 100]), ("10,20,30", [5, 60, 115]), ((255, 0, 0), [127, 50, 100])],
)
def test_transparent_pixels_are_laid_over_a_stated_colour(
    over: Any, pixel: list[int], tmp_path: Path
) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "a.png").write_bytes(HALF)
    images = open_images(tmp_path, over=over)
    labelled = load_dataset(tmp_path, over=over)
    for set_of_images in (images, labelled):
        assert np.rint(set_of_images[:][0, :, 0, 0] * 255).tolist() == pixel
        assert colour_of(set_of_images.card()["over"]) == colour_of(over)


@pytest.mark.parametrize("over", ["grey", "1,2", "1,2,256", "-1,0,0", (1, 2), 7, None])
def test_a_colour_that_is_not_valid_is_refused(over: Any) -> None:
    with pytest.raises(ImageError, match="is not a colour; use white, black, or red"):
        open_images(np.zeros((1, 2, 2, 3), np.uint8), over=over)


def test_a_set_may_mix_8_and_16_bits_without_loss(tmp_path: Path) -> None:
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    Image.fromarray(levels).save(tmp_path / "a.png")
    before = open_images(tmp_path)[:]
    deep = np.arange(256, dtype=np.uint16).reshape(16, 16) * 256 + 13
    Image.fromarray(deep).save(tmp_path / "b.png")
    Image.fromarray(levels).save(tmp_path / "c.png")
    images = open_images(tmp_path)[:]
    np.testing.assert_array_equal(images[[0, 2]], before[[0, 0]])  # to the bit
    np.testing.assert_array_equal(np.rint(images[1, 0] * np.float32(65_535)), deep)


def test_16_bits_survive_a_resize(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.full((6, 8), 40_001, np.uint16)).save(path)
    resized = decode(path, Resize((3, 3))).pixels
    assert resized.dtype == np.uint16 and (resized == 40_001).all()


def test_values_beyond_16_bits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tiff"
    Image.fromarray(np.array([[-1, 70_000]], np.int32)).save(path)
    with pytest.raises(ImageError, match=r"a\.tiff .* values from -1 to 70,000; .* scale"):
        decode(path)


# What a camera that was turned stores, by the EXIF orientation that makes it upright again.
STORED = {
    1: lambda upright: upright,
    2: lambda upright: upright[:, ::-1],
    3: lambda upright: upright[::-1, ::-1],
    4: lambda upright: upright[::-1],
    5: lambda upright: upright.transpose(1, 0, 2),
    6: lambda upright: np.rot90(upright),  # displayed after a quarter turn clockwise
    7: lambda upright: upright[::-1, ::-1].transpose(1, 0, 2),
    8: lambda upright: np.rot90(upright, -1),
}


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    orientation=st.sampled_from(range(1, 9)),
    form=st.sampled_from(["PNG", "TIFF", "WEBP"]),
    height=st.integers(1, 5),
    width=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_any_orientation_gives_the_pixels_of_the_upright_picture(
    orientation: int, form: str, height: int, width: int, seed: int, tmp_path: Path
) -> None:
    upright = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    tags = Image.Exif()
    tags[0x0112] = orientation
    stored = np.ascontiguousarray(STORED[orientation](upright))
    options = {"lossless": True} if form == "WEBP" else {}
    path = tmp_path / "a.png"
    path.write_bytes(encoded(stored, form, exif=tags, **options))
    decoded = decode(path)
    np.testing.assert_array_equal(decoded.pixels, upright)
    assert decoded.notes == (("turned upright (EXIF orientation)",) if orientation > 1 else ())


def test_a_jpeg_is_turned_before_it_is_resized(tmp_path: Path) -> None:
    tags = Image.Exif()
    tags[0x0112] = 6
    picture = np.zeros((16, 32, 3), np.uint8)
    picture[:, :16] = 255  # left, which is the top once it is upright
    (tmp_path / "a.jpg").write_bytes(encoded(picture, "JPEG", exif=tags))
    images = open_images(tmp_path)
    assert images.size == (32, 16) and images[:][0, 0, 2, 8] > 0.9 > 0.1 > images[:][0, 0, 29, 8]
    assert images.card()["decoding"] == {"turned upright (EXIF orientation)": 1}
    assert open_images(tmp_path, 16).size == (16, 16)
    np.testing.assert_array_equal(
        open_images([(Image.open(tmp_path / "a.jpg"), 0)])[:], images[:]
    )  # pictures that a program opened itself


def test_damaged_exif_does_not_make_the_pixels_unreadable(tmp_path: Path) -> None:
    content = encoded(bytes_of([RED]), "JPEG", exif=b"Exif\0\0MM\0\x2a\0\0\xff\xff\xff\xff")
    (tmp_path / "a.jpg").write_bytes(content)
    assert decode(tmp_path / "a.jpg").notes == ()


def test_a_heic_file_is_read_with_its_extra_and_names_it_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    picture = np.zeros((64, 48, 3), np.uint8)
    picture[:32] = [200, 30, 30]
    pillow_heif.from_pillow(Image.fromarray(picture)).save(tmp_path / "a.heic", quality=-1)
    images = open_images(tmp_path)
    assert images.size == (64, 48)
    np.testing.assert_allclose(images[:][0].transpose(1, 2, 0), picture / 255, atol=0.02)
    (tmp_path / "b.heic").write_bytes((tmp_path / "a.heic").read_bytes()[:400])
    with pytest.raises(ImageError, match=r"b\.heic cannot be read"):
        open_images(tmp_path)
    from soda_tta.data import decoding

    decoding._learn_heic.cache_clear()
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(ImageError, match=r"a\.heic .* pip install 'soda-tta\[heic\]'"):
        open_images(tmp_path)


@pytest.mark.parametrize("form", ["png", "jpeg", "tiff", "webp"])
def test_bytes_give_the_pixels_of_the_file(tmp_path, form: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 4), np.uint8)
    image = Image.fromarray(pixels if form in ("png", "webp") else pixels[..., :3])
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    image.save(tmp_path / f"x.{form}", exif=exif)
    data = (tmp_path / f"x.{form}").read_bytes()
    expected = decode(tmp_path / f"x.{form}", Resize((4, 4)), (0, 0, 0))
    for name in (f"a.{form}", "row 7"):  # with and without a suffix
        decoded = decode_bytes(data, name, Resize((4, 4)), (0, 0, 0))
        assert np.array_equal(decoded.pixels, expected.pixels)
        assert decoded.notes == expected.notes


def test_bytes_that_are_no_image_are_named_the_same_each_time() -> None:
    messages = set()
    for _ in range(2):
        with pytest.raises(ImageError) as error:
            decode_bytes(b"text", "row 7")
        messages.add(str(error.value))
    assert messages == {"row 7 cannot be read as an image: cannot identify image file"}
