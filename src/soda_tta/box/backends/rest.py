"""A box over HTTP: a REST API that takes image files and returns labels with scores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from soda_tta.box.backends.http import HttpClient, HttpResponse
from soda_tta.box.backends.http_errors import UNAVAILABLE, describe
from soda_tta.box.backends.remote import RemoteBackend
from soda_tta.box.input import Input
from soda_tta.box.price import Price, as_price
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.foreign_text import quoted
from soda_tta.masking import masked
from soda_tta.protocols.aws_signature import AwsKey
from soda_tta.protocols.environment import fill_in, secret_of
from soda_tta.protocols.image_files import decode_image, encode_image, encode_request
from soda_tta.protocols.rest_answer import AnswerError, read_answer
from soda_tta.protocols.rest_file import read_description
from soda_tta.types import Array

ANSWER_BYTES = 2**24  # of one answer, at most: labels and scores need far less
OF_FILES = ("layout", "dtype", "pixel_range", "mean", "std")  # an image file settles these
REMEDIES = {
    400: "the API did not understand the request: check [image] (send, field, path, template)",
    404: "check url, and that the model is deployed",
    405: "check method",
    413: 'the image is too large for the API: set size, format = "jpeg" or a smaller per_request '
    "under [image]",
    415: "the API does not take this kind of file: check format and send under [image], and a "
    "Content-Type under [headers]",
    422: "the API did not understand the request: check [image] (send, field, path, template)",
    # LitServe and BentoML fail so if an image does not stand where they look for it
    500: "if every image gets this, check [image] (send, field, path, template), then the log of "
    "the server",
    429: "send fewer requests at once (workers=1), or try later",
}


class RestBox(RemoteBackend):
    """Query the API that a TOML file describes, one request per call.

    Parameters
    ----------
    path : str or Path
        The description, a TOML file: see `docs/how-to/rest.md`.
    batch : int, optional
        Images per request, at most as many as the description allows, which is the default.
    timeout : float, default 30
        Seconds for a whole request, from connecting to the last byte of the response.
    certificate_authority : str or Path, optional
        PEM file of a certificate authority to trust. Default: those of the system.
    **facts
        Facts about the input (see `Input`); `size` has precedence over the description.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        batch: int | None = None,
        timeout: float = 30.0,
        certificate_authority: str | Path | None = None,
        **facts: Any,
    ) -> None:
        self.path = Path(path)
        description = read_description(self.path)
        self.description = description
        self.input = self._input(facts)
        self.declared = {name: getattr(self.input, name) for name in OF_FILES}
        self.logits = description.answer.kind == "logits"
        self.partial = description.partial
        self.declared |= {"logits": self.logits, "partial": self.partial}
        self.classes = len(description.classes)
        self.class_names = description.classes
        self.batch = self._request_size(batch)
        self.price = self._price()
        self.aws = self._aws_key()
        headers = self._filled_in("headers", description.headers)
        query = self._filled_in("query", description.query)
        self.url = description.url
        self.full_url = f"{self.url}?{urlencode(query)}" if query else self.url
        names = {name.lower() for name in headers}
        self.accept = {} if "accept" in names else {"Accept": "application/json"}
        self.states_content_type = "content-type" in names
        self.headers = headers
        self.client = HttpClient(timeout, {}, certificate_authority)

    @classmethod
    def takes(cls, model: Any) -> bool:
        return isinstance(model, str) and model.lower().endswith(".toml")

    def state_output(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Refuse facts about the output that contradict the description."""
        for name, key in (("logits", "kind"), ("partial", "top")):
            if facts.get(name) not in (None, getattr(self, name)):
                raise BoxError(
                    f"{self.path} describes the answer; set {key} under [answer] there instead of "
                    f"{name}={facts[name]}."
                )
        return facts

    def _input(self, facts: dict[str, Any]) -> Input:
        """What is sent: bytes, in the order in which image files hold them."""
        of_files: dict[str, Any] = {"dtype": "uint8", "layout": "NHWC"}
        stated = {name: value for name, value in facts.items() if value is not None}
        usual = Input(**of_files)
        wanted = Input(**{**of_files, "size": self.description.image.size, **stated})
        other = [name for name in OF_FILES if getattr(wanted, name) != getattr(usual, name)]
        if other:
            raise BoxError(
                f"{self.path}: the API gets image files and normalises them itself; leave out "
                f"{', '.join(other)}."
            )
        return wanted

    def _request_size(self, batch: int | None) -> int:
        most = self.description.image.per_request
        if batch is not None and batch > most:
            raise BoxError(
                f"{self.path} allows {most} per request, not {batch}; if the API takes more, "
                "set per_request under [image] there."
            )
        return batch or most

    def _price(self) -> Price | None:
        try:
            return as_price(self.description.price)
        except BoxError as error:
            raise BoxError(f"{self.path}: price is not valid: {error}") from error

    def _filled_in(self, table: str, texts: dict[str, str]) -> dict[str, str]:
        """Headers or query parameters with the values of their variables."""
        return {name: fill_in(text, f"{self.path}, {table}.{name}") for name, text in texts.items()}

    def _aws_key(self) -> AwsKey | None:
        if self.description.aws is None:
            return None
        place = f"{self.path}, [aws]"
        token = "AWS_SESSION_TOKEN"
        return AwsKey(
            *self.description.aws,
            secret_of("AWS_ACCESS_KEY_ID", place),
            secret_of("AWS_SECRET_ACCESS_KEY", place),
            secret_of(token, place) if os.environ.get(token) else "",
        )

    def answer(self, images: Array) -> Array:
        transport = self.description.image
        files = [
            encode_image(pixels, transport.format, transport.quality)
            for pixels in self.input.prepare(images)
        ]
        body, content_type = encode_request(files, transport)
        headers = {**self.accept, **self.headers}
        if not self.states_content_type:
            headers["Content-Type"] = content_type
        if self.aws is not None:
            headers = self.aws.sign(self.description.method, self.full_url, headers, body)
        with self.client.exchange(
            self.description.method,
            self.full_url,
            most=ANSWER_BYTES,
            content=body,
            headers=headers,
        ) as response:
            self._check_status(response)
            document = self._document(response)
        try:
            return read_answer(document, self.description, len(images))
        except AnswerError as error:
            raise BoxError(f"{self.url} ({self.path}): {error}") from error

    def _check_status(self, response: HttpResponse) -> None:
        """Raise unless the API answered 200; `BoxUnavailable` if a retry may help."""
        status = response.status_code
        if status == 200:
            return
        text = f"{self.url} answered {describe(response)}"
        remedy = self._remedy(response)
        if remedy:
            text = f"{text.rstrip('.')}; {remedy} ({self.path})."
        if status in UNAVAILABLE:
            # below 500, the server declined the request
            raise BoxUnavailable(text, response.retry_after, sent=status >= 500)
        raise BoxError(text)

    def _remedy(self, response: HttpResponse) -> str:
        status = response.status_code
        if status in (401, 403):
            variables = self.description.variables
            if self.aws is not None:
                variables = [*variables, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
            if variables:
                return f"check the key in the environment: {', '.join(variables)}"
            return 'add the key under [headers], as in Authorization = "Bearer ${VARIABLE}"'
        if 300 <= status < 400 and response.headers.get("location"):
            return f"set url to the new address, {quoted(response.headers['location'])}"
        return REMEDIES.get(status, "")

    def _document(self, response: HttpResponse) -> Any:
        """The JSON of an answer."""
        try:
            return response.json()
        except ValueError as error:
            kind = "with a web page" if is_html(response) else "with something"
            raise BoxError(
                f"{self.url} answered {kind} that is not JSON: {quoted(response.text, 100)}; does "
                f"url in {self.path} name the API, and does no login page stand before it?"
            ) from error

    def as_received(self, images: Array) -> Array:
        """The images after rounding and, with JPEG, compression."""
        transport = self.description.image
        if transport.format != "jpeg" or not len(images):
            return super().as_received(images)
        pixels = np.rint(images * 255).astype(np.uint8).transpose(0, 2, 3, 1)
        files = [encode_image(each, "jpeg", transport.quality) for each in pixels]
        decoded = np.stack([decode_image(file) for file in files])
        return np.ascontiguousarray(decoded.transpose(0, 3, 1, 2), np.float32) / np.float32(255)

    def fingerprint(self) -> str:
        return masked(f"{self.url} as described by {self.description.digest()}")

    def __repr__(self) -> str:
        return f"RestBox({str(self.path)!r})"


def is_html(response: HttpResponse) -> bool:
    """Whether a response is a web page."""
    declared = "html" in response.headers.get("content-type", "").lower()
    return declared or response.text.lstrip()[:15].lower().startswith(("<!doctype", "<html"))
