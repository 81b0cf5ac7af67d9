"""`Input.prepare` and the way from scores to probabilities, as nodes of an ONNX graph.

One function per step, in the order of `Input.prepare`. Images between two steps are float32 NCHW.
"""

from __future__ import annotations

import numpy as np

from soda_tta.box.facts import OutputFacts
from soda_tta.box.input import LUMA, Input
from soda_tta.box.view import QUARTER, View
from soda_tta.protocols.onnx_graphs import GraphBuilder

BYTES = 255.0
TO_NCHW = [0, 3, 1, 2]
TO_NHWC = [0, 2, 3, 1]


def plain_images(graph: GraphBuilder, images: str, takes: str) -> str:
    """The images of this package, float32 NCHW RGB in [0, 1], from what a deployed file takes.

    Parameters
    ----------
    graph : GraphBuilder
    images : str
        Name of the input.
    takes : {"uint8", "float"}
        Bytes in the order NHWC, or already the images of this package.
    """
    if takes == "float":
        return images
    numbers = graph.cast(graph.node("Transpose", images, perm=TO_NCHW), "float32")
    return graph.node("Div", numbers, graph.constant(np.float32(BYTES)))


def shrunk(graph: GraphBuilder, images: str, view: View | None) -> str:
    """Images with more pixels than the model takes, resized; see `engine/working_size.py`."""
    if view is None:
        return images
    pixels = graph.node("Mul", graph.extent(images, 2), graph.extent(images, 3))
    most = graph.constant(np.float64(view.size[0] * view.size[1]))
    larger = graph.node("Greater", pixels, most)
    return graph.only_if(larger, images, lambda inner: resized(inner, images, view))


def prepared(graph: GraphBuilder, images: str, facts: Input) -> str:
    """What the model takes; see `Input.prepare`."""
    images = viewed(graph, images, facts.view)
    images = turned(graph, images, facts)
    images = reordered(graph, images, facts)
    images = normalised(graph, images, facts)
    return laid_out(graph, images, facts)


def viewed(graph: GraphBuilder, images: str, view: View | None) -> str:
    """Images in the model's size; those that have it stay as they are."""
    if view is None:
        return images
    same = [
        graph.node("Equal", graph.extent(images, axis), graph.constant(np.float64(extent)))
        for axis, extent in zip((2, 3), view.size, strict=True)
    ]
    other = graph.node("Not", graph.node("And", *same))
    return graph.only_if(other, images, lambda inner: resized(inner, images, view))


def resized(graph: GraphBuilder, images: str, view: View) -> str:
    """Pillow's antialiased bilinear filter, as a matrix product along each axis.

    The operator Resize deviates from Pillow by up to 7e-6 and needs opset 18; this by 2e-7.
    """
    extents = [graph.extent(images, axis) for axis in (2, 3)]
    rows, columns = (
        bilinear_weights(graph, extent, window(graph, extents, extent, size, view), size)
        for extent, size in zip(extents, view.size, strict=True)
    )
    columns = graph.node("Transpose", columns, perm=[1, 0])
    return graph.node("MatMul", rows, graph.node("MatMul", images, columns))


def window(
    graph: GraphBuilder, extents: list[str], extent: str, size: int, view: View
) -> tuple[str, str]:
    """Where the view begins along one axis, and how many pixels it has; see `View.window`."""
    if view.crop is None:
        return graph.constant(np.float64(0)), extent
    scales = [
        graph.node("Div", each, graph.constant(np.float64(target)))
        for each, target in zip(extents, view.size, strict=True)
    ]
    share = graph.constant(np.float64(view.crop))
    scale = graph.node("Mul", graph.node("Min", *scales), share)
    kept = graph.node("Mul", scale, graph.constant(np.float64(size)))
    margin = graph.node("Sub", extent, kept)
    start = graph.node("Mul", margin, graph.constant(np.float64(0.5)))
    end = graph.node("Add", start, kept)
    # Pillow takes the window as float32
    start, end = (graph.cast(graph.cast(each, "float32"), "float64") for each in (start, end))
    return start, graph.node("Sub", end, start)


