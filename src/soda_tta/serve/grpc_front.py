"""The gRPC side of the proxy: the same service as the model's, call by call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from soda_tta.box.backends.grpc_client import SERVICE, libraries
from soda_tta.errors import SodaError
from soda_tta.protocols.tensors import ProtocolError
from soda_tta.serve.adapting import UNTOUCHED, Adapted, count_of
from soda_tta.serve.grpc_messages import GrpcTensor, find_grpc_tensor
from soda_tta.serve.grpc_upstream import Failed, GrpcUpstream
from soda_tta.serve.keys import is_loopback
from soda_tta.serve.proxy import Proxy
from soda_tta.serve.rewriting import rewritten_grpc

THREADS = 64  # calls at once
FOR_ALL = ("ServerLive", "ServerReady", "ModelReady")  # orchestrators have no key
FOR_CLIENTS = (
    *("ServerMetadata", "ModelMetadata", "ModelInfer", "ModelStreamInfer"),
    *("ModelConfig", "ModelStatistics"),
)
# What gRPC sets itself.
NOT_METADATA = ("accept", "accept-encoding", "content-encoding", "content-type")


def grpc_service(proxy: Proxy, upstream: GrpcUpstream, host: str, pool: Executor) -> Any:
    """The handler of all methods of the service, for a gRPC server."""
    library, messages = libraries()
    service = messages.DESCRIPTOR.services_by_name[SERVICE]
    front = GrpcFront(proxy, upstream, is_loopback(host), pool)

    def handler(method: Any) -> Any:
        name = method.name
        if method.client_streaming:
            return library.stream_stream_rpc_method_handler(
                lambda requests, context: front.stream(name, requests, context)
            )
        return library.unary_unary_rpc_method_handler(
            lambda request, context: front.call(name, request, context)
        )

    handlers = {method.name: handler(method) for method in service.methods}
    return library.method_handlers_generic_handler(service.full_name, handlers)


class GrpcFront:
    """Handles every call.

    Parameters
    ----------
    proxy : Proxy
        What both fronts share.
    upstream : GrpcUpstream
    is_local : bool
        Only this machine can reach the proxy.
    pool : Executor
        Sends further views of images. Its threads wait for the model, so they adapt no images.
    """

    def __init__(
        self, proxy: Proxy, upstream: GrpcUpstream, is_local: bool, pool: Executor
    ) -> None:
        self.proxy = proxy
        self.upstream = upstream
        self.is_local = is_local
        self.pool = pool
        self.library, self.messages = libraries()
        self.codes = self.library.StatusCode

    def call(self, method: str, request: bytes, context: Any) -> bytes:
        """One call with one response."""
        start = time.perf_counter()
        kind = "infer" if method == "ModelInfer" else "other"
        headers = headers_of(context)
        status = self.codes.OK
        try:
            response = self.answer(method, request, headers, context)
        except Failed as failure:
            status = failure.code
            reason = str(failure)
        seconds = time.perf_counter() - start
        self.proxy.metrics.request("grpc", kind, status.value[0])
        if kind == "infer":
            self.proxy.metrics.request_seconds.observe(seconds)
            self.proxy.log_request("grpc", "", method, status.value[0], seconds, headers)
        if status != self.codes.OK:
            context.abort(status, reason)
        return response

    def answer(self, method: str, request: bytes, headers: dict[str, str], context: Any) -> bytes:
        """The response to one call; raises `Failed`."""
        self.check(method, headers)
        if method == "ServerLive":
            return bytes(self.messages.ServerLiveResponse(live=True).SerializeToString())
        if method == "ModelInfer":
            return self.infer(request, headers, context)
        return self.forward(method, request, headers, context)

    def stream(self, method: str, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """A stream of calls, which is not adapted."""
        headers = headers_of(context)
        try:
            self.check(method, headers)
            yield from self.upstream.stream(method, requests, self.metadata(headers))
        except Failed as failure:
            context.abort(failure.code, str(failure))

    def check(self, method: str, headers: dict[str, str]) -> None:
        """Refuse those who may not call this method."""
        keys = self.proxy.keys
        if method in FOR_ALL:
            return
        if not keys.is_client(headers):
            self.proxy.metrics.error("unauthorised")
            raise Failed(self.codes.UNAUTHENTICATED, "a valid API key is missing.")
        if method in FOR_CLIENTS or keys.is_admin(headers):
            return
        if keys.admin is not None or not self.is_local:
            self.proxy.metrics.error("forbidden")
            raise Failed(self.codes.PERMISSION_DENIED, "this needs the admin key.")

    def infer(self, request: bytes, headers: dict[str, str], context: Any) -> bytes:
        """One inference: adapt the images, ask the model once, and pass its response on."""
        tensor, adapted = self.prepare(request, headers)
        if tensor is None:
            return self.forward("ModelInfer", request, headers, context)
        queries = count_of(tensor.array) * adapted.answering.queries
        self.proxy.metrics.upstream_queries.inc(queries)
        if adapted.tensor is not None:
            request = tensor.replaced(adapted.tensor)
        views = [
            self.pool.submit(self.forward, "ModelInfer", tensor.replaced(view), headers, context)
            for view in adapted.views
        ]
        try:
            response = self.forward("ModelInfer", request, headers, context)
        except BaseException:
            for each in views:
                each.cancel()  # the client gets no answer: what was not sent yet is not billed
            raise
        if adapted.images is not None:
            self.proxy.learn_from(
                adapted,
                lambda answers, count: answers.from_grpc(response, count),
                key=self.proxy.key_of(headers, tensor.parameters),
                client=context.peer().rpartition(":")[0],
            )
        if adapted.answering.is_plain:
            return response
        responses = [response]
        for view in views:
            with suppress(Failed):  # then the answer is the mean over the others
                responses.append(view.result())
        return self.proxy.answered(rewritten_grpc, responses, adapted)

    def prepare(self, request: bytes, headers: dict[str, str]) -> tuple[GrpcTensor | None, Adapted]:
        """The image tensor of a request, if there is one, and what to send in its place."""
        proxy = self.proxy
        pixels = proxy.adapting.pixels
        try:
            message = self.decoded(request)
            ours = proxy.is_adapted(message.model_name, message.model_version)
            if pixels is None or not ours:
                return None, UNTOUCHED
            tensor = find_grpc_tensor(message, pixels.name, pixels.datatype)
        except ProtocolError as error:
            proxy.metrics.error("bad request")
            raise Failed(self.codes.INVALID_ARGUMENT, str(error)) from error
        if tensor is None:
            return None, UNTOUCHED
        return tensor, proxy.adapting(tensor.array, proxy.key_of(headers, tensor.parameters))

    def decoded(self, request: bytes) -> Any:
        """The message of an inference request."""
        try:
            return self.messages.ModelInferRequest.FromString(request)
        except Exception as error:  # the library has its own class
            raise ProtocolError("the request is not a message of the protocol.") from error

    def forward(self, method: str, request: bytes, headers: dict[str, str], context: Any) -> bytes:
        """The model's own response."""
        metrics = self.proxy.metrics
        metrics.upstream_requests.inc()
        start = time.perf_counter()
        try:
            response = self.upstream.call(
                method, request, self.metadata(headers), context.time_remaining()
            )
        except Failed as failure:
            metrics.error(f"upstream {failure.code.name}")
            if failure.code == self.codes.UNAVAILABLE:  # its text holds the address of the model
                self.proxy.log.warning("the model did not respond", error=failure)
                raise Failed(failure.code, "the model did not respond.") from failure
            raise
        metrics.upstream_seconds.observe(time.perf_counter() - start)
        return response

    def metadata(self, headers: dict[str, str]) -> list[tuple[str, str]]:
        """What of the client's metadata goes to the model."""
        passing = self.proxy.passing.request(headers)
        return [(name, value) for name, value in passing.items() if name not in NOT_METADATA]


