"""`Answering` as nodes of an ONNX graph: further views in front of a model, answers behind it."""

from __future__ import annotations

import numpy as np

from soda_tta.adaptors.answering import LEAST_LIKELY, SHIFT, Answering
from soda_tta.protocols.onnx_graphs import GraphBuilder

LAST = np.iinfo(np.int64).max


def views_of(graph: GraphBuilder, images: str, answering: Answering) -> str:
    """All views of images as one batch, one view after the other; see `Answering.sent`."""
    if not answering.views:
        return images
    makers = {"mirror": mirrored, "shift": shifted}
    views = [makers[name](graph, images) for name in answering.views]
    return graph.node("Concat", images, *views, axis=0)


def mirrored(graph: GraphBuilder, images: str) -> str:
    """Every image mirrored left to right."""
    return graph.reversed(images, 3)


def shifted(graph: GraphBuilder, images: str) -> str:
    """Every image moved down and to the left; pixels that enter repeat the border."""
    down, left = (steps(graph, images, axis) for axis in (2, 3))
    none = graph.constant(np.zeros(1, np.int64))
    nones = graph.constant(np.zeros(2, np.int64))
    pads = graph.node("Concat", nones, down, none, nones, none, left, axis=0)
    wide = graph.node("Pad", images, pads, mode="edge")
    first, last, rows, columns = (graph.constant(np.array([n])) for n in (0, LAST, 2, 3))
    narrow = graph.node("Slice", wide, left, last, columns)
    return graph.node("Slice", narrow, first, graph.node("Neg", down), rows)


def steps(graph: GraphBuilder, images: str, axis: int) -> str:
    """By how many pixels images are moved along an axis, as a list of one number."""
    extents = graph.node("Shape", images)
    extent = graph.node("Gather", extents, graph.constant(np.array([axis])))
    share = graph.node("Div", extent, graph.constant(np.array([SHIFT])))
    return graph.node("Max", share, graph.constant(np.array([1])))


def answers_of(graph: GraphBuilder, rows: str, answering: Answering) -> str:
    """The answers, from the probabilities for all views; see `Answering.received`."""
    if answering.views:
        rows = mean_over_views(graph, rows, answering.queries)
    if answering.weights is None:
        return rows
    least = graph.constant(np.float32(LEAST_LIKELY))
    weights = graph.constant(answering.weights.astype(np.float32))
    products = graph.node("Mul", graph.node("Add", rows, least), weights)
    return graph.node("Div", products, graph.row_sums(products))


def mean_over_views(graph: GraphBuilder, rows: str, count: int) -> str:
    """The mean of `count` blocks of rows, one per view."""
    shape = graph.node("Shape", rows)
    classes = graph.node("Gather", shape, graph.constant(np.array([1])))
    blocks = graph.node("Concat", graph.constant(np.array([count, -1])), classes, axis=0)
    stacked = graph.node("Reshape", rows, blocks)
    parts = [
        graph.node("Gather", stacked, graph.constant(np.array(place)), axis=0)
        for place in range(count)
    ]
    total = graph.node("Sum", *parts)
    return graph.node("Mul", total, graph.constant(np.float32(1 / count)))
