"""gRPC with limits: one deadline for a whole call, bounded responses, connections to trust."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from soda_tta._version import __version__
from soda_tta.box.addresses import GrpcAddress
from soda_tta.box.backends.credentials import root_certificates
from soda_tta.box.backends.grpc_errors import RequestTooLarge, box_error
from soda_tta.errors import BoxError

SERVICE = "GRPCInferenceService"
METHODS = ("ModelMetadata", "ModelInfer")
HEADER = re.compile(r"[a-z0-9_.-]+")  # what gRPC allows in the name of a header
LARGEST_MESSAGE = 2**31 - 1  # bytes, a limit of Protocol Buffers


class GrpcClient:
    """Calls methods of one server. Calls from several threads share a connection.

    Parameters
    ----------
    address : GrpcAddress
    timeout : float
        Seconds for a whole call: connecting, sending, and receiving the last byte.
    headers : dict
        Sent with every call, as metadata; their names are sent in lower case.
    certificate_authority : str or Path, optional
        PEM file of a certificate authority to trust. Default: those of the system.
    most : int
        The largest response to accept, in bytes; see `expect`.
    connect_to : str, optional
        The IP address to connect to, whatever the name of the host resolves to.
    """

    def __init__(
        self,
        address: GrpcAddress,
        timeout: float,
        headers: Mapping[str, str],
        certificate_authority: str | Path | None = None,
        *,
        most: int,
        connect_to: str | None = None,
    ) -> None:
        self.library, self.messages = libraries()
        self.address = address
        self.timeout = timeout
        self.connect_to = connect_to
        self.metadata = [(metadata_name(name), value) for name, value in headers.items()]
        roots = root_certificates(certificate_authority) if address.secure else None
        self.credentials = self.library.ssl_channel_credentials(roots) if address.secure else None
        self.channel: Any = None
        self.expect(most)

    def expect(self, most: int) -> None:
        """Accept responses of up to so many bytes from now on."""
        self.close()
        self.most = most
        options = [
            ("grpc.primary_user_agent", f"soda-tta/{__version__}"),
            ("grpc.max_receive_message_length", most),
            ("grpc.max_send_message_length", -1),  # the server has its own limit, and names it
            ("grpc.enable_retries", 0),  # `Retrying` retries, and every attempt is counted
            # After a lost connection, an attempt of `Retrying` is to be one of the connection too.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 500),
            # No compression: a small response must not become a large one.
            ("grpc.compression_enabled_algorithms_bitset", 1),
        ]
        target = f"dns:///{self.address.place}"
        if self.connect_to is not None:
            host, _, port = self.address.place.rpartition(":")
            target = literal_target(self.connect_to, port)
            options += [
                ("grpc.default_authority", self.address.place),
                ("grpc.ssl_target_name_override", host),
                ("grpc.enable_http_proxy", 0),  # a proxy would resolve the name itself
            ]
        if self.credentials is None:
            self.channel = self.library.insecure_channel(target, options)
        else:
            self.channel = self.library.secure_channel(target, self.credentials, options)
        self.methods = {name: self._method(name) for name in METHODS}

    def _method(self, name: str) -> Any:
        """A method of the server that takes a request as bytes."""
        service = self.messages.DESCRIPTOR.services_by_name[SERVICE].full_name
        return self.channel.unary_unary(
            f"/{service}/{name}",
            response_deserializer=getattr(self.messages, f"{name}Response").FromString,
        )

    def call(self, method: str, request: bytes) -> Any:
        """The response to one request; raises `BoxUnavailable` if a retry may help."""
        size = len(request)
        if size > LARGEST_MESSAGE:
            raise RequestTooLarge(f"{self.address}: a message has at most 2 GB.", LARGEST_MESSAGE)
        try:
            return self.methods[method](request, timeout=self.timeout, metadata=self.metadata)
        except self.library.RpcError as failure:
            error = box_error(
                str(self.address), failure, timeout=self.timeout, most=self.most, size=size
            )
        raise error  # without the library's, which may quote a key that the server echoes

    def close(self) -> None:
        """Close the connection."""
        if self.channel is not None:
            self.channel.close()


def literal_target(address: str, port: str) -> str:
    """An IP address as gRPC takes it.

    >>> literal_target("10.0.0.7", "8001"), literal_target("::1", "8001")
    ('ipv4:10.0.0.7:8001', 'ipv6:[::1]:8001')
    """
    return f"ipv6:[{address}]:{port}" if ":" in address else f"ipv4:{address}:{port}"


def libraries() -> tuple[Any, Any]:
    """The gRPC library, and the messages of the protocol."""
    # It prints what we raise. It reads this when it is imported.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import grpc
        from tritonclient.grpc import service_pb2
    except (ImportError, RuntimeError) as error:  # the stubs turn the one into the other
        raise BoxError(
            f"models over gRPC need tritonclient: pip install 'soda-tta[grpc]' ({error})."
        ) from error
    return grpc, service_pb2


def metadata_name(header: str) -> str:
    """The name of a header as gRPC takes it."""
    name = header.lower()
    if not HEADER.fullmatch(name) or name.startswith("grpc-") or name.endswith("-bin"):
        raise BoxError(
            f"{header!r} is not a valid name of a header over gRPC; use letters, digits, '_', '.' "
            "and '-', without 'grpc-' at its beginning or '-bin' at its end (api_key_header=)."
        )
    return name
