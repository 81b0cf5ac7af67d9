"""A box over HTTP: any server of the Open Inference Protocol (KServe V2).

Triton, KServe and MLServer speak it.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box.addresses import check_address
from soda_tta.box.backends.backend import Backend
from soda_tta.box.backends.http import HttpClient, HttpResponse
from soda_tta.box.box import Box
from soda_tta.box.input import declared_by_shape, input_from_shape
from soda_tta.box.top_classes import refuse_top_classes
from soda_tta.box.wrappers.batched import Batched
from soda_tta.box.wrappers.retrying import RETRIES, Retrying, retry
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.foreign_json import parse_json
from soda_tta.foreign_text import quoted
from soda_tta.masking import keep_secret, masked
from soda_tta.protocols.open_inference import (
    BINARY_EXTENSION,
    DATATYPES,
    ModelMetadata,
    ProtocolError,
    RequestedOutput,
    Tensor,
    TensorMetadata,
    decode_metadata,
    decode_response,
    encode_request,
)
from soda_tta.types import Array

SENT = ("FP32", "FP16", "UINT8")  # the datatypes of images this package sends
SCORES = ("FP16", "FP32", "FP64")  # the datatypes of class scores it reads
# Worth a retry. A 500 is not: servers use it for requests that are wrong themselves.
UNAVAILABLE = (408, 425, 429, 502, 503, 504)
QUESTION = "does the server speak the Open Inference Protocol?"
DESCRIPTION_BYTES = 2**22  # of the description of a model or server, at most
BODY_BYTES = 2**20  # of a response without its values
VALUE_BYTES = 64  # of one value: JSON needs about 25
MOST_BYTES = 2**30  # of a response, whatever the model declares
UNDECLARED_CLASSES = 2**16  # assumed where the model does not declare their number


class OpenInferenceBox(Backend):
    """Query `http(s)://host:port/v2/models/NAME[/versions/V]`, one request per call.

    Names, shapes and types come from the metadata of the model.

    Parameters
    ----------
    url : str
        Address of the model.
    output : str, optional
        Name of the output with the class scores. Default: the only one.
    batch : int, default 64
        Images per request. A model with a fixed batch overrides it.
    timeout : float, default 30
        Seconds for a whole request, from connecting to the last byte of the response.
    binary : bool, optional
        Send binary tensors (True) or JSON (False). Default: binary if the server offers it.
    api_key_env : str, optional
        Environment variable that holds the API key. The key itself is never an argument.
    api_key_header : str, default "Authorization"
        HTTP header for the key. In "Authorization" it is sent as a bearer token.
    certificate_authority : str or Path, optional
        PEM file of a certificate authority to trust. Default: those of the system.
    **facts
        Facts about the input (see `Input`) and the output (`logits`, `partial`).
    """

    def __init__(
        self,
        url: str,
        *,
        output: str | None = None,
        batch: int = 64,
        timeout: float = 30.0,
        binary: bool | None = None,
        api_key_env: str | None = None,
        api_key_header: str = "Authorization",
        certificate_authority: str | Path | None = None,
        **facts: Any,
    ) -> None:
        check_address(url)
        self.url = url.rstrip("/")
        self.timeout = timeout
        key = key_header(api_key_env, api_key_header)
        self.client = HttpClient(timeout, key, certificate_authority)
        self.echoes = False  # whether the server returns the id of a request
        metadata = self._model_metadata()
        image = self._image_input(metadata)
        dtype = DATATYPES[image.datatype]
        self.version = metadata.versions[-1] if metadata.versions else "?"
        self.input_name = image.name
        self.input = input_from_shape(image.shape, dtype, **self.state_output(facts))
        self.declared = declared_by_shape(image.shape, dtype)
        self.fixed_batch = isinstance(image.shape[0], int) and image.shape[0] > 0
        self.batch = image.shape[0] if self.fixed_batch else batch
        self.output_name = output or self._only_output(metadata)
        self.values = sum(values_per_image(each) for each in metadata.outputs)
        refuse_top_classes(self.url, metadata.outputs, self.output_name)
        self.binary = self._offers_binary() if binary is None else binary
        if image.datatype == "FP16" and not self.binary:
            raise BoxError(
                f"{self.url} takes FP16, which JSON cannot carry, and offers no binary tensors."
            )

    @classmethod
    def takes(cls, model: Any) -> bool:
        return isinstance(model, str) and model.startswith(("http://", "https://"))

    @classmethod
    def options(cls) -> set[str]:
        return super().options() | {"workers", "retries"}

    @classmethod
    def load(cls, model: Any, options: dict[str, Any]) -> Box:
        """Concurrent requests, each of them retried; `workers` of them at once."""
        if "/v2/models/" not in model:
            raise BoxError(f"{model} names no model; pass http(s)://host:port/v2/models/NAME.")
        own = ("workers", "retries")
        arguments = {name: value for name, value in options.items() if name not in own}
        attempts = 1 + options.get("retries", RETRIES)
        box = retry(
            lambda: super(OpenInferenceBox, cls).load(model, arguments), attempts=min(3, attempts)
        )
        return Batched(Retrying(box, attempts=attempts), workers=options.get("workers", 4))

    def _model_metadata(self) -> ModelMetadata:
        try:
            return decode_metadata(self._get(self.url))
        except ProtocolError as error:
            raise BoxError(f"{self.url} does not describe a model; {QUESTION}") from error

    def _image_input(self, metadata: ModelMetadata) -> TensorMetadata:
        """The one input of the model, of a type that can be sent."""
        if len(metadata.inputs) != 1:
            raise BoxError(
                f"{self.url} has {len(metadata.inputs)} inputs; an image classifier has one."
            )
        if metadata.inputs[0].datatype not in SENT:
            raise BoxError(
                f"{self.url} takes {metadata.inputs[0].datatype}; "
                f"this package sends {', '.join(SENT)}."
            )
        return metadata.inputs[0]

    def _only_output(self, metadata: ModelMetadata) -> str:
        names = [output.name for output in metadata.outputs]
        if len(names) != 1:
            raise BoxError(
                f"{self.url} has the outputs {quoted(', '.join(names)) or '(none)'}; "
                "choose the one with the class scores (output='NAME')."
            )
        return names[0]

    def _offers_binary(self) -> bool:
        try:
            server = self._get(self.url.rpartition("/models/")[0])
        except BoxUnavailable:
            raise
        except BoxError:  # a gateway may expose the model but not the server
            return False
        extensions = server.get("extensions")
        return isinstance(extensions, list) and BINARY_EXTENSION in extensions

    def answer(self, images: Array) -> Array:
        tensor = Tensor(self.input_name, self.input.prepare(images))
        wanted = RequestedOutput(self.output_name, binary=self.binary)
        id = uuid.uuid4().hex
        body, headers = encode_request([tensor], [wanted], binary=self.binary, id=id)
        most = min(MOST_BYTES, BODY_BYTES + VALUE_BYTES * self.values * len(images))
        url = f"{self.url}/infer"
        with self._send("POST", url, most, content=body, headers=headers) as response:
            if response.status_code != 200:
                raise BoxError(f"{self.url} answered {describe(response)}")
            try:
                decoded = decode_response(response.content, response.headers, [self.output_name])
            except ProtocolError as error:
                raise BoxError(f"{self.url}: {error}") from error
            self._check_id(id, decoded.id)
        scores = decoded.outputs[0]
        if scores.datatype not in SCORES:
            raise BoxError(
                f"{self.url} returned {scores.datatype} values in {scores.name!r}; "
                f"class scores are {', '.join(SCORES)}. Choose another output (output='NAME')."
            )
        return np.asarray(scores.array, np.float32)

    def _check_id(self, sent: str, received: str | None) -> None:
        """Refuse the response to another request; a server need not return ids."""
        if received == sent:
            self.echoes = True
        elif received or self.echoes:
            raise BoxUnavailable(
                f"{self.url} answered with the id of another request, so the response may be that "
                "to other images. The connection was closed."
            )

    def _get(self, url: str) -> dict[str, Any]:
        """A JSON object from the server."""
        with self._send("GET", url, DESCRIPTION_BYTES) as response:
            return described(url, response)

    @contextmanager
    def _send(self, verb: str, url: str, most: int, **arguments: Any) -> Iterator[HttpResponse]:
        """One HTTP request; raises `BoxUnavailable` if a retry may help."""
        with self.client.exchange(verb, url, most=most, **arguments) as response:
            if response.status_code in UNAVAILABLE:
                raise BoxUnavailable(
                    f"{url} answered {describe(response)}",
                    response.retry_after,
                    sent=response.status_code >= 500,  # below, the server declined the request
                )
            yield response

    def fingerprint(self) -> str:
        return masked(f"{self.url} version {self.version} output {self.output_name}")

    def __repr__(self) -> str:
        return f"OpenInferenceBox({self.url!r})"


def values_per_image(output: TensorMetadata) -> int:
    """How many values of an output belong to one image, as far as the model declares it."""
    extents = output.shape[1:]
    declared = all(isinstance(extent, int) and extent > 0 for extent in extents)
    return math.prod(extents) if extents and declared else UNDECLARED_CLASSES


def described(url: str, response: HttpResponse) -> dict[str, Any]:
    """The JSON object of a description."""
    if response.status_code in (401, 403):
        raise BoxError(
            f"{url} answered {describe(response)}; put the key into an environment variable "
            "and name it (api_key_env='VARIABLE')."
        )
    if response.status_code != 200:
        raise BoxError(
            f"{url} answered {describe(response)}; check the name of the model, "
            "and that it is ready."
        )
    try:
        answer = response.json()
    except ValueError as error:
        raise BoxError(f"{url} did not answer in JSON; {QUESTION}") from error
    if not isinstance(answer, dict):
        raise BoxError(f"{url} did not answer with a JSON object; {QUESTION}")
    return answer


def key_header(variable: str | None, header: str) -> dict[str, str]:
    """The HTTP header with the API key in this environment variable; the key is never shown."""
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BoxError(f"the environment variable {variable} is not set; put the API key there.")
    if not (key.isascii() and key.isprintable()):
        raise BoxError(
            f"the environment variable {variable} contains characters "
            "that an HTTP header cannot carry; check the API key."
        )
    keep_secret(key)  # a server may echo it
    return {header: f"Bearer {key}" if header.lower() == "authorization" else key}


def describe(response: Any) -> str:
    """The status and the first words of the body.

    Servers give the reason under `error` or `detail`, or in plain text.
    """
    try:
        body = parse_json(response.content)
    except ValueError:
        body = response.text
    if isinstance(body, dict):
        body = body.get("error") or body.get("detail") or body
    return f"{response.status_code}: {quoted(body)}"
