"""Parquet: tables of paths, or of image bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from soda_tta.errors import ImageError, SodaError

IMAGE_COLUMNS = ("image", "image_bytes", "bytes", "jpg", "png")  # bytes, or Hugging Face's struct
PATH_COLUMNS = ("file", "path", "file_name", "filename", "url", "image")
NAME_COLUMNS = ("name", "file", "path", "file_name", "filename", "url", "__key__", "key", "id")
ROWS_AT_ONCE = 64  # rows with image bytes that are read together
PATHS_AT_ONCE = 10_000
BUFFER = 2**20  # bytes of a column that are in memory at once


def arrow() -> Any:
    """The package pyarrow."""
    try:
        import pyarrow
    except ImportError as error:
        raise SodaError("Parquet needs pyarrow: pip install 'soda-tta[archive]'.") from error
    return pyarrow


def parquet() -> Any:
    """The module pyarrow.parquet."""
    arrow()
    import pyarrow.parquet

    return pyarrow.parquet


def row_groups(file: BinaryIO, path: str) -> tuple[Any, list[int]]:
    """The schema of a Parquet file, and the rows of each of its groups."""
    opened = open_parquet(file, path)
    counts = [opened.metadata.row_group(k).num_rows for k in range(opened.num_row_groups)]
    return opened.schema_arrow, counts


def open_parquet(file: BinaryIO, path: str) -> Any:
    """A Parquet file; an ImageError if it is not one."""
    try:
        return parquet().ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)
    except arrow().ArrowInvalid as error:
        raise ImageError(f"{path} is not a Parquet file, or is damaged: {error}") from error


def image_column(schema: Any) -> str | None:
    """The column with the bytes of images; None if there is none."""
    types = arrow().types
    for name in IMAGE_COLUMNS:
        if name not in schema.names:
            continue
        kind = schema.field(name).type
        if types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
            return name
        if types.is_binary(kind) or types.is_large_binary(kind):
            return name
    return None


def path_column(schema: Any, path: str) -> str:
    """The column with the paths of images."""
    types = arrow().types
    for name in PATH_COLUMNS:
        if name in schema.names:
            kind = schema.field(name).type
            if types.is_string(kind) or types.is_large_string(kind):
                return name
    columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
    raise ImageError(
        f"{path} has the columns {columns}; expected are bytes in one of "
        f"{', '.join(IMAGE_COLUMNS)}, or texts in one of {', '.join(PATH_COLUMNS)}."
    )


def read_paths(file: BinaryIO, column: str) -> Iterator[str]:
    """The paths in a column, a few thousand in memory at a time."""
    opened = parquet().ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)
    for batch in opened.iter_batches(PATHS_AT_ONCE, columns=[column]):
        yield from (value or "" for value in batch.column(0).to_pylist())


def read_image_rows(file: BinaryIO, path: str, group: int) -> Iterator[tuple[str, bytes | None]]:
    """Names and bytes of the images in one row group; None for a row without bytes."""
    opened = open_parquet(file, path)
    schema = opened.schema_arrow
    column = image_column(schema)
    if column is None or group >= opened.num_row_groups:
        raise ImageError(f"{path} has changed since the shards were listed; restore it.")
    named = next((name for name in NAME_COLUMNS if name in schema.names and name != column), None)
    columns = [column] if named is None else [column, named]
    row = sum(opened.metadata.row_group(k).num_rows for k in range(group))
    for batch in opened.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=columns):
        images = batch.column(column).to_pylist()
        names = [None] * len(images) if named is None else batch.column(named).to_pylist()
        for image, name in zip(images, names, strict=True):
            data = image
            if isinstance(image, dict):
                data = image["bytes"]
                name = name if name is not None else image.get("path")
            yield str(row if name is None else name), data
            row += 1
