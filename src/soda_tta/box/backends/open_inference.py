"""A box over HTTP: any server of the Open Inference Protocol (KServe V2).

Triton, KServe and MLServer speak it.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box.addresses import check_address
from soda_tta.box.backends.backend import Backend
from soda_tta.box.box import Box
from soda_tta.box.input import declared_by_shape, input_from_shape
from soda_tta.box.top_classes import refuse_top_classes
from soda_tta.box.wrappers.batched import Batched
from soda_tta.box.wrappers.retrying import Retrying, retry
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
        Seconds to wait for a response.
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
        self.client = open_client(timeout, key, certificate_authority)
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
        return super().options() | {"workers"}

    @classmethod
    def load(cls, model: Any, options: dict[str, Any]) -> Box:
        """Concurrent requests, each of them retried; `workers` of them at once."""
        if "/v2/models/" not in model:
            raise BoxError(f"{model} names no model; pass http(s)://host:port/v2/models/NAME.")
        arguments = {name: value for name, value in options.items() if name != "workers"}
        box = retry(lambda: super(OpenInferenceBox, cls).load(model, arguments), attempts=3)
        return Batched(Retrying(box), workers=options.get("workers", 4))

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
        body, headers = encode_request([tensor], [wanted], binary=self.binary)
        response = self._send("POST", f"{self.url}/infer", content=body, headers=headers)
        if response.status_code != 200:
            raise BoxError(f"{self.url} answered {describe(response)}")
        try:
            decoded = decode_response(response.content, response.headers, [self.output_name])
        except ProtocolError as error:
            raise BoxError(f"{self.url}: {error}") from error
        scores = decoded.outputs[0]
        if scores.datatype not in SCORES:
            raise BoxError(
                f"{self.url} returned {scores.datatype} values in {scores.name!r}; "
                f"class scores are {', '.join(SCORES)}. Choose another output (output='NAME')."
            )
        return np.asarray(scores.array, np.float32)

    def _get(self, url: str) -> dict[str, Any]:
        """A JSON object from the server."""
        response = self._send("GET", url)
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
            answer = parse_json(response.content)
        except ValueError as error:
            raise BoxError(f"{url} did not answer in JSON; {QUESTION}") from error
        if not isinstance(answer, dict):
            raise BoxError(f"{url} did not answer with a JSON object; {QUESTION}")
        return answer

    def _send(self, verb: str, url: str, **arguments: Any) -> Any:
        """One HTTP request; raises `BoxUnavailable` if a retry may help."""
        import httpx

        try:
            response = self.client.request(verb, url, **arguments)
        except httpx.TimeoutException as error:
            raise BoxUnavailable(
                f"{url} did not respond within {self.timeout:g} s "
                f"(allow more time, for example timeout={4 * self.timeout:g})."
            ) from error
        except httpx.RequestError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise BoxError(
                    f"{url} is not trusted: {error}; name the authority that signed "
                    "its certificate (certificate_authority='FILE')."
                ) from error
            raise BoxUnavailable(
                f"{url} cannot be reached: {error or type(error).__name__}"
            ) from error
        except httpx.InvalidURL as error:
            raise BoxError(f"{url} is not a valid address: {error}") from error
        if response.status_code in UNAVAILABLE:
            raise BoxUnavailable(
                f"{url} answered {describe(response)}", retry_after(response.headers)
            )
        return response

    def fingerprint(self) -> str:
        return masked(f"{self.url} version {self.version} output {self.output_name}")

    def __repr__(self) -> str:
        return f"OpenInferenceBox({self.url!r})"


def open_client(
    timeout: float, headers: dict[str, str], certificate_authority: str | Path | None
) -> Any:
    """An HTTP client that verifies certificates and does not follow redirects."""
    try:
        import httpx
    except ImportError as error:
        raise BoxError("models over HTTP need httpx: pip install 'soda-tta[remote]'.") from error
    try:
        context = ssl.create_default_context(cafile=certificate_authority)
    except OSError as error:
        raise BoxError(
            f"{certificate_authority} cannot be read as a certificate file: {error}"
        ) from error
    return httpx.Client(timeout=timeout, headers=headers, verify=context, follow_redirects=False)


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


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks us to wait; the date form of the header is rare and ignored."""
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return None


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
