"""Answers in place of a model's response: the mean over several views, and class weights.

Where a response cannot be rewritten, it passes as it is. Everything else in it stays as the model
sent it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from soda_tta.adaptors import Answering
from soda_tta.errors import BoxError
from soda_tta.protocols.open_inference_grpc import CONTENTS
from soda_tta.protocols.tensors import DATATYPES, little_endian
from soda_tta.serve.answers import MOST_BYTES, Answers
from soda_tta.serve.compression import HEADER as COMPRESSED
from soda_tta.serve.compression import decompressed
from soda_tta.serve.connection import Reply
from soda_tta.serve.messages import find_output
from soda_tta.types import Array

LEAST_LIKELY = 1e-30  # its logarithm stands for that of 0


def rewritten_http(
    replies: Sequence[Reply], answers: Answers, answering: Answering, count: int
) -> Reply:
    """The first response with the answers of all; unchanged if the client wanted other outputs.

    Parameters
    ----------
    replies : the responses to each view, that to the image itself first. If some are missing, the
        answer is the mean over the others.
    answers : reads responses.
    answering : how responses become answers.
    count : images per response.
    """
    first = replies[0]
    rows = [answers.from_http(each.body, each.headers, count) for each in replies]
    body = decompressed(first.body, first.headers, MOST_BYTES)
    found = None if body is None else find_output(body, first.headers, answers.output)
    if found is None or any(each is None for each in rows):
        return first
    scores = scores_of(np.array(rows), answers, answering, found.array)
    headers = {name: text for name, text in first.headers.items() if name != COMPRESSED}
    return replace(first, body=found.replaced(scores), headers=headers)


def rewritten_grpc(
    responses: Sequence[bytes], answers: Answers, answering: Answering, count: int
) -> bytes:
    """The same for the bytes of a ModelInferResponse."""
    from tritonclient.grpc import service_pb2 as messages

    rows = [answers.from_grpc(each, count) for each in responses]
    if any(each is None for each in rows):
        return responses[0]
    message: Any = messages.ModelInferResponse.FromString(responses[0])
    place = [output.name for output in message.outputs].index(answers.output)
    entry = message.outputs[place]
    like = np.empty(tuple(entry.shape), DATATYPES[entry.datatype])
    scores = scores_of(np.array(rows), answers, answering, like)
    if message.raw_output_contents:
        message.raw_output_contents[place] = little_endian(scores).tobytes()
    else:
        values = getattr(entry.contents, CONTENTS[entry.datatype])
        values[:] = scores.ravel().tolist()
    return bytes(message.SerializeToString())


def scores_of(rows: Array, answers: Answers, answering: Answering, like: Array) -> Array:
    """Answers in the form in which the model returns them: its type, its shape, logits or not.

    Parameters
    ----------
    rows : array of shape (views, n, classes)
    like : the model's own scores.
    """
    if like.dtype.kind != "f" or answers.box.background:
        raise BoxError(
            f"scores of {like.dtype}{' with a background class' * answers.box.background} cannot "
            "be replaced by answers; the responses of the model pass as they are."
        )
    known = answering if len(rows) == answering.queries else replace(answering, views=())
    final = known.answers(rows if known.views else rows.mean(axis=0, keepdims=True))
    if answers.box.logits:
        final = np.log(final + np.float32(LEAST_LIKELY))
    shaped: Array = final.reshape(like.shape).astype(like.dtype)
    return shaped
