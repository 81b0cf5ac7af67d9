"""Pages for those who control the proxy, below /control/: status, pause, roll back, reset ..."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from soda_tta.adaptors import Adaptor, Identity
from soda_tta.engine.live import LiveStream
from soda_tta.errors import SodaError
from soda_tta.serve.http_front import Page
from soda_tta.serve.live import FixedAdaptor, StrictStream
from soda_tta.serve.proxy import Proxy
from soda_tta.serve.refusals import error_response

CONFLICT, NOT_FOUND, WRONG_VERB = 409, 404, 405


def control_pages(proxy: Proxy) -> dict[str, Page]:
    """The pages by path."""

    async def status(request: web.BaseRequest) -> web.StreamResponse:
        return as_json(proxy.status())

    def switch(paused: bool) -> Callable[[web.BaseRequest], dict[str, Any]]:
        def act(request: web.BaseRequest) -> dict[str, Any]:
            proxy.adapting.paused = paused
            note(proxy, "paused" if paused else "resumed", request)
            return {"paused": paused}

        return act

    def roll_back(request: web.BaseRequest) -> dict[str, Any]:
        keys = roll_back_live(proxy.adapting.live, request.query.get("key"), request.remote)
        note(proxy, "roll back requested", request, sources=keys)
        return {"sources": keys}

    def reset(request: web.BaseRequest) -> dict[str, Any]:
        proxy.reset()
        note(proxy, "reset", request)
        return {"reset": True}

    async def adaptor(request: web.BaseRequest) -> web.StreamResponse:
        found = adaptor_of(proxy.adapting.live, request.query.get("key"))
        if found is None or isinstance(found, Identity):
            return error_response(NOT_FOUND, "no image is adapted now, so there is no adaptor.")
        body = await asyncio.to_thread(file_of, found)
        headers = {
            "content-type": "application/octet-stream",
            "content-disposition": 'attachment; filename="adaptor.safetensors"',
        }
        return web.Response(body=body, headers=headers)

    return {
        "/control/status": status,
        "/control/pause": changing(switch(True)),
        "/control/resume": changing(switch(False)),
        "/control/roll-back": changing(roll_back),
        "/control/reset": changing(reset),
        "/control/adaptor": adaptor,
    }


def changing(act: Callable[[web.BaseRequest], dict[str, Any]]) -> Page:
    """A page that changes something; in a thread, because the learner may be waited for."""

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":
            return error_response(WRONG_VERB, "this changes something: use POST.")
        try:
            return as_json(await asyncio.to_thread(act, request))
        except SodaError as error:
            return error_response(CONFLICT, str(error))

    return page


def note(proxy: Proxy, event: str, request: web.BaseRequest, **facts: Any) -> None:
    """Write what was asked for, and by whom, to the audit log and the log."""
    proxy.audit.write(event, by=request.remote, **facts)
    proxy.log.info(event, by=request.remote, **facts)


def roll_back_live(live: Any, key: str | None, who: str | None) -> list[str | None]:
    """Leave the images of a source, or of all, as they are; return the sources."""
    if not isinstance(live, LiveStream):
        raise SodaError("this adaptor does not learn behind the traffic; pause it in place.")
    keys: list[str | None] = list(live.learner.sources) if key is None else [key]
    for each in keys:
        live.roll_back(each, f"by request of {who}")
    return keys


def adaptor_of(live: Any, key: str | None) -> Adaptor | None:
    """The adaptor that answers; of a source, or of the first one that has one."""
    if isinstance(live, LiveStream):
        keys = list(live.learner.sources) if key is None else [key]
        return next((shelf for each in keys if (shelf := live.shelf(each)) is not None), None)
    if isinstance(live, StrictStream):
        return live.stream.adaptor if live.stream.search.count else None
    return live.adaptor if isinstance(live, FixedAdaptor) else None


def file_of(adaptor: Adaptor) -> bytes:
    """The content of the adaptor's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adaptor.safetensors"
        adaptor.save(path)
        return path.read_bytes()


def as_json(message: dict[str, Any]) -> web.Response:
    """A JSON object as a page."""
    body = json.dumps(message, default=str).encode()
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    return web.Response(body=body, headers=headers)
