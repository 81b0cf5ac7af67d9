"""The same adaptor, faster for thousands of images: its ONNX graph on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy

import numpy as np

from soda_tta.adaptors.adaptor import Adaptor
from soda_tta.adaptors.bank import BankAdaptor
from soda_tta.adaptors.compiled import compiled, with_function
from soda_tta.adaptors.routed import RoutedAdaptor
from soda_tta.devices import CPU
from soda_tta.types import Array

MANY_FLOATS = 2**26  # of all images; with fewer, compiling costs more than it saves
PIECE_FLOATS = 16 * 3 * 32 * 32  # adapted at once by a thread: they stay in its cache


def worth_compiling(images: int, size: tuple[int, int]) -> bool:
    """Whether so many images of this size (height, width) are worth seconds of compiling."""
    return images * 3 * size[0] * size[1] >= MANY_FLOATS


def for_many(adaptor: Adaptor, threads: int) -> Adaptor:
    """The same adaptor for many images, with its restorations in ONNX Runtime.

    The graph is verified against PyTorch when it is made. Pixels agree to 1e-6, except where a
    threshold is met exactly. The paper's networks stay as they are: their own form is faster than
    their graph.

    Parameters
    ----------
    adaptor : Adaptor
    threads : int
        Pieces that are adapted at once, one thread each.
    """
    if isinstance(adaptor, RoutedAdaptor):
        same = copy(adaptor)
        same.adaptors = [for_many(each, threads) for each in adaptor.adaptors]
        return same
    if not isinstance(adaptor, BankAdaptor) or adaptor.device != CPU:
        return adaptor
    if not adaptor.parameters.any():  # it leaves images as they are
        return adaptor
    run = compiled(adaptor)
    if run is adaptor:  # ONNX Runtime is not installed
        return adaptor

    def in_pieces(images: Array) -> Array:
        step = max(1, PIECE_FLOATS // images[0].size)
        pieces = [images[start : start + step] for start in range(0, len(images), step)]
        if threads == 1 or len(pieces) == 1:
            return np.concatenate([run(piece) for piece in pieces])
        with ThreadPoolExecutor(threads, thread_name_prefix="adapt") as pool:
            return np.concatenate(list(pool.map(run, pieces)))

    return with_function(adaptor, in_pieces)
