"""The class probabilities inside of a model's response, for the learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from soda_tta.box.box import Box
from soda_tta.box.probabilities import check_probabilities, without_background
from soda_tta.errors import BoxError
from soda_tta.protocols.open_inference import MissingOutput, Response, decode_response
from soda_tta.serve.compression import decompressed
from soda_tta.types import Array

MOST_BYTES = 2**24  # of a response that was compressed
ROUNDING = 1e-4  # of a sum of probabilities


class Answers:
    """Reads responses of one model.

    Parameters
    ----------
    box : Box
        States what the model returns: logits, partial rows, a background class.
    output : str
        The output with the class scores.
    """

    def __init__(self, box: Box, output: str) -> None:
        self.box = box
        self.output = output
        self.classes: int | None = None

    def from_http(self, body: bytes, headers: Mapping[str, str], count: int) -> Array | None:
        """The probabilities of `count` images; None if the client wanted other outputs.

        Raises a `BoxError` or `ProtocolError` if the response is not valid.
        """
        opened = decompressed(body, headers, MOST_BYTES)
        if opened is None:
            return None
        try:
            response = decode_response(opened, headers, [self.output])
        except MissingOutput:
            return None
        return self.checked(response, count)

    def from_grpc(self, body: bytes, count: int) -> Array | None:
        """The same, from the bytes of a ModelInferResponse."""
        from tritonclient.grpc import service_pb2 as messages

        from soda_tta.protocols.open_inference_grpc import response_from_grpc

        message: Any = messages.ModelInferResponse.FromString(body)
        if self.output not in [output.name for output in message.outputs]:
            return None
        return self.checked(response_from_grpc(message, self.output), count)

    def checked(self, response: Response, count: int) -> Array:
        """The rows of a response, if they are probabilities."""
        scores = response[self.output]
        if self.box.logits and are_probabilities(scores):
            raise BoxError("the model returned probabilities already; leave out logits=True.")
        rows = check_probabilities(scores, count, None, self.box.logits, self.box.partial)
        if self.box.background:
            rows = without_background(rows)
        if self.classes not in (None, rows.shape[1]):
            raise BoxError(f"the model returned {rows.shape[1]} classes, before {self.classes}.")
        self.classes = rows.shape[1]
        return rows


def are_probabilities(scores: Array) -> bool:
    """Whether scores are rows of probabilities.

    >>> are_probabilities(np.array([[0.5, 0.5]])), are_probabilities(np.array([[1.5, -0.5]]))
    (True, False)
    """
    sums = scores.sum(axis=-1, dtype=np.float64)
    return bool(scores.min() >= 0 and np.abs(sums - 1).max() <= ROUNDING)
