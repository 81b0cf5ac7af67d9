"""`find_convention`: what a model expects of its pixels, from unlabelled images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from soda_tta.box import Ledger, Meter, load_box
from soda_tta.box.wrappers.undecided import Undecided
from soda_tta.conventions.convention import Convention
from soda_tta.conventions.sample import Sample
from soda_tta.conventions.search import MOST_QUERIES, Progress, Search
from soda_tta.conventions.table import Facts
from soda_tta.data import open_images
from soda_tta.errors import ImageError

MOST_IMAGES = 128
FEWEST_IMAGES = 16


def find_convention(
    images: Any,
    box: Any,
    *,
    own: Mapping[str, Facts] | None = None,
    check: bool = False,
    most_images: int = MOST_IMAGES,
    seed: int = 0,
    meter: Meter | None = None,
    progress: Progress = lambda done, limit: None,
) -> Convention:
    """Find what a model expects of its pixels, with at most 1,000 queries and without labels.

    Normalisation, channel order, layout, crop and orientation are tried on up to 128 images by
    sequential halving. The best is where the responses carry the most information about the images.

    Parameters
    ----------
    images : path, array or Images
        At least 16 images of the kind that the model was trained on. They may be shifted.
    box : Box, callable, module, path or address
        The deployed model. What is stated about it, or declared by it, is not searched; see
        `load_box(..., input="auto")`.
    own : mapping, optional
        Your own normalisations to try, by name: `{"mine": {"mean": 0.1, "std": 0.3}}`, in the
        order R, G, B.
    check : bool, default False
        Try what is stated about the model as one candidate among the others.
    most_images : int, default 128
        The most images to send. Fewer need fewer queries and give less certainty.
    seed : int, default 0
        Decides which images are sent.
    meter : Meter, optional
        Counts the queries, as "convention". Default: one of its own, limited to 1,000.
    progress : callable, optional
        Called as `progress(queries, limit)` after every response.

    Returns
    -------
    Convention
        What to state, how sure it is, and the box with it.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).random((40, 8, 8, 3), np.float32)
    >>> def model(pixels):  # takes -1 to 1
    ...     score = 9 * pixels[:, :, 0, 0]
    ...     return np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    >>> find_convention(images, model).queries <= 1000
    True
    """
    deployed = load_box(box)
    fixed = frozenset(deployed.declared)
    if isinstance(deployed, Undecided):
        own = {**deployed.own, **(own or {})}
        fixed = deployed.fixed
        deployed = deployed.box
    source = open_images(images)
    if len(source) < FEWEST_IMAGES:
        raise ImageError(
            f"{len(source)} images are too few to find the input convention; give at least "
            f"{FEWEST_IMAGES}, or state it: mean, std, pixel_range and channels."
        )
    counted = meter or Meter(deployed, Ledger(MOST_QUERIES))
    count = min(most_images, MOST_IMAGES)
    search = Search(deployed, fixed, Sample(source, count, seed, deployed.input.view))
    search.meter = counted
    search.progress = progress
    search.check = check
    return search.run(own)
