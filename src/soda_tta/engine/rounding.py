"""Where an estimate would drown: probes that hardly arrive at a model that takes 8-bit images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box
from soda_tta.search import SGD
from soda_tta.types import Array

IMAGES_CHECKED = 16
ENOUGH = 0.9  # share of the best correlation: for bytes, probes of about one step reach it
USELESS = 0.5  # a best correlation below this means that no mu helps
LARGEST_MU = 1.0  # a probe is then as large as the weights it moves


def drowned_probes(search: Any, adaptor: Adaptor, images: Array, box: Box, seed: int) -> str | None:
    """A notice with its remedy, if probes of the adaptor hardly arrive at the model.

    This sends no query.

    Parameters
    ----------
    search : the settings of a search; one without probes is never a problem.
    adaptor : what the search changes.
    images : a few images to try.
    box : the model; only how images travel to it matters.
    seed : the seed of the search.
    """
    if search.probe_length is None:
        return None

    def probe(mu: float) -> Array:
        changed = replace(search, mu=mu)
        points = changed.start(adaptor.parameters, step=SGD(), units=1.0, seed=seed).ask()[:2]
        return adaptor.candidates(images[:IMAGES_CHECKED], points.astype(np.float32))

    return drowned(probe, search.probe_length, box)


def drowned(probe: Callable[[float], Array], mu: float, box: Box) -> str | None:
    """The same for any probe.

    JPEG loses some of every probe, however large (fine colour, for example). So a mu is compared
    with the best that any mu achieves.

    Parameters
    ----------
    probe : gives a pair of image batches for a mu: as they are, and probed.
    mu : the distance in question.
    box : the model; only how images travel to it matters.
    """
    if not box.quantum:
        return None
    larger = [mu * step * 10**power for power in range(6) for step in (1, 2, 5)]
    tried = [mu, *(each for each in larger if mu < each <= LARGEST_MU)]
    arriving = {each: arriving_share(probe(each), box) for each in tried}
    best = max(arriving.values())
    if arriving[mu] >= ENOUGH * best and best >= USELESS:
        return None
    here, there = probe(mu)
    moved = 255 * float(np.sqrt(np.mean((there - here) ** 2)))
    remedy = "no mu helps; use method='soda-e'"
    if best >= USELESS:
        enough = next(each for each, share in arriving.items() if share >= ENOUGH * best)
        remedy = f"raise mu (mu={enough:.2g})"
    return (
        f"a probe moves pixels by {moved:.2g} of an 8-bit step, and little of that arrives at this "
        f"model (correlation {arriving[mu]:.2f}): its differences are rounding noise; {remedy}."
    )


def arriving_share(pair: Array, box: Box) -> float:
    """The correlation of a difference between images with what is left of it at the model."""
    sent = (pair[1] - pair[0]).astype(np.float64)
    received = box.as_received(pair[1]).astype(np.float64) - box.as_received(pair[0])
    lengths = np.linalg.norm(sent) * np.linalg.norm(received)
    return float((sent * received).sum() / lengths) if lengths else 0.0