def headers_of(context: Any) -> dict[str, str]:
    """The metadata of a call, except that in bytes."""
    return {
        name.lower(): value
        for name, value in context.invocation_metadata()
        if isinstance(value, str)
    }


class GrpcServer:
    """Listens to calls.

    Parameters
    ----------
    proxy : Proxy
    upstream : GrpcUpstream
    host, port : where to listen; port 0 is any.
    certificate, key : PEM files for TLS, optional.
    """

    def __init__(
        self,
        proxy: Proxy,
        upstream: GrpcUpstream,
        host: str,
        port: int,
        certificate: str | Path | None = None,
        key: str | Path | None = None,
    ) -> None:
        library, _ = libraries()
        limits = proxy.limits
        threads = min(THREADS, limits.concurrency)
        self.upstream = upstream
        self.views = ThreadPoolExecutor(threads, thread_name_prefix="grpc views")
        self.server = library.server(
            ThreadPoolExecutor(threads, thread_name_prefix="grpc"),
            handlers=[grpc_service(proxy, upstream, host, self.views)],
            options=[
                ("grpc.max_receive_message_length", limits.body_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),  # a port that is in use is an error
            ],
            maximum_concurrent_rpcs=limits.concurrency + limits.queue,
        )
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if certificate is None:
                self.port = self.server.add_insecure_port(place)
            else:
                private = Path(key or certificate).read_bytes()
                chain = Path(certificate).read_bytes()
                credentials = library.ssl_server_credentials([(private, chain)])
                self.port = self.server.add_secure_port(place, credentials)
        except RuntimeError as error:
            raise SodaError(
                f"{place} cannot be listened to; choose another --grpc-port."
            ) from error
        self.server.start()

    def close(self, seconds: float) -> None:
        """Finish open calls within this time."""
        self.server.stop(seconds).wait()
        self.views.shutdown(wait=False, cancel_futures=True)
        self.upstream.close()
