"""Where an estimate would drown: probes of which too little arrives at a model that takes bytes, PNG or JPEG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from soda_tta.adaptors import Adaptor
from soda_tta.box import Box
from soda_tta.search import SGD, MultiPoint, PerImage
from soda_tta.types import Array

LOOKED_AT = 16  # images
HEARD = 0.9  # of the best correlation of what arrives with what was sent: of bytes, probes of about one step
LEAST = 0.5  # a best below this is no help
LARGEST = 1.0  # mu: a probe is then as large as the weights it moves


def drowned_probes(search: Any, adaptor: Adaptor, images: Array, box: Box, seed: int) -> str | None:
    """What is wrong and what helps, if probes of the adaptor do not arrive at the model; costs no query."""
    if not isinstance(search, MultiPoint | PerImage):
        return None

    def probe(mu: float) -> Array:
        points = replace(search, mu=mu).start(adaptor.parameters, SGD(), seed).ask()[:2]
        return adaptor.candidates(images[:LOOKED_AT], points.astype(np.float32))

    return drowned(probe, search.mu, box)


def drowned(probe: Callable[[float], Array], mu: float, box: Box) -> str | None:
    """The same of any probe: it makes images as they are, and as they are looked at with this or that `mu`.

    JPEG loses some of every probe, however large (fine colour, for one), so a mu is held to what the best can do.
    """
    if not box.quantum:
        return None
    larger = (mu * step * 10**power for power in range(6) for step in (1, 2, 5))
    reach = {
        each: arriving(probe(each), box)
        for each in (mu, *(each for each in larger if mu < each <= LARGEST))
    }
    best = max(reach.values())
    if reach[mu] >= HEARD * best and best >= LEAST:
        return None
    here, there = probe(mu)
    moved = 255 * float(np.sqrt(np.mean((there - here) ** 2)))
    enough = next(each for each, found in reach.items() if found >= HEARD * best)
    remedy = (
        f"raise mu (--set mu={enough:.2g})"
        if best >= LEAST
        else "no mu helps; use soda-e (--method soda-e)"
    )
    return (
        f"a probe moves pixels by {moved:.2g} of an 8-bit step and little of that arrives at this model (a correlation "
        f"of {reach[mu]:.2f}): its differences are rounding noise; {remedy}."
    )


def arriving(pair: Array, box: Box) -> float:
    """The correlation of a difference between images with what is left of it where the model is."""
    sent = (pair[1] - pair[0]).astype(np.float64)
    got = box.as_received(pair[1]).astype(np.float64) - box.as_received(pair[0])
    lengths = np.linalg.norm(sent) * np.linalg.norm(got)
    return float((sent * got).sum() / lengths) if lengths else 0.0
