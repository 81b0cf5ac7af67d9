"""A box over HTTP: any server that speaks the Open Inference Protocol (KServe V2): Triton, MLServer, KServe."""

from __future__ import annotations

import json
import os
import ssl
from pathlib import Path
from typing import Any

import numpy as np

from soda_tta.box.box import Box
from soda_tta.box.facts import input_from_shape, said_by_shape
from soda_tta.errors import BoxError, BoxUnavailable
from soda_tta.types import Array

DATATYPES = {"FP32": "float32", "FP16": "float16", "UINT8": "uint8"}
BUSY = {
    408,
    425,
    429,
    502,
    503,
    504,
}  # worth asking again; a 500 is how servers say that the request itself is wrong


class OpenInferenceBox(Box):
    """Ask `http(s)://host:port/v2/models/NAME[/versions/V]`: one request a call, JSON or binary tensors.

    Names, shapes and types come from the model's metadata. `binary=None` uses binary tensors where the server
    advertises them, else JSON. The API key is read from the environment variable `api_key_env`, never given on a
    command line.
    """

    def __init__(
        self,
        url: str,
        *,
        logits: bool = False,
        output: str | None = None,
        batch: int = 64,
        timeout: float = 30.0,
        binary: bool | None = None,
        api_key_env: str | None = None,
        api_key_header: str = "Authorization",
        certificate_authority: str | Path | None = None,
        **stated: Any,
    ) -> None:
        if "@" in url.split("/")[2]:
            raise BoxError(
                "the address holds a user or password, which would end up in files; use --api-key-env."
            )
        self.url, self.logits, self.timeout = url.rstrip("/"), logits, timeout
        self.client = open_client(
            timeout, key_header(api_key_env, api_key_header), certificate_authority
        )
        metadata = self._get(self.url)
        try:
            self.version = str((metadata.get("versions") or ["?"])[-1])
            images = [
                (str(i["name"]), str(i["datatype"]), list(i["shape"]))
                for i in metadata.get("inputs") or []
            ]
            names = [str(o["name"]) for o in metadata.get("outputs") or []]
        except (KeyError, TypeError) as error:
            raise BoxError(
                f"{self.url} describes no model; does it speak the Open Inference Protocol?"
            ) from error
        if len(images) != 1:
            raise BoxError(
                f"{self.url} declares {len(images)} inputs; an image classifier takes one."
            )
        ((self.input_name, self.datatype, shape),) = images
        if self.datatype not in DATATYPES:
            raise BoxError(
                f"{self.url} takes {self.datatype}; this package sends {', '.join(DATATYPES)}."
            )
        stated = {name: value for name, value in stated.items() if value is not None}
        self.input = input_from_shape(shape, DATATYPES[self.datatype], **stated)
        self.says = said_by_shape(shape, DATATYPES[self.datatype])
        self.fixed_batch = isinstance(shape[0], int) and shape[0] > 0
        self.batch = shape[0] if self.fixed_batch else batch
        self.output_name = output or self._only(names)
        self.binary = self._advertises_binary() if binary is None else binary
        if self.datatype == "FP16" and not self.binary:
            raise BoxError(
                f"{self.url} takes FP16, which JSON cannot carry, and offers no binary tensors."
            )

    def _only(self, names: list[str]) -> str:
        if len(names) != 1:
            raise BoxError(
                f"{self.url} has the outputs {', '.join(names) or '(none)'}; name one (--output NAME)."
            )
        return names[0]

    def _advertises_binary(self) -> bool:
        try:
            server = self._get(self.url.rpartition("/models/")[0])
        except BoxUnavailable:
            raise
        except BoxError:  # a gateway may show the model and not the server
            return False
        return "binary_tensor_data" in (server.get("extensions") or [])

    def answer(self, images: Array) -> Array:
        tensor = self.input.prepare(images)
        if self.binary:
            body, headers = binary_request(self.input_name, self.datatype, tensor, self.output_name)
        else:
            body, headers = json_request(self.input_name, self.datatype, tensor, self.output_name)
        response = self._send("POST", f"{self.url}/infer", content=body, headers=headers)
        if response.status_code != 200:
            raise BoxError(f"{self.url} answered {describe(response)}")
        return read_response(response.content, response.headers, self.output_name)

    def _get(self, url: str) -> dict[str, Any]:
        response = self._send("GET", url)
        if response.status_code in (401, 403):
            raise BoxError(
                f"{url} answered {describe(response)}; put the key in a variable and name it (--api-key-env)."
            )
        if response.status_code != 200:
            raise BoxError(
                f"{url} answered {describe(response)}; is the model's name right and the model ready?"
            )
        try:
            metadata = response.json()
        except ValueError as error:
            raise BoxError(
                f"{url} did not answer in JSON; does it speak the Open Inference Protocol?"
            ) from error
        if not isinstance(metadata, dict):
            raise BoxError(
                f"{url} did not answer with a JSON object; does it speak the Open Inference Protocol?"
            )
        return metadata

    def _send(self, verb: str, url: str, **arguments: Any) -> Any:
        import httpx

        try:
            response = self.client.request(verb, url, **arguments)
        except httpx.TimeoutException as error:
            raise BoxUnavailable(
                f"{url} did not answer within {self.timeout:g} s (--timeout)."
            ) from error
        except httpx.RequestError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise BoxError(
                    f"{url} is not trusted: {error}; name the authority of its certificate (--ca FILE)."
                ) from error
            raise BoxUnavailable(
                f"{url} cannot be reached: {error or type(error).__name__}"
            ) from error
        except httpx.InvalidURL as error:
            raise BoxError(f"{url} is not an address: {error}") from error
        if response.status_code in BUSY:
            raise BoxUnavailable(
                f"{url} answered {describe(response)}", retry_after(response.headers)
            )
        return response

    def fingerprint(self) -> str:
        return f"{self.url} version {self.version} output {self.output_name}"

    def __repr__(self) -> str:
        return f"OpenInferenceBox({self.url!r})"


