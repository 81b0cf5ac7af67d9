"""Run the proxy: listen, obey signals, and finish open requests before the end."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from soda_tta.errors import SodaError
from soda_tta.serve.control import control_pages
from soda_tta.serve.dashboard import dashboard_pages
from soda_tta.serve.grpc_front import GrpcServer
from soda_tta.serve.grpc_upstream import GrpcUpstream
from soda_tta.serve.http_front import HttpFront
from soda_tta.serve.proxy import Proxy
from soda_tta.serve.refusals import error_response

KEEPALIVE_SECONDS = 75.0  # of an idle connection, and for the headers of its first request
LINGER_SECONDS = 2.0  # to read the rest of a request that was refused
SWITCH_SECONDS = 5e-4  # the learner gives way to a request after this time; Python waits 5 ms


@dataclass(frozen=True)
class Listening:
    """Where the proxy can be reached."""

    host: str = "127.0.0.1"
    port: int = 9000
    certificate: str | Path | None = None
    key: str | Path | None = None
    grpc_port: int | None = None

    def context(self) -> ssl.SSLContext | None:
        """TLS with these files; None without them."""
        if self.certificate is None and self.key is None:
            return None
        if self.certificate is None:
            raise SodaError("a TLS key needs its certificate (--tls-cert FILE).")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise SodaError(f"the TLS files cannot be used: {error}.") from error
        return context


class Connection(web.RequestHandler):
    """One connection of a client: errors in the shape of the protocol, and not too many of them."""

    __slots__ = ()

    def handle_error(
        self,
        request: Any,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The response to what is not HTTP, or to a bug of ours."""
        proxy = self._manager.proxy if isinstance(self._manager, Server) else None
        if proxy is not None:
            proxy.metrics.error("bad request" if status < 500 else "internal")
            proxy.metrics.request("http", "other", status)
            if status >= 500 and exc is not None:
                proxy.log.warning("a bug in soda-tta", error=exc)
        reason = "the request is not valid HTTP." if status < 500 else "an error of the proxy."
        response = error_response(status, reason)
        response.force_close()
        return response


class Server(web.Server):
    """Makes connections, up to a limit."""

    def __init__(self, proxy: Proxy, front: HttpFront) -> None:
        super().__init__(front, handler_cancellation=True)
        self.proxy = proxy

    def connection_made(self, handler: web.RequestHandler, transport: Any) -> None:
        super().connection_made(handler, transport)
        if len(self._connections) > self.proxy.limits.connections:
            self.proxy.metrics.error("too many connections")
            transport.close()

    def __call__(self) -> web.RequestHandler:
        return Connection(
            self,
            loop=self._loop,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
            access_log=None,  # type: ignore[arg-type]
            auto_decompress=False,
        )


class Running:
    """A proxy that listens.

    Parameters
    ----------
    proxy : Proxy
    listening : Listening
    grpc : GrpcUpstream, optional
        The model over gRPC, if the proxy listens to that too.
    pages : dict, optional
        Further pages by path, see `HttpFront`.
    """

    def __init__(
        self,
        proxy: Proxy,
        listening: Listening,
        grpc: GrpcUpstream | None = None,
        pages: dict[str, Any] | None = None,
    ) -> None:
        self.proxy = proxy
        self.listening = listening
        self.grpc = grpc
        self.grpc_server: GrpcServer | None = None
        self.pages = {**control_pages(proxy), **dashboard_pages(proxy), **(pages or {})}
        self.stop = asyncio.Event()

    async def start(self) -> None:
        """Listen."""
        front = HttpFront(self.proxy, self.listening.host, self.pages)
        self.runner = web.ServerRunner(
            Server(self.proxy, front), shutdown_timeout=self.proxy.limits.drain_seconds
        )
        await self.runner.setup()
        place = (self.listening.host, self.listening.port)
        site = web.TCPSite(self.runner, *place, ssl_context=self.listening.context())
        try:
            await site.start()
        except OSError as error:
            raise SodaError(
                f"{place[0]}:{place[1]} cannot be listened to: {error.strerror or error}; "
                "choose another --port."
            ) from error
        self.port = int(self.runner.addresses[0][1])
        if self.grpc is not None and self.listening.grpc_port is not None:
            files = (self.listening.certificate, self.listening.key)
            self.grpc_server = GrpcServer(
                self.proxy, self.grpc, self.listening.host, self.listening.grpc_port, *files
            )

    @property
    def url(self) -> str:
        """The address of the model, for clients."""
        return f"{self.dashboard}v2/models/{self.proxy.upstream.name}"

    @property
    def dashboard(self) -> str:
        """The address of the dashboard."""
        scheme = "http" if self.listening.certificate is None else "https"
        return f"{scheme}://{self.host}:{self.port}/"

    @property
    def grpc_url(self) -> str | None:
        """The same over gRPC."""
        if self.grpc_server is None:
            return None
        scheme = "grpc" if self.listening.certificate is None else "grpcs"
        return f"{scheme}://{self.host}:{self.grpc_server.port}/{self.proxy.upstream.name}"

    @property
    def host(self) -> str:
        """The host, as it stands in an address."""
        host = self.listening.host
        return f"[{host}]" if ":" in host else host

    def obey_signals(self) -> None:
        """SIGTERM and SIGINT end the proxy after its open requests; SIGHUP reads limits again."""
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, self.stop.set)
        with suppress(AttributeError):  # Windows
            loop.add_signal_handler(signal.SIGHUP, self.proxy.reload)

    async def drain(self) -> None:
        """Finish open requests, take no new ones, and save."""
        self.proxy.draining = True
        ending = [self.runner.cleanup()]
        if self.grpc_server is not None:
            seconds = self.proxy.limits.drain_seconds
            ending.append(asyncio.to_thread(self.grpc_server.close, seconds))
        await asyncio.gather(*ending)
        await self.proxy.upstream.close()
        await asyncio.to_thread(self.proxy.close)


async def serve(
    proxy: Proxy,
    listening: Listening,
    *,
    ready: Callable[[Running], None],
    grpc: GrpcUpstream | None = None,
    pages: dict[str, Any] | None = None,
) -> None:
    """Serve until a signal ends it.

    Parameters
    ----------
    proxy : Proxy
    listening : Listening
    ready : callable
        Called when requests are accepted.
    grpc : GrpcUpstream, optional
        The model over gRPC.
    pages : dict, optional
        Further pages by path, see `HttpFront`.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    if "torch" in sys.modules:  # its threads would fight with those of other requests
        sys.modules["torch"].set_num_threads(1)
    running = Running(proxy, listening, grpc, pages)
    await running.start()
    running.obey_signals()
    ready(running)
    await running.stop.wait()
    proxy.log.info("stopping")
    await running.drain()


def run(main: Any) -> None:
    """Run a coroutine, in the fastest event loop that is installed."""
    try:
        import uvloop
    except ImportError:
        loop = asyncio.new_event_loop()
    else:
        loop = uvloop.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main)
    finally:
        asyncio.set_event_loop(None)
        loop.close()
