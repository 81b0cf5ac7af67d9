"""The same adaptor, faster for requests of few images: router and adaptors in ONNX Runtime."""

from __future__ import annotations

import json
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from soda_tta.adaptors.adaptor import Adaptor
from soda_tta.adaptors.compiled import Function, compiled, session_of, with_function
from soda_tta.adaptors.identity import Identity
from soda_tta.adaptors.routed import RoutedAdaptor
from soda_tta.conditions.router import Router, Routes
from soda_tta.conditions.statistics import SMALLEST_SIDE, measured, statistics
from soda_tta.devices import CPU
from soda_tta.protocols.onnx_files import export_onnx
from soda_tta.types import Array

FEW_FLOATS = 3 * 64 * 64  # of a request; larger ones are measured faster in PyTorch
KEPT = 64  # adaptors whose graphs are kept: live traffic asks for the same ones again


def for_requests(adaptor: Adaptor) -> Adaptor:
    """The same adaptor for a few images at a time, in ONNX Runtime if that is installed.

    An image has the same condition, because the statistics are the same bits, and only the adaptor
    of its condition is computed. Pixels agree to 1e-5 with PyTorch.

    Parameters
    ----------
    adaptor : Adaptor

    Examples
    --------
    >>> from soda_tta.adaptors import Bank
    >>> for_requests(Bank().build())  # all of its parameters are zero
    Identity()
    """
    if isinstance(adaptor, RoutedAdaptor):
        return quick_routed(adaptor)
    if isinstance(adaptor, Identity) or adaptor.device != CPU:
        return adaptor
    if adaptor.kind == "bank" and not adaptor.parameters.any():
        return Identity()
    settings = json.dumps(adaptor.settings)
    function = _compiled(adaptor.kind, settings, adaptor.parameters.tobytes())
    return adaptor if isinstance(function, Adaptor) else with_function(adaptor, function)


def quick_routed(adaptor: RoutedAdaptor) -> RoutedAdaptor:
    """The same for several conditions.

    Parameters
    ----------
    adaptor : RoutedAdaptor
    """
    statistics_session()  # made now, not by the first request
    same = copy(adaptor)
    same.router = QuickRouter(**vars(adaptor.router))
    same.adaptors = [for_requests(each) for each in adaptor.adaptors]
    return same


@lru_cache(KEPT)
def _compiled(kind: str, settings: str, parameters: bytes) -> Function:
    """`compiled` for what is written in a file about an adaptor."""
    vector = np.frombuffer(parameters, np.float32).copy()
    return compiled(Adaptor.kinds[kind].from_settings(json.loads(settings), vector))


class QuickRouter(Router):
    """The same router; it measures few small images in a third of the time."""

    def __call__(self, images: Array) -> Routes:
        return self.of_statistics(quick_statistics(images))


def quick_statistics(images: Array) -> Array:
    """The same bits as `statistics`, faster for few small images.

    Parameters
    ----------
    images : float32 array of shape (n, 3, height, width), RGB in [0, 1]
    """
    few = 0 < images.size <= FEW_FLOATS and min(images.shape[2:]) >= SMALLEST_SIDE
    session = statistics_session() if few else None
    if session is None:
        return statistics(images)
    rows: Array = session.run(None, {"images": np.ascontiguousarray(images, np.float32)})[0]
    return rows


@lru_cache(1)
def statistics_session() -> Any:
    """The graph of `measured`; None without ONNX Runtime. The first call takes about 0.6 s."""

    def export(path: Path) -> float:
        return export_onnx(
            StatisticsModule(),
            path,
            example=(2, 3, 32, 32),
            check=(3, 3, 48, 40),
            output="statistics",
        )

    return session_of(export)


class StatisticsModule(nn.Module):
    """`measured` as a module, for export."""

    def forward(self, images: Tensor) -> Tensor:
        return measured(images)