def open_client(
    timeout: float, headers: dict[str, str], certificate_authority: str | Path | None
) -> Any:
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
    if variable is None:
        return {}
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BoxError(f"the environment variable {variable} is not set; put the API key there.")
    if not (key.isascii() and key.isprintable()):
        raise BoxError(
            f"the environment variable {variable} holds signs that no HTTP header can carry."
        )
    return {header: f"Bearer {key}" if header.lower() == "authorization" else key}


def json_request(
    name: str, datatype: str, tensor: Array, output: str
) -> tuple[bytes, dict[str, str]]:
    request = {
        "inputs": [
            {
                "name": name,
                "shape": list(tensor.shape),
                "datatype": datatype,
                "data": tensor.ravel().tolist(),
            }
        ],
        "outputs": [{"name": output}],
    }
    return json.dumps(request).encode(), {"Content-Type": "application/json"}


def binary_request(
    name: str, datatype: str, tensor: Array, output: str
) -> tuple[bytes, dict[str, str]]:
    """The binary tensor extension: a JSON header, its length in an HTTP header, then the raw bytes."""
    raw = tensor.astype(tensor.dtype.newbyteorder("<"), copy=False).tobytes()
    described = {"name": name, "shape": list(tensor.shape), "datatype": datatype}
    request = {
        "inputs": [{**described, "parameters": {"binary_data_size": len(raw)}}],
        "outputs": [{"name": output, "parameters": {"binary_data": True}}],
    }
    header = json.dumps(request).encode()
    lengths = {
        "Inference-Header-Content-Length": str(len(header)),
        "Content-Type": "application/octet-stream",
    }
    return header + raw, lengths


def read_response(content: bytes, headers: Any, name: str) -> Array:
    """The named output of an answer in either form."""
    try:
        length = int(headers.get("Inference-Header-Content-Length", len(content)))
        outputs, offset = json.loads(content[:length])["outputs"], length
        for output in outputs:
            size = (output.get("parameters") or {}).get("binary_data_size")
            if output["name"] == name:
                dtype = {"FP16": "<f2", "FP32": "<f4", "FP64": "<f8"}[output["datatype"]]
                flat = (
                    output["data"]
                    if size is None
                    else np.frombuffer(content, dtype, size // int(dtype[2]), offset)
                )
                return np.asarray(flat, np.float32).reshape(output["shape"])
            offset += size or 0
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise BoxError(
            f"the server's answer is not Open Inference Protocol ({type(error).__name__}: {error})."
        ) from error
    raise BoxError(
        f"the server's answer holds no output {name!r} (it has {', '.join(o['name'] for o in outputs)})."
    )


def retry_after(headers: Any) -> float | None:
    """Seconds the server asks us to wait; the date form of the header is rare and treated as absent."""
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return None


def describe(response: Any) -> str:
    """Status and the first words of the body: servers put the reason under `error` or `detail`, or in plain text."""
    text = response.text
    try:
        body = response.json()
        text = (
            str(body.get("error") or body.get("detail") or body)
            if isinstance(body, dict)
            else str(body)
        )
    except ValueError:
        pass
    return f"{response.status_code}: {' '.join(text.split())[:300]}"
