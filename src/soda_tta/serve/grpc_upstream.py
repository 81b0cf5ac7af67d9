"""The model behind the proxy, over gRPC: a server, or the file that is served."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from soda_tta._version import __version__
from soda_tta.box.addresses import GrpcAddress
from soda_tta.box.backends.credentials import root_certificates
from soda_tta.box.backends.grpc_client import SERVICE, libraries
from soda_tta.errors import BoxError
from soda_tta.protocols.open_inference import BINARY_EXTENSION
from soda_tta.protocols.tensors import ProtocolError
from soda_tta.serve.grpc_messages import metadata_to_grpc, request_from_grpc, response_to_grpc
from soda_tta.serve.local import VERSION, LocalModel

Metadata = Sequence[tuple[str, str]]


class Failed(Exception):
    """The model answered with an error; `code` is a gRPC status code."""

    def __init__(self, code: Any, details: str) -> None:
        super().__init__(details)
        self.code = code


class GrpcUpstream(Protocol):
    """Whatever answers calls of the protocol; requests and responses are bytes."""

    def call(self, method: str, request: bytes, metadata: Metadata, seconds: float | None) -> bytes:
        """The response to a call; raises `Failed`."""

    def stream(self, method: str, requests: Iterator[bytes], metadata: Metadata) -> Iterator[bytes]:
        """The responses to a stream of requests; raises `Failed`."""

    def close(self) -> None:
        """Close the connection."""


class RemoteGrpc:
    """A server, at an address that is fixed when the proxy starts.

    Parameters
    ----------
    url : str
        `grpc(s)://host:port/NAME`.
    timeout : float
        Seconds for a whole call, unless the client allows less.
    most : int
        Bytes of the largest response.
    certificate_authority : str or Path, optional
        PEM file of a certificate authority to trust. Default: those of the system.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 30.0,
        most: int = 2**28,
        certificate_authority: str | Path | None = None,
    ) -> None:
        self.library, messages = libraries()
        self.service = messages.DESCRIPTOR.services_by_name[SERVICE].full_name
        self.timeout = timeout
        address = GrpcAddress.read(url)
        options = [
            ("grpc.primary_user_agent", f"soda-tta/{__version__}"),
            ("grpc.max_receive_message_length", most),
            ("grpc.max_send_message_length", -1),  # the server has its own limit, and names it
            ("grpc.enable_retries", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        target = f"dns:///{address.place}"
        if address.secure:
            roots = self.library.ssl_channel_credentials(root_certificates(certificate_authority))
            self.channel = self.library.secure_channel(target, roots, options)
        else:
            self.channel = self.library.insecure_channel(target, options)
        self.calls: dict[str, Any] = {}

    def call(self, method: str, request: bytes, metadata: Metadata, seconds: float | None) -> bytes:
        if method not in self.calls:
            self.calls[method] = self.channel.unary_unary(f"/{self.service}/{method}")
        allowed = self.timeout if seconds is None else min(self.timeout, seconds)
        try:
            return bytes(self.calls[method](request, timeout=allowed, metadata=metadata))
        except self.library.RpcError as error:
            raise Failed(error.code(), error.details() or "") from error

    def stream(self, method: str, requests: Iterator[bytes], metadata: Metadata) -> Iterator[bytes]:
        call = self.channel.stream_stream(f"/{self.service}/{method}")
        try:
            yield from call(requests, metadata=metadata)
        except self.library.RpcError as error:
            raise Failed(error.code(), error.details() or "") from error

    def close(self) -> None:
        self.channel.close()


class LocalGrpc:
    """The file that is served."""

    def __init__(self, model: LocalModel) -> None:
        self.library, self.messages = libraries()
        self.model = model

    def call(self, method: str, request: bytes, metadata: Metadata, seconds: float | None) -> bytes:
        codes = self.library.StatusCode
        answer = getattr(self, f"_{method}", None)
        if answer is None:
            raise Failed(codes.UNIMPLEMENTED, "this server has no such method.")
        try:
            message = getattr(self.messages, f"{method}Request").FromString(request)
        except Exception as error:  # the library has its own class
            reason = "the request is not a message of the protocol."
            raise Failed(codes.INVALID_ARGUMENT, reason) from error
        name = getattr(message, "model_name", "") or getattr(message, "name", "")
        version = getattr(message, "model_version", "") or getattr(message, "version", "")
        if method.startswith("Model") and (name, version or VERSION) != (self.model.name, VERSION):
            raise Failed(codes.NOT_FOUND, f"the model is {self.model.name!r}, version {VERSION}.")
        try:
            return bytes(answer(message))
        except (ProtocolError, BoxError) as error:
            raise Failed(codes.INVALID_ARGUMENT, str(error)) from error

    def _ServerReady(self, request: Any) -> bytes:
        return bytes(self.messages.ServerReadyResponse(ready=True).SerializeToString())

    def _ModelReady(self, request: Any) -> bytes:
        return bytes(self.messages.ModelReadyResponse(ready=True).SerializeToString())

    def _ServerMetadata(self, request: Any) -> bytes:
        response = self.messages.ServerMetadataResponse(
            name="soda-tta", version=__version__, extensions=[BINARY_EXTENSION]
        )
        return bytes(response.SerializeToString())

    def _ModelMetadata(self, request: Any) -> bytes:
        return metadata_to_grpc(self.messages, self.model.metadata)

    def _ModelInfer(self, message: Any) -> bytes:
        request = request_from_grpc(message)
        outputs = self.model.infer(request)
        return response_to_grpc(
            self.messages, outputs, name=self.model.name, version=VERSION, id=request.id
        )

    def stream(self, method: str, requests: Iterator[bytes], metadata: Metadata) -> Iterator[bytes]:
        raise Failed(self.library.StatusCode.UNIMPLEMENTED, "this server has no streams.")
        yield b""

    def close(self) -> None:
        pass
