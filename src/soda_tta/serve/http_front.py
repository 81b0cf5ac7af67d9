"""The HTTP side of the proxy: what a client asks for, who may, and what goes on to the model."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiohttp import web

from soda_tta.protocols.tensors import ProtocolError
from soda_tta.serve.adapting import UNTOUCHED, Adapted, count_of
from soda_tta.serve.compression import HEADER as COMPRESSED
from soda_tta.serve.compression import decompressed
from soda_tta.serve.connection import Reply
from soda_tta.serve.keys import is_loopback
from soda_tta.serve.messages import JSON_HEADER, ImageTensor, find_tensor
from soda_tta.serve.metrics import CONTENT_TYPE
from soda_tta.serve.places import Full
from soda_tta.serve.proxy import Proxy
from soda_tta.serve.refusals import BUSY, Refused, error_response, plain_path, too_large
from soda_tta.serve.rewriting import rewritten_http
from soda_tta.serve.upstream import Unreachable

INLINE_BYTES = 2**16  # a larger request is read in a thread
READS = ("GET", "HEAD", "OPTIONS")
ASKS = re.compile(r"/v2/models/[^/]+(/versions/[^/]+)?/(infer|generate|generate_stream|explain)")
INFER = re.compile(r"/v2/models/(?P<name>[^/]+)(/versions/(?P<version>[^/]+))?/infer")
Page = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class HttpFront:
    """Handles every request over HTTP.

    Parameters
    ----------
    proxy : Proxy
        What both fronts share.
    host : str
        The address that is listened to.
    pages : mapping, optional
        Further pages by path. Those below /control/ are for admins.
    """

    def __init__(self, proxy: Proxy, host: str, pages: Mapping[str, Page] | None = None) -> None:
        self.proxy = proxy
        self.is_local = is_loopback(host)
        self.pages = {"/metrics": self.metrics, **(pages or {})}

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """The response to one request."""
        start = time.perf_counter()
        kind = "other"
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            path = plain_path(request)
            kind = "infer" if self.is_adapted(request.method, path) else "other"
            response = await self.route(request, path, headers, kind)
        except Refused as refusal:
            self.proxy.metrics.error(refusal.kind)
            response = error_response(refusal.status, str(refusal))
            if refusal.close:
                response.force_close()
        response.headers["server"] = "soda-tta"  # without the versions of libraries
        self.proxy.metrics.request("http", kind, response.status)
        if kind == "infer":
            seconds = time.perf_counter() - start
            self.proxy.metrics.request_seconds.observe(seconds)
            self.proxy.log_request(
                "http", request.method, request.path, response.status, seconds, headers
            )
        return response

    async def route(
        self, request: web.BaseRequest, path: str, headers: dict[str, str], kind: str
    ) -> web.StreamResponse:
        """The proxy's own pages, or the model."""
        if path == "/v2/health/live":
            return web.Response()
        if path == "/v2/health/ready" and self.proxy.draining:
            raise Refused(503, "the proxy is about to stop.", kind="draining")
        if path in self.pages:
            self.check_page(request, path, headers)
            return await self.pages[path](request)
        if path != "/v2" and not path.startswith("/v2/"):
            raise Refused(404, "there is no such page; models are below /v2.", kind="not found")
        self.check_client(request, path, headers)
        held = await self.read(request, headers)
        try:
            body = b"".join(held)
            async with self.proxy.places.place():
                if kind == "infer":
                    return await self.infer(request, headers, body)
                reply = await self.forward(request, headers, body)
            return self.as_response(reply)
        except Full:
            raise Refused(503, BUSY, kind="overloaded") from None
        finally:
            self.proxy.places.release(sum(map(len, held)))

    def is_adapted(self, verb: str, path: str) -> bool:
        """Whether this is an inference by the model that is adapted."""
        asked = INFER.fullmatch(path) if verb == "POST" else None
        return asked is not None and self.proxy.is_adapted(asked["name"], asked["version"] or "")

    def check_client(self, request: web.BaseRequest, path: str, headers: Mapping[str, str]) -> None:
        """Refuse those who may not ask the model, or may not control it."""
        if path.startswith("/v2/health/"):
            return  # for the probes of orchestrators, which have no key
        if not self.proxy.keys.is_client(headers):
            raise Refused(401, "a valid API key is missing.", kind="unauthorised")
        if request.method not in READS and not ASKS.fullmatch(path):
            self.check_admin(request, headers)  # such as loading and unloading models

    def check_page(self, request: web.BaseRequest, path: str, headers: Mapping[str, str]) -> None:
        """Refuse those who may not see a page of the proxy."""
        if path == "/":
            return  # the page has no data; it asks for them below /control/
        if path.startswith("/control/"):
            self.check_admin(request, headers)
        elif self.proxy.keys.admin is not None and not self.proxy.keys.is_admin(headers):
            raise Refused(401, "a valid admin key is missing.", kind="unauthorised")

    def check_admin(self, request: web.BaseRequest, headers: Mapping[str, str]) -> None:
        """Refuse those who may not control the proxy.

        Without an admin key, only programs on this machine may; not a web page in its browser.
        """
        if self.proxy.keys.admin is not None:
            if not self.proxy.keys.is_admin(headers):
                raise Refused(401, "a valid admin key is missing.", kind="unauthorised")
            return
        host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
        if not self.is_local or not is_loopback(host.strip("[]")):
            raise Refused(403, "this needs an admin key; start with one.", kind="forbidden")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != headers.get("host"):
            raise Refused(403, "a page of another site may not do this.", kind="forbidden")

    async def read(self, request: web.BaseRequest, headers: Mapping[str, str]) -> list[bytes]:
        """The pieces of a body, which are counted until they are released."""
        limits = self.proxy.limits
        length = request.content_length
        if length is not None and length > limits.body_bytes:
            raise too_large(limits.body_bytes)
        if headers.get("expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        pieces: list[bytes] = []
        try:
            if request.content.is_eof():  # it is here already
                await self.receive(request, pieces)
            else:
                await asyncio.wait_for(self.receive(request, pieces), limits.body_seconds)
        except BaseException as error:
            self.proxy.places.release(sum(map(len, pieces)))
            if isinstance(error, asyncio.TimeoutError):
                raise Refused(
                    408, "the request took too long to arrive.", kind="slow body", close=True
                ) from None
            if isinstance(error, web.RequestPayloadError):
                raise Refused(
                    400, "the body of the request is damaged.", kind="bad request", close=True
                ) from None
            raise
        return pieces

    async def receive(self, request: web.BaseRequest, pieces: list[bytes]) -> None:
        """Read a body into `pieces`, within the limits."""
        limits = self.proxy.limits
        size = 0
        while piece := await request.content.readany():
            size += len(piece)
            if size > limits.body_bytes:
                raise too_large(limits.body_bytes)
            try:
                self.proxy.places.hold(len(piece))
            except Full:
                raise Refused(503, BUSY, kind="overloaded", close=True) from None
            pieces.append(piece)

    async def infer(
        self, request: web.BaseRequest, headers: Mapping[str, str], body: bytes
    ) -> web.Response:
        """One inference: adapt the images, ask the model once, and pass its response on."""
        # of a binary tensor that stays as it is, only a few bytes of JSON are read
        is_read = JSON_HEADER not in headers or not self.proxy.adapting.changes_nothing
        large = len(body) > INLINE_BYTES and (is_read or COMPRESSED in headers)
        found, adapted, changed = await self.proxy.off_loop(large, self.prepare, body, headers)
        if changed is not None:
            body = changed
            headers = {name: value for name, value in headers.items() if name != COMPRESSED}
        if found is None:
            return self.as_response(await self.forward(request, headers, body))
        sent = [body, *(found.replaced(view) for view in adapted.views)]
        self.proxy.metrics.upstream_queries.inc(len(sent) * count_of(found.array))
        reply, *views = await self.forward_all(request, headers, sent)
        if adapted.images is not None and reply.status == 200:
            self.proxy.learn_from(
                adapted,
                lambda answers, count: answers.from_http(reply.body, reply.headers, count),
                key=self.proxy.key_of(headers, found.parameters),
                client=request.remote,
            )
        if reply.status != 200 or adapted.answering.is_plain:
            return self.as_response(reply)
        large = len(reply.body) > INLINE_BYTES
        replies = [reply, *views]
        answered = self.proxy.answered
        return self.as_response(
            await self.proxy.off_loop(large, answered, rewritten_http, replies, adapted)
        )

    async def forward_all(
        self, request: web.BaseRequest, headers: Mapping[str, str], bodies: Sequence[bytes]
    ) -> list[Reply]:
        """The responses to the images and to further views of them; of these those that arrived."""
        if len(bodies) == 1:
            return [await self.forward(request, headers, bodies[0])]
        plain = {name: value for name, value in headers.items() if name != COMPRESSED}
        first, *views = await asyncio.gather(
            self.forward(request, headers, bodies[0]),
            *(self.forward(request, plain, body) for body in bodies[1:]),
            return_exceptions=True,
        )
        if isinstance(first, BaseException):
            raise first
        return [first, *(view for view in views if isinstance(view, Reply) and view.status == 200)]

    def prepare(
        self, body: bytes, headers: Mapping[str, str]
    ) -> tuple[ImageTensor | None, Adapted, bytes | None]:
        """The image tensor of a request, its images, and another body if these were changed."""
        proxy = self.proxy
        pixels = proxy.adapting.pixels
        is_json = JSON_HEADER not in headers
        most = proxy.limits.json_bytes if is_json else proxy.limits.body_bytes
        opened = decompressed(body, headers, most)
        if pixels is None or opened is None or len(opened) > most:
            return None, UNTOUCHED, None
        try:
            found = find_tensor(opened, headers, pixels.name, pixels.datatype)
        except ProtocolError as error:
            raise Refused(400, str(error), kind="bad request") from error
        if found is None:
            return None, UNTOUCHED, None
        adapted = proxy.adapting(found.array, proxy.key_of(headers, found.parameters))
        changed = None if adapted.tensor is None else found.replaced(adapted.tensor)
        return found, adapted, changed

    async def forward(
        self, request: web.BaseRequest, headers: Mapping[str, str], body: bytes
    ) -> Reply:
        """The model's own response."""
        proxy = self.proxy
        start = time.perf_counter()
        proxy.metrics.upstream_requests.inc()
        try:
            reply = await proxy.upstream.send(
                request.method, request.raw_path, proxy.passing.request(headers), body
            )
        except Unreachable as error:
            proxy.log.warning("the model did not respond", error=error)
            kind = "upstream timeout" if error.status == 504 else "upstream unreachable"
            raise Refused(error.status, "the model did not respond.", kind=kind) from error
        proxy.metrics.upstream_seconds.observe(time.perf_counter() - start)
        if reply.status >= 400:
            proxy.metrics.error(f"upstream {reply.status}")
        return reply

    def as_response(self, reply: Reply) -> web.Response:
        """A response of the model, for the client."""
        headers = self.proxy.passing.response(reply.headers)
        return web.Response(body=reply.body, status=reply.status, headers=headers)

    async def metrics(self, request: web.BaseRequest) -> web.StreamResponse:
        """The page /metrics."""
        return web.Response(body=self.proxy.metrics.text(), headers={"content-type": CONTENT_TYPE})
