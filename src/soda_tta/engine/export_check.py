"""How what is deployed is compared with the two steps that it replaces, adaptor and model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from soda_tta.data import open_images
from soda_tta.data.resizing import size_text
from soda_tta.engine.adapted_graph import AdaptedGraph
from soda_tta.errors import SodaError
from soda_tta.protocols.onnx_files import TOLERANCE
from soda_tta.types import Array

USUAL_SIZE = (64, 48)  # of the images to check with, in front of a model that takes any size
MOST_CHECKED = 16  # of the user's own images
AMPLIFIED = (
    "images of {} reach the model with the same pixels to 1e-5 on average, but its probabilities "
    "deviate by up to {:.1g}: it takes bytes or computes in steps, and some pixels are rounded to "
    "the next step. Images of the model's own size do not deviate."
)


def pictures_for(
    graph: AdaptedGraph, learned: tuple[int, int] | None, images: Any
) -> Iterator[Array]:
    """Batches of images to check with: random ones of several sizes, and the user's own.

    Parameters
    ----------
    graph : AdaptedGraph
    learned : (int, int) or None
        Height and width of the images of the run, for a model that takes any size.
    images : whatever `adapt` takes, or None.
    """
    view = graph.box.input.view
    height, width = view.size if view is not None else learned or USUAL_SIZE
    count = graph.box.batch if graph.box.fixed_batch else 2
    yield random_pictures(count, (height, width))
    if view is not None:
        yield random_pictures(count, (height + height // 2, 2 * width + 1))
        yield random_pictures(count, (height - height // 8, width))
    if images is not None:
        own = open_images(images)[slice(0, MOST_CHECKED)]
        # floats between two bytes do not fit into a file that takes bytes
        yield np.rint(own * 255).astype(np.float32) / 255 if graph.takes == "uint8" else own


def random_pictures(count: int, size: tuple[int, int]) -> Array:
    """Images of noise and of coloured squares, in steps of 1/255."""
    generator = np.random.default_rng(0)
    noise = generator.integers(0, 256, (count, 3, *size))
    squares = generator.integers(0, 256, (count, 3, -(-size[0] // 4), -(-size[1] // 4)))
    squares = squares.repeat(4, axis=2).repeat(4, axis=3)[:, :, : size[0], : size[1]]
    noise[::2] = squares[::2]
    pictures: Array = noise.astype(np.float32) / 255
    return pictures


def largest_deviation(
    graph: AdaptedGraph, deployed: Callable[[Array], Array], pictures: list[Array]
) -> tuple[float, list[str]]:
    """The largest difference between what is deployed and the two steps that it replaces.

    Returns
    -------
    The difference, and notices about images that could not be compared by their probabilities.
    """
    largest = 0.0
    notices = []
    for batch in pictures:
        difference = float(np.abs(deployed(batch) - graph.in_two_steps(batch)).max())
        if difference > TOLERANCE and is_resized(graph, batch) and has_same_input(graph, batch):
            notices.append(AMPLIFIED.format(size_text(batch.shape[2:]), difference))
            continue
        largest = max(largest, difference)
    if not largest <= TOLERANCE:
        raise SodaError(
            f"the exported ONNX file deviates from adaptor and model by {largest:.2g} in a "
            "probability; it was not written. Run them one after the other (apply) instead, and "
            "please report this."
        )
    return largest, notices


def is_resized(graph: AdaptedGraph, images: Array) -> bool:
    """Whether these images do not have the size of the model."""
    view = graph.box.input.view
    return view is not None and images.shape[2:] != view.size


def has_same_input(graph: AdaptedGraph, images: Array) -> bool:
    """Whether the model gets the same pixels, except for those that are rounded otherwise.

    Resized pixels differ by 1e-7 from Pillow's. If the model takes bytes or computes in steps, some
    are rounded to the next step, which is far more than 1e-5. But they are few, so the mean counts.
    """
    box = graph.box
    if box.fixed_batch:
        images = np.resize(images, (box.batch, *images.shape[1:]))  # repeated or cut
    expected = box.input.prepare(graph.adapted(images)).astype(np.float64)
    difference = np.abs(graph.model_input(images) - expected).mean()
    scale = (box.input.pixel_range or 1.0) / min(box.input.std)
    return bool(difference <= TOLERANCE * scale)
