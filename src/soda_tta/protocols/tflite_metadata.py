"""What a TFLite file says about itself besides its tensors.

Metadata is a FlatBuffers file inside of the model. Label files are in a zip archive that is
appended to the model. Numbers of fields are those of TensorFlow Lite's schema.fbs and
metadata_schema.fbs.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soda_tta.errors import BoxError
from soda_tta.foreign_text import quoted
from soda_tta.protocols.flatbuffers import Table

METADATA_NAME = "TFLITE_METADATA"
MOST_LABEL_BYTES = 2**24  # of a label file, unpacked

# fields of the model
BUFFERS, METADATA = 4, 6
# fields of the metadata
SUBGRAPH_METADATA = 3
INPUT_METADATA, OUTPUT_METADATA = 2, 3
PROCESS_UNITS, ASSOCIATED_FILES = 4, 6
NORMALISATION_OPTIONS = 1  # kind of a process unit
AXIS_LABELS = 2  # kind of an associated file

# what reading a damaged file may raise
UNREADABLE = (
    ValueError,
    IndexError,
    EOFError,
    OSError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class Declared:
    """What a file declares.

    Parameters
    ----------
    normalisation : dict
        `pixel_range`, `mean` and `std`, or nothing.
    label_file : str or None
        The name of the file with the names of the classes.
    class_names : tuple of str or None
        What is in it.
    """

    normalisation: dict[str, Any]
    label_file: str | None
    class_names: tuple[str, ...] | None


def read_metadata(path: Path, content: bytes, output: int) -> Declared:
    """The metadata of a TFLite file.

    Parameters
    ----------
    path : Path
        Where the file is, for errors.
    content : bytes
        The file.
    output : int
        Which output has the class scores.
    """
    try:
        metadata = _metadata_table(content)
        normalisation = {} if metadata is None else _normalisation(metadata)
        named = None if metadata is None else _named_label_file(metadata, output)
        label_file, class_names = _read_labels(content, named)
    except UNREADABLE as error:
        raise BoxError(
            f"the metadata of {path} cannot be read ({quoted(error)}): the file is cut off or "
            "damaged; copy or download it again."
        ) from error
    return Declared(normalisation, label_file, class_names)


def _metadata_table(content: bytes) -> Table | None:
    model = Table(content)
    for entry in model.tables(METADATA):
        if entry.text(0) == METADATA_NAME:
            return Table(model.tables(BUFFERS)[entry.number(1, "I")].content(0))
    return None


def _tensors(metadata: Table, which: int) -> list[Table]:
    subgraphs = metadata.tables(SUBGRAPH_METADATA)
    return subgraphs[0].tables(which) if subgraphs else []


def _normalisation(metadata: Table) -> dict[str, Any]:
    """Mean and std of the image, which are those of pixels in 0..255."""
    for tensor in _tensors(metadata, INPUT_METADATA)[:1]:
        for unit in tensor.tables(PROCESS_UNITS):
            options = unit.table(1)
            if unit.number(0, "B") == NORMALISATION_OPTIONS and options is not None:
                mean = options.numbers(0, "f") or [0.0]
                std = options.numbers(1, "f") or [1.0]
                return {"pixel_range": 255.0, "mean": tuple(mean), "std": tuple(std)}
    return {}


def _named_label_file(metadata: Table, output: int) -> str | None:
    for tensor in _tensors(metadata, OUTPUT_METADATA)[output : output + 1]:
        for file in tensor.tables(ASSOCIATED_FILES):
            if file.number(2, "B") == AXIS_LABELS:
                return file.text(0)
    return None


def _read_labels(content: bytes, named: str | None) -> tuple[str | None, tuple[str, ...] | None]:
    """Names of classes from the label file that the metadata names, or from the only text file."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        if named is None:
            return None, None
        raise ValueError(f"the label file {named} is missing")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        texts = [name for name in archive.namelist() if name.endswith(".txt")]
        name = named or (texts[0] if len(texts) == 1 else None)
        if name is None:
            return None, None
        if name not in archive.namelist():
            raise ValueError(f"the label file {name} is missing")
        if archive.getinfo(name).file_size > MOST_LABEL_BYTES:
            raise ValueError(f"the label file {name} is larger than 16 MB")
        lines = archive.read(name).decode("utf-8-sig", "replace").rstrip().splitlines()
    return name, tuple(line.strip() for line in lines)
