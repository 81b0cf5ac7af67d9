"""A box that records: after a crash, the same queries get the recorded responses."""

from __future__ import annotations

import hashlib

import numpy as np

from soda_tta.box.box import Wrapper
from soda_tta.box.wrappers.metered import Metered
from soda_tta.storage.transcript import Transcript
from soda_tta.types import Array


class Recorded(Wrapper):
    """A metered box whose responses survive the process.

    Given the same queries in the same order, it replays the transcript instead of the model.

    Parameters
    ----------
    box : the metered model.
    transcript : where responses are recorded.
    """

    box: Metered

    def __init__(self, box: Metered, transcript: Transcript) -> None:
        super().__init__(box)
        self.transcript = transcript

    def __call__(self, images: Array) -> Array:
        pixels = np.ascontiguousarray(images, np.float32)
        digest = hashlib.blake2b(pixels.data, digest_size=16).digest()
        recorded = self.transcript.next(digest)
        if recorded is not None:
            self.box.ledger.recover(len(recorded), self.box.purpose)
            return recorded
        response = self.box(images)
        self.transcript.append(digest, self.box.ledger.lost, response)
        return response
