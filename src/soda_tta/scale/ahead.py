"""Images of a shard decoded in threads, some ahead of what the model answers."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from PIL import Image

from soda_tta.box.view import View
from soda_tta.data.archives.contents import Content, MissingImage
from soda_tta.data.decoding import decode_bytes
from soda_tta.data.images import AT_ONCE_FLOATS
from soda_tta.data.reading import Reading
from soda_tta.errors import ImageError
from soda_tta.foreign_text import quoted
from soda_tta.types import Array

LARGEST_BATCH = 512  # images in memory, decoded
FETCHED_AT_ONCE = 32  # images of a store that are on their way
WINDOWS_AHEAD = 2  # batches that are decoded while the model answers


class Decoded(NamedTuple):
    """One image ready for the adaptor, or why it is not."""

    name: str
    pixels: Array | None  # float32 (3, height, width) in [0, 1]
    error: str | None


@dataclass(frozen=True)
class Decoding:
    """How images are decoded.

    Parameters
    ----------
    reading : Reading
        How files are read.
    view : View or None
        What of an image reaches the model.
    batch : int
        Images that the model takes at once.
    threads : int
        0 decodes in the thread that takes the images.
    """

    reading: Reading
    view: View | None
    batch: int
    threads: int


def decoded_windows(images: Iterable[Content], how: Decoding) -> Iterator[list[Decoded]]:
    """The images in their order, decoded in threads, in lists that fit into memory."""
    with warnings.catch_warnings():
        # `decode` sets this filter for itself; filters belong to all threads, and one that ends
        # would take it from the others
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        window: list[Decoded] = []
        values = 0
        most = min(LARGEST_BATCH, how.batch)
        for image in decoded_images(images, how, most):
            size = 0 if image.pixels is None else image.pixels.size
            if window and (len(window) == most or values + size > AT_ONCE_FLOATS):
                yield window
                window, values = [], 0
            window.append(image)
            values += size
        if window:
            yield window


def decoded_images(images: Iterable[Content], how: Decoding, most: int) -> Iterator[Decoded]:
    """The images in their order; the next ones are loaded and decoded meanwhile."""
    if not how.threads:
        yield from (decoded(content, how.reading, how.view) for content in images)
        return
    remaining = iter(images)
    pending: deque[Future[Decoded]] = deque()
    ahead = how.threads  # until the size of the images is known
    pool = ThreadPoolExecutor(how.threads, thread_name_prefix="decode")
    try:
        while True:
            for content in islice(remaining, max(0, ahead - len(pending))):
                pending.append(pool.submit(decoded, content, how.reading, how.view))
            if not pending:
                return
            image = pending.popleft().result()
            if image.pixels is not None:
                fitting = min(most, AT_ONCE_FLOATS // image.pixels.size)
                ahead = max(how.threads, WINDOWS_AHEAD * fitting)
            yield image
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def decoded(content: Content, reading: Reading, view: View | None) -> Decoded:
    """One image as every command works on it: its own pixels, or the model's view of them.

    An image that is missing or damaged is a row with an error. A store that cannot be read is an
    ImageError: the other images cannot be read either.
    """
    try:
        data = content.load()
    except MissingImage as error:
        return Decoded(content.name, None, quoted(error))
    try:
        pixels = decode_bytes(data, content.name, reading.resize, reading.over).pixels
    except ImageError as error:
        return Decoded(content.name, None, quoted(error))
    white = np.float32(np.iinfo(pixels.dtype).max)
    image = np.ascontiguousarray(pixels.transpose(2, 0, 1), np.float32) / white
    if view is not None and reading.resize.size is None:
        height, width = image.shape[1:]
        if height * width > view.size[0] * view.size[1]:  # see engine.working_size
            image = view(image[None])[0]
    return Decoded(content.name, image, None)


def decoding_threads(is_remote: bool, shares_cores: bool, on_accelerator: bool) -> int:
    """How many threads decode: one per core, or none besides the worker's own if it shares them.

    Images of a store are waited for, so that more of them are on their way. An accelerator must not
    wait for the next images.
    """
    if is_remote:
        return FETCHED_AT_ONCE
    if shares_cores:
        return 1 if on_accelerator else 0
    return os.cpu_count() or 1
