"""DICOM files: values by hand for rescaling, windows and inverted greys."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta.data import open_images
from soda_tta.data.decoding import decode, decode_bytes
from soda_tta.data.dicom import FIRST_FRAME, WHOLE_RANGE, WINDOWED, windowed
from soda_tta.errors import ImageError

pydicom = pytest.importorskip("pydicom")


def write(path: Path, values: np.ndarray, *, bits: int = 12, **facts: Any) -> Path:
    """A DICOM file with these stored values."""
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

    file = Dataset()
    file.file_meta = FileMetaDataset()
    file.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    file.file_meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    file.file_meta.MediaStorageSOPInstanceUID = file.SOPInstanceUID = generate_uid()
    file.SOPClassUID = SecondaryCaptureImageStorage
    colours = facts.get("SamplesPerPixel", 1) == 3
    file.Rows, file.Columns = values.shape[-3:-1] if colours else values.shape[-2:]
    file.SamplesPerPixel = 1
    file.PhotometricInterpretation = "MONOCHROME2"
    file.BitsAllocated = values.dtype.itemsize * 8
    file.BitsStored = bits
    file.HighBit = bits - 1
    file.PixelRepresentation = int(values.dtype.kind == "i")
    for name, value in facts.items():
        setattr(file, name, value)
    file.PixelData = values.tobytes() + bytes(values.nbytes % 2)
    file.save_as(path, enforce_file_format=True)
    return path


STORED = np.array([[0, 1024, 1064, 4095]], np.uint16)
CT = {"RescaleSlope": 1, "RescaleIntercept": -1024}
# name: (facts, grey of each stored value as a share of 1, note)
FILES: dict[str, tuple[dict[str, Any], list[float], str]] = {
    "no window": ({}, [0, 1024 / 4095, 1064 / 4095, 1], WHOLE_RANGE),
    "rescaled": (
        {"RescaleSlope": 2, "RescaleIntercept": -9},
        [0, 1024 / 4095, 1064 / 4095, 1],
        WHOLE_RANGE,
    ),
    # Hounsfield units -1024, 0, 40, 3071 through centre 40, width 400: (0 - 39.5) / 399 + 0.5
    "window": (
        {**CT, "WindowCenter": 40, "WindowWidth": 400},
        [0, 160 / 399, 200 / 399, 1],
        WINDOWED,
    ),
    "first of two windows": (
        {**CT, "WindowCenter": [40, 600], "WindowWidth": [400, 2800]},
        [0, 160 / 399, 200 / 399, 1],
        WINDOWED,
    ),
    "exact window": (
        {**CT, "WindowCenter": 40, "WindowWidth": 400, "VOILUTFunction": "LINEAR_EXACT"},
        [0, 0.4, 0.5, 1],
        WINDOWED,
    ),
    "inverted": (
        {**CT, "WindowCenter": 40, "WindowWidth": 400, "PhotometricInterpretation": "MONOCHROME1"},
        [1, 239 / 399, 199 / 399, 0],
        WINDOWED,
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_greys_are_rescaled_windowed_and_inverted(name: str, tmp_path: Path) -> None:
    facts, shares, note = FILES[name]
    write(tmp_path / "a.dcm", STORED, **facts)
    images = open_images(tmp_path)
    expected = np.rint(np.array(shares) * 65_535).astype(np.float32) / np.float32(65_535)
    np.testing.assert_array_equal(images[:][0], np.broadcast_to(expected, (3, 1, 4)))
    assert images.card()["decoding"] == {note: 1}


@pytest.mark.parametrize("function", ["LINEAR", "LINEAR_EXACT", "SIGMOID"])
def test_windows_agree_with_pydicom(function: str) -> None:
    from pydicom.pixels import apply_windowing

    file = pydicom.Dataset()
    file.PhotometricInterpretation = "MONOCHROME2"
    file.BitsStored, file.PixelRepresentation = 12, 0
    file.WindowCenter, file.WindowWidth, file.VOILUTFunction = 1000, 700, function
    values = np.arange(0, 4096, 7, np.uint16)
    reference = apply_windowing(values, file) / 4095
    np.testing.assert_allclose(
        windowed(values.astype(float), 1000, 700, function), reference, atol=1e-9
    )


def test_bytes_are_recognised_without_a_suffix(tmp_path: Path) -> None:
    path = write(tmp_path / "a.dcm", np.arange(12, dtype=np.uint16).reshape(3, 4))
    assert np.array_equal(decode_bytes(path.read_bytes(), "row 7").pixels, decode(path).pixels)


def test_signed_values_colours_and_frames(tmp_path: Path) -> None:
    signed = write(tmp_path / "a.dcm", np.array([[-2048, 0, 2047]], np.int16))
    assert decode(signed).pixels[0, :, 0].tolist() == [0, round(2048 / 4095 * 65_535), 65_535]
    colours = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    facts = {"SamplesPerPixel": 3, "PhotometricInterpretation": "RGB", "PlanarConfiguration": 0}
    decoded = decode(write(tmp_path / "b.dcm", colours, bits=8, **facts))
    assert decoded.pixels.tolist() == colours.tolist() and decoded.notes == ()
    frames = np.array([[[0, 255]], [[255, 255]]], np.uint8)
    decoded = decode(write(tmp_path / "c.dcm", frames, bits=8, NumberOfFrames=2))
    assert decoded.pixels[0, :, 0].tolist() == [0, 65_535]
    assert decoded.notes == (FIRST_FRAME, WHOLE_RANGE)


def compressed(path: Path) -> None:
    file = pydicom.dcmread(write(path, STORED))
    file.file_meta.TransferSyntaxUID = pydicom.uid.JPEGLSLossless
    file.PixelData = pydicom.encaps.encapsulate([b"\xff\xd8\xff\xf7"])
    file["PixelData"].is_undefined_length = True
    file.save_as(path, enforce_file_format=True)


def enhanced(path: Path) -> None:
    file = pydicom.dcmread(write(path, STORED))
    file.SharedFunctionalGroupsSequence = [pydicom.Dataset()]
    file.save_as(path)


BAD = {
    "compressed": (compressed, r"compressed as JPEG-LS .* pip install pylibjpeg"),
    "enhanced": (enhanced, "export single frames"),
    "window of no width": (lambda p: write(p, STORED, WindowCenter=1, WindowWidth=0), "width 0"),
    "text": (lambda path: path.write_text("not DICOM"), "cannot be read"),
    "empty": (lambda path: path.touch(), "cannot be read"),
    "huge": (lambda path: write(path, STORED, Rows=60_000, Columns=60_000), "shrink it first"),
    "cut off": (lambda path: write(path, STORED, Rows=9), "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.filterwarnings("ignore")
def test_a_bad_file_is_named_with_its_remedy(name: str, tmp_path: Path) -> None:
    make, message = BAD[name]
    make(tmp_path / "scan.dcm")
    with pytest.raises(ImageError, match=rf"scan\.dcm .*{message}"):
        decode(tmp_path / "scan.dcm")


def test_without_pydicom_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.dcm", STORED)
    monkeypatch.setitem(sys.modules, "pydicom", None)
    with pytest.raises(ImageError, match=r"a\.dcm .* pip install 'soda-tta\[dicom\]'"):
        open_images(path)
