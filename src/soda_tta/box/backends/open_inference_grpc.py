"""A box over gRPC: any server of the Open Inference Protocol (KServe V2).

Triton, KServe and MLServer speak it, on a port of its own.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from soda_tta.box.addresses import GrpcAddress
from soda_tta.box.backends.credentials import key_header
from soda_tta.box.backends.grpc_client import GrpcClient
from soda_tta.box.backends.grpc_errors import MEGABYTE, RequestTooLarge
from soda_tta.box.backends.served import DESCRIPTION_BYTES, ServedBox
from soda_tta.errors import BoxError
from soda_tta.protocols.open_inference import ModelMetadata, ProtocolError, Tensor
from soda_tta.protocols.open_inference_grpc import (
    encode_grpc_request,
    metadata_from_grpc,
    response_from_grpc,
)
from soda_tta.types import Array

ENVELOPE = 2**12  # bytes of a request besides its images


class OpenInferenceGrpcBox(ServedBox):
    """Query `grpc(s)://host:port/NAME[/versions/V]`, one request per call.

    Parameters
    ----------
    url : str
        Address of the model; `grpcs` is gRPC over TLS.
    output : str, optional
        Name of the output with the class scores. Default: the only one.
    batch : int, default 64
        Images per request. A model with a fixed batch overrides it.
    timeout : float, default 30
        Seconds for a whole request, from connecting to the last byte of the response.
    api_key_env : str, optional
        Environment variable that holds the API key. The key itself is never an argument.
    api_key_header : str, default "Authorization"
        Header (metadata) for the key. In "Authorization" it is sent as a bearer token.
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
        api_key_env: str | None = None,
        api_key_header: str = "Authorization",
        certificate_authority: str | Path | None = None,
        connect_to: str | None = None,
        **facts: Any,
    ) -> None:
        self.address = GrpcAddress.read(url)
        self.url = str(self.address)
        key = key_header(api_key_env, api_key_header)
        self.client = GrpcClient(
            self.address,
            timeout,
            key,
            certificate_authority,
            most=DESCRIPTION_BYTES,
            connect_to=connect_to,
        )
        self.read_metadata(self._model_metadata(), output, batch, facts)
        self.client.expect(self.largest_response(self.batch))

    @classmethod
    def takes(cls, model: Any) -> bool:
        return isinstance(model, str) and model.lower().startswith(("grpc://", "grpcs://"))

    @classmethod
    def normal_address(cls, url: str) -> str:
        return str(GrpcAddress.read(url))

    def _model_metadata(self) -> ModelMetadata:
        from tritonclient.grpc import service_pb2 as messages

        request = messages.ModelMetadataRequest(
            name=self.address.name, version=self.address.version
        )
        return metadata_from_grpc(self.client.call("ModelMetadata", request.SerializeToString()))

    def answer(self, images: Array) -> Array:
        id = uuid.uuid4().hex
        tensor = Tensor(self.input_name, self.input.prepare(images))
        request = encode_grpc_request(
            tensor,
            model=self.address.name,
            version=self.address.version,
            output=self.output_name,
            id=id,
        )
        try:
            message = self.client.call("ModelInfer", request)
            return self.scores(response_from_grpc(message, self.output_name), id)
        except ProtocolError as error:
            raise BoxError(f"{self.url}: {error}") from error
        except RequestTooLarge as error:
            raise BoxError(f"{error} {fewer_images(tensor.array, error.limit)}") from error


def fewer_images(images: Array, limit: int | None) -> str:
    """The remedy for a request that was too large: how many images fit."""
    each = images.nbytes // len(images)
    most = len(images) // 2 if limit is None else (limit - ENVELOPE) // each
    if most < 1:
        return f"One image has {each / MEGABYTE:.3g} MB: raise the limit of the server."
    return (
        f"A request of {len(images)} images has {images.nbytes / MEGABYTE:.3g} MB: send fewer "
        f"images per request (batch={most}), or raise the limit of the server."
    )