def bilinear_weights(graph: GraphBuilder, extent: str, window: tuple[str, str], size: int) -> str:
    """The weight of each pixel (columns) in each resized pixel (rows), as Pillow computes it.

    A resized pixel is the mean of pixels around its centre, weighted by a triangle. All numbers are
    float64, as in Pillow: a centre far from 0 has too few digits in float32.

    Parameters
    ----------
    graph : GraphBuilder
    extent : str
        Name of the number of pixels along this axis.
    window : (str, str)
        Names of two numbers: where the window that is resized begins, and its pixels.
    size : int
        Pixels along this axis afterwards.
    """
    start, kept = window
    one = graph.constant(np.float64(1))
    scale = graph.node("Div", kept, graph.constant(np.float64(size)))
    radius = graph.node("Max", scale, one)
    centres = graph.node("Mul", graph.constant(np.arange(size)[:, None] + 0.5), scale)
    centres = graph.node("Add", centres, start)
    pixels = graph.node("Range", graph.constant(np.float64(0)), extent, one)
    pixels = graph.node("Add", pixels, graph.constant(np.float64(0.5)))
    distances = graph.node("Abs", graph.node("Sub", pixels, centres))
    heights = graph.node("Sub", one, graph.node("Div", distances, radius))
    triangles = graph.node("Max", heights, graph.constant(np.float64(0)))
    return graph.cast(graph.node("Div", triangles, graph.row_sums(triangles)), "float32")


def turned(graph: GraphBuilder, images: str, facts: Input) -> str:
    """Images turned clockwise, then mirrored left to right."""
    quarters = facts.turn // QUARTER
    if quarters % 2:
        images = graph.node("Transpose", images, perm=[0, 1, 3, 2])
    # after the transposition, 90 degrees are one reversed axis and 270 the other
    for axis in {0: (), 1: (3,), 2: (2, 3), 3: (2,)}[quarters]:
        images = graph.reversed(images, axis)
    return graph.reversed(images, 3) if facts.mirror else images


def reordered(graph: GraphBuilder, images: str, facts: Input) -> str:
    """The channels in the model's order, or one grey channel."""
    if facts.channels == "L":
        return graph.node("Conv", images, graph.constant(LUMA.reshape(1, 3, 1, 1)))
    return graph.reversed(images, 1) if facts.channels == "BGR" else images


def normalised(graph: GraphBuilder, images: str, facts: Input) -> str:
    """`(pixel * pixel_range - mean) / std`, per channel."""
    scale = np.array(facts.pixel_range, np.float64) / np.array(facts.std)
    shift = np.array(facts.mean) / np.array(facts.std)
    depth = 1 if facts.channels == "L" else 3
    if np.any(scale != 1):
        factors = scale[:depth].astype(np.float32).reshape(1, -1, 1, 1)
        images = graph.node("Mul", images, graph.constant(factors))
    if np.any(shift != 0):
        offsets = shift[:depth].astype(np.float32).reshape(1, -1, 1, 1)
        images = graph.node("Sub", images, graph.constant(offsets))
    return images


def laid_out(graph: GraphBuilder, images: str, facts: Input) -> str:
    """The axes in the model's order, and its element type."""
    if facts.layout == "NHWC":
        images = graph.node("Transpose", images, perm=TO_NHWC)
    if facts.dtype == "uint8":
        limits = [graph.constant(np.float32(limit)) for limit in (0, BYTES)]
        images = graph.node("Clip", graph.node("Round", images), *limits)
    return images if facts.dtype == "float32" else graph.cast(images, facts.dtype)


def probabilities(graph: GraphBuilder, scores: str, facts: OutputFacts, *, is_matrix: bool) -> str:
    """One row of float32 probabilities per image, from what the model returns.

    Rows that are only partly known stay as they are: a box completes them.

    Parameters
    ----------
    graph : GraphBuilder
    scores : str
        Name of the model's output.
    facts : OutputFacts or Box
        What the output is.
    is_matrix : bool
        The output is float32 of shape (images, classes) already.
    """
    rows = scores
    if not is_matrix:
        rows = graph.cast(graph.node("Flatten", scores, axis=1), "float32")
    if facts.logits:
        rows = graph.node("Softmax", rows, axis=1)
    return without_background(graph, rows) if facts.background and not facts.partial else rows


def without_background(graph: GraphBuilder, rows: str) -> str:
    """Rows without their class 0 that sum to 1 again; a row that is all background is uniform."""
    last = np.array([np.iinfo(np.int64).max])
    bounds = [graph.constant(each) for each in (np.array([1]), last, np.array([1]))]
    others = graph.node("Slice", rows, *bounds)
    empty = graph.node("Equal", graph.row_sums(others), graph.constant(np.float32(0)))
    filled = graph.node("Add", others, graph.cast(empty, "float32"))
    return graph.node("Div", filled, graph.row_sums(filled))
