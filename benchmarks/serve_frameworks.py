"""Which server library should `soda-tta serve` use? A bare forwarding proxy in each, measured.

    pip install aiohttp httpx uvicorn starlette httptools uvloop granian
    python benchmarks/serve_frameworks.py

Each proxy passes a body of 12,400 bytes (one image of 32 x 32 as FP32) to the same small upstream
and returns its response. Printed: median and 99th percentile of one connection, and requests per
second of 16 connections, next to the upstream called directly.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

REQUESTS = 3000
BODY = b"x" * 12_400
ANSWER = b"y" * 200
UPSTREAM_PORT, PROXY_PORT = 18801, 18802
UPSTREAM = f"http://127.0.0.1:{UPSTREAM_PORT}/"
STREAM_LIMIT = 2**16


async def answer(request):
    from aiohttp import web

    await request.read()
    return web.Response(body=ANSWER)


async def aiohttp_forward(request):
    from aiohttp import web

    body = await request.read()
    session = request.app["session"]
    async with session.post(UPSTREAM, data=body) as response:
        return web.Response(body=await response.read(), status=response.status)


def serve_aiohttp(port, handler):
    import aiohttp
    import uvloop
    from aiohttp import web

    async def session(app):
        async with aiohttp.ClientSession() as app["session"]:
            yield

    application = web.Application()
    application.cleanup_ctx.append(session)
    application.router.add_post("/", handler)
    uvloop.install()
    web.run_app(application, host="127.0.0.1", port=port, print=None, access_log=None)


def starlette_application(library):
    import aiohttp
    import httpx
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    client = None

    async def forward(request):
        nonlocal client
        body = await request.body()
        if library == "httpx":
            client = client or httpx.AsyncClient()
            response = await client.post(UPSTREAM, content=body)
            return Response(response.content, response.status_code)
        client = client or aiohttp.ClientSession()
        async with client.post(UPSTREAM, data=body) as response:
            return Response(await response.read(), response.status)

    return Starlette(routes=[Route("/", forward, methods=["POST"])])


def serve(name):
    if name == "upstream":
        serve_aiohttp(UPSTREAM_PORT, answer)
    elif name == "aiohttp":
        serve_aiohttp(PROXY_PORT, aiohttp_forward)
    elif name.startswith("uvicorn"):
        import uvicorn

        application = starlette_application(name.rpartition("+")[2])
        uvicorn.run(application, port=PROXY_PORT, log_level="error", access_log=False)
    else:
        from granian import Granian

        Granian(
            "serve_frameworks:application", port=PROXY_PORT, interface="asgi", log_enabled=False
        ).serve()


async def one_client(port, requests, seconds):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=STREAM_LIMIT)
    head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
    for _ in range(requests):
        start = time.perf_counter()
        writer.write(head + BODY)
        headers = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in headers.split(b"\r\n")[0], headers
        await reader.readexactly(len(ANSWER))
        seconds.append(time.perf_counter() - start)
    writer.close()


async def measure(port):
    await one_client(port, 300, [])
    alone = []
    await one_client(port, REQUESTS, alone)
    alone.sort()
    start = time.perf_counter()
    await asyncio.gather(*(one_client(port, REQUESTS // 8, []) for _ in range(16)))
    rate = 2 * REQUESTS / (time.perf_counter() - start)
    return 1e3 * alone[len(alone) // 2], 1e3 * alone[int(0.99 * len(alone))], rate


def row(port):
    middle, slow, rate = asyncio.run(measure(port))
    return f"{middle:8.2f}{slow:8.2f}{rate:8.0f}"


def started(name, port):
    process = subprocess.Popen([sys.executable, __file__, name])
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process
        except ConnectionRefusedError:
            time.sleep(0.05)


def main():
    upstream = started("upstream", UPSTREAM_PORT)
    try:
        print(f"{'':24}{'p50 ms':>8}{'p99 ms':>8}{'req/s':>8}")
        print(f"{'direct':24}{row(UPSTREAM_PORT)}")
        for name in ("aiohttp", "uvicorn+aiohttp", "uvicorn+httpx", "granian+aiohttp"):
            process = started(name, PROXY_PORT)
            try:
                print(f"{name:24}{row(PROXY_PORT)}")
            finally:
                process.terminate()
                process.wait()
    finally:
        upstream.terminate()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(sys.argv[1])
    else:
        os.chdir(Path(__file__).parent)
        main()
else:
    application = starlette_application("aiohttp")
