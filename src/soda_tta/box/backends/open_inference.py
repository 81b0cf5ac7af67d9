"""A box over HTTP: any server of the Open Inference Protocol (KServe V2).

Triton, KServe and MLServer speak it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from soda_tta.box.addresses import check_address
from soda_tta.box.backends.credentials import key_header
from soda_tta.box.backends.http import HttpClient, HttpResponse
from soda_tta.box.backends.http_errors import UNAVAILABLE, describe
from soda_tta.box.backends.served import (
    CHECK_KEY,
    CHECK_NAME,
    DESCRIPTION_BYTES,
    QUESTION,
    ServedBox,
)
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.protocols.open_inference import (
    BINARY_EXTENSION,
    ModelMetadata,
    ProtocolError,
    RequestedOutput,
    Tensor,
    decode_metadata,
    decode_response,
    encode_request,
)
from soda_tta.types import Array


class OpenInferenceBox(ServedBox):
    """Query `http(s)://host:port/v2/models/NAME[/versions/V]`, one request per call.

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
    connect_to : str, optional
        The IP address of the server, if the name of the host has several.
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
        connect_to: str | None = None,
        **facts: Any,
    ) -> None:
        self.url = self.normal_address(url)
        self.timeout = timeout
        key = key_header(api_key_env, api_key_header)
        self.client = HttpClient(timeout, key, certificate_authority, connect_to)
        image = self.read_metadata(self._model_metadata(), output, batch, facts)
        self.binary = self._offers_binary() if binary is None else binary
        if image.datatype == "FP16" and not self.binary:
            raise BoxError(
                f"{self.url} takes FP16, which JSON cannot carry, and offers no binary tensors."
            )

    @classmethod
    def takes(cls, model: Any) -> bool:
        return isinstance(model, str) and model.startswith(("http://", "https://"))

    @classmethod
    def normal_address(cls, url: str) -> str:
        if "/v2/models/" not in url:
            raise BoxError(f"{url} names no model; pass http(s)://host:port/v2/models/NAME.")
        check_address(url)
        return url.rstrip("/")

    def _model_metadata(self) -> ModelMetadata:
        try:
            return decode_metadata(self._get(self.url))
        except ProtocolError as error:
            raise BoxError(f"{self.url} does not describe a model; {QUESTION}") from error

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
        most = self.largest_response(len(images))
        url = f"{self.url}/infer"
        with self._send("POST", url, most, content=body, headers=headers) as response:
            if response.status_code != 200:
                raise BoxError(f"{self.url} answered {describe(response)}")
            try:
                decoded = decode_response(response.content, response.headers, [self.output_name])
            except ProtocolError as error:
                raise BoxError(f"{self.url}: {error}") from error
            return self.scores(decoded, id)

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


def described(url: str, response: HttpResponse) -> dict[str, Any]:
    """The JSON object of a description."""
    if response.status_code in (401, 403):
        raise BoxError(f"{url} answered {describe(response)}; {CHECK_KEY}")
    if response.status_code != 200:
        raise BoxError(f"{url} answered {describe(response)}; {CHECK_NAME}")
    try:
        answer = response.json()
    except ValueError as error:
        raise BoxError(f"{url} did not answer in JSON; {QUESTION}") from error
    if not isinstance(answer, dict):
        raise BoxError(f"{url} did not answer with a JSON object; {QUESTION}")
    return answer
