"""DICOM files as RGB pixels: rescaled, windowed, inverted where dark means much; first frame."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from soda_tta.errors import ImageError
from soda_tta.types import Array

FIRST_FRAME = "the first of several frames"
WINDOWED = "DICOM greys through the window of the file"
WHOLE_RANGE = "DICOM greys of the whole stored range (no window in the file)"
GREYS = ("MONOCHROME1", "MONOCHROME2")
DECODERS = "pip install pylibjpeg pylibjpeg-libjpeg pylibjpeg-openjpeg"


def read_dicom(source: Path | BinaryIO) -> tuple[Array, list[str]]:
    """The first frame as uint8 or uint16 (height, width, 3), and what had to be decided.

    Parameters
    ----------
    source : Path or binary file
        A DICOM file.
    """
    try:
        import pydicom
    except ImportError as error:
        raise ImageError("DICOM files need pydicom: pip install 'soda-tta[dicom]'.") from error
    file = pydicom.dcmread(source)
    _check_supported(file)
    stored = _stored_values(file)
    notes = [FIRST_FRAME] if int(file.get("NumberOfFrames") or 1) > 1 else []
    kind = file.PhotometricInterpretation
    if kind in GREYS:
        shares, how = grey_shares(file, stored)
        if kind == "MONOCHROME1":  # its lowest value is white
            shares = 1 - shares
        greys = np.rint(shares * 65535).astype(np.uint16)
        return np.repeat(greys[..., None], 3, axis=2), [*notes, how]
    if kind == "PALETTE COLOR":
        from pydicom.pixels.processing import apply_color_lut

        stored = apply_color_lut(stored, file)[..., :3]
        bits = stored.dtype.itemsize * 8
    else:
        bits = int(file.BitsStored)
    return _of_full_range(stored, bits), notes


def _check_supported(file: Any) -> None:
    """Refuse what is too large, and what keeps its window where it is not looked for."""
    pixels = int(file.Rows) * int(file.Columns)
    if Image.MAX_IMAGE_PIXELS is not None and pixels > Image.MAX_IMAGE_PIXELS:
        raise Image.DecompressionBombError(f"{pixels:,} pixels")
    if "SharedFunctionalGroupsSequence" in file:
        raise ImageError("it is an enhanced multi-frame DICOM file; export single frames from it.")


def _stored_values(file: Any) -> Array:
    """The values of the first frame as they are stored; YCbCr becomes RGB."""
    from pydicom.pixels.utils import pixel_array

    syntax = file.file_meta.TransferSyntaxUID
    try:
        return np.asarray(pixel_array(file, index=0))
    except (RuntimeError, NotImplementedError) as error:
        if not syntax.is_compressed:
            raise
        raise ImageError(
            f"its pixels are compressed as {syntax.name}, for which no decoder is installed or "
            f"which are damaged: {DECODERS}, or decompress the file first."
        ) from error


def grey_shares(file: Any, stored: Array) -> tuple[Array, str]:
    """Stored values as shares of 1, and how: through the file's first window if it has one.

    Parameters
    ----------
    file : pydicom.Dataset
        Its rescale slope and intercept (or modality table) are applied, then its window (PS3.3,
        C.11.2.1.2), or its table of values of interest. Without either, the range of the values
        that can be stored becomes 0 to 1.
    stored : array
        The values of one frame.
    """
    from pydicom.pixels.processing import apply_modality_lut, apply_voi

    values = np.asarray(apply_modality_lut(stored, file), np.float64)
    if file.get("WindowWidth") is not None and file.get("WindowCenter") is not None:
        centre = _first(file.WindowCenter)
        width = _first(file.WindowWidth)
        function = file.get("VOILUTFunction") or "LINEAR"
        return windowed(values, centre, width, function), WINDOWED
    if file.get("VOILUTSequence"):
        bits = int(file.VOILUTSequence[0].LUTDescriptor[2])
        shares = apply_voi(np.asarray(apply_modality_lut(stored, file)), file) / (2**bits - 1)
        return np.clip(shares, 0, 1), WINDOWED
    low, high = _range_of(file)
    return np.clip((values - low) / (high - low), 0, 1), WHOLE_RANGE


def windowed(values: Array, centre: float, width: float, function: str = "LINEAR") -> Array:
    """Values seen through a window, as shares of 1 (DICOM PS3.3, C.11.2.1.2 and C.11.2.1.3).

    >>> windowed(np.array([0.0, 39.5, 2000.0]), centre=40, width=401).tolist()
    [0.40125, 0.5, 1.0]
    """
    if not width >= 1 and not (function != "LINEAR" and width > 0):
        raise ImageError(f"its window has the width {width:g}, which is not valid.")
    if function == "SIGMOID":
        shares: Array = 1 / (1 + np.exp(-4 * (values - centre) / width))
        return shares
    if function == "LINEAR_EXACT":
        return np.clip((values - centre) / width + 0.5, 0, 1)
    if width == 1:
        return (values > centre - 0.5).astype(np.float64)
    return np.clip((values - (centre - 0.5)) / (width - 1) + 0.5, 0, 1)


def _range_of(file: Any) -> tuple[float, float]:
    """The least and the greatest value that the file can hold, after rescaling."""
    if file.get("ModalityLUTSequence"):
        return 0.0, 2.0 ** int(file.ModalityLUTSequence[0].LUTDescriptor[2]) - 1
    bits = int(file.BitsStored)
    least = -(2 ** (bits - 1)) if file.PixelRepresentation else 0
    slope = float(file.get("RescaleSlope") or 1)
    intercept = float(file.get("RescaleIntercept") or 0)
    ends = [slope * value + intercept for value in (least, least + 2**bits - 1)]
    return min(ends), max(ends)


def _first(value: Any) -> float:
    """The first of several windows."""
    return float(value if isinstance(value, str | int | float) else value[0])


def _of_full_range(colours: Array, bits: int) -> Array:
    """Colours of 8 bits as they are, others stretched to 16."""
    if bits == 8:
        return np.ascontiguousarray(colours, np.uint8)
    stretched: Array = np.rint(colours.astype(np.float64) * (65535 / (2**bits - 1)))
    return stretched.astype(np.uint16)
