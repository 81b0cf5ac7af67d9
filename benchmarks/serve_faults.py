"""Does the proxy lose, spoil or mix up answers, and does its memory grow?

    python benchmarks/serve_faults.py soak     # 64 clients for 5 minutes
    python benchmarks/serve_faults.py faults   # faults of the model at 10 % of calls, 1 minute
    python benchmarks/serve_faults.py kills    # 20 times SIGKILL and restart under load
    python benchmarks/serve_faults.py memory   # 200,000 requests while the learner runs
    python benchmarks/serve_faults.py table

The model is the CIFAR-10 ResNet-20 in ONNX Runtime, in a process of its own. Every client has an
image of its own whose answer is known. For `kills` the proxy first learns an adaptor for gaussian
noise; every proxy after a SIGKILL must give the answers of that adaptor. Writes
results/serve_faults.json and two tables of docs/how-to/serve.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from pages import markdown, replace_tables
from serve_parts import RESULTS, ROOT, Bench, Client, keep, photographs, show
from soda_tta import Stream

PAGE = ROOT / "docs" / "how-to" / "serve.md"
FILE = "serve_faults.json"
CLIENTS = 64
FAULTS = 0.1  # share of the calls
TOLERANCE = 1e-5  # of a probability
SECONDS = {"soak": 300.0, "faults": 60.0}
KILLS = 20
REQUESTS = 200_000
DIFFERENT = 8000  # images of the requests that memory is measured with
NOISE = "gaussian_noise"
TO_LEARN = 3000  # images, at most, until an adaptor is promoted
PARTS = ("soak", "faults", "kills", "memory")


class Soak:
    """Many clients, each with an image of its own whose answer is known."""

    def __init__(self, clients: list[Client], expected: Any) -> None:
        self.clients = clients
        self.expected = expected
        self.counts = {"answers": 0, "wrong": 0, "errors of the model": 0, "no connection": 0}
        self.ended = False

    async def run(self, seconds: float) -> dict[str, int]:
        asyncio.get_running_loop().call_later(seconds, self.end)
        await asyncio.gather(*map(self.work, range(len(self.clients))))
        return self.counts

    def end(self) -> None:
        self.ended = True

    async def work(self, index: int) -> None:
        client = self.clients[index]
        while not self.ended:
            try:
                row = await asyncio.wait_for(client.row(), 30)
            except (OSError, asyncio.IncompleteReadError):
                client.close()
                self.counts["no connection"] += 1
                await asyncio.sleep(0.05)
                continue
            if row is None:
                self.counts["errors of the model"] += 1
            elif np.abs(row - self.expected[index]).max() > TOLERANCE:
                self.counts["wrong"] += 1
            self.counts["answers"] += 1


async def kills(soak: Soak, start: Any, count: int) -> dict[str, Any]:
    """SIGKILL and restart under load; seconds from the start of the process to the first answer."""
    waits = []
    load = asyncio.ensure_future(soak.run(3600))
    for _ in range(count):
        process = await asyncio.to_thread(start)
        ready, answers = time.perf_counter(), soak.counts["answers"]
        while soak.counts["answers"] == answers:
            await asyncio.sleep(0.005)
        waits.append(time.perf_counter() - ready)
        await asyncio.sleep(1)
        process.send_signal(signal.SIGKILL)
        process.wait()
    soak.end()
    return {**await load, "rounds": count, "slowest first answer s": max(waits)}


async def faulty(url: str) -> tuple[Any, Any, str]:
    """A server between the proxy and the model that spoils a tenth of the inferences."""
    from aiohttp import ClientSession, web

    root = url.partition("/v2")[0]
    session = ClientSession(auto_decompress=False)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        kept = ("content-type", "inference-header-content-length")
        headers = {name: value for name, value in request.headers.items() if name.lower() in kept}
        if request.path.endswith("/infer") and random.random() < FAULTS:
            return await spoiled(request)
        async with session.request(
            request.method, root + request.raw_path, data=body or None, headers=headers
        ) as answer:
            passed = {name: value for name, value in answer.headers.items() if name.lower() in kept}
            return web.Response(body=await answer.read(), status=answer.status, headers=passed)

    async def spoiled(request: web.BaseRequest) -> web.StreamResponse:
        kind = random.choice(["slow", "500", "429", "malformed", "dropped"])
        if kind == "slow":
            await asyncio.sleep(3)
        if kind == "dropped":
            assert request.transport is not None
            request.transport.close()
        statuses = {"429": 429, "malformed": 503}  # spoiled bodies are never a 200 here
        body = b"\xff{" if kind == "malformed" else b'{"error": "injected"}'
        return web.Response(body=body, status=statuses.get(kind, 500), headers={"Retry-After": "1"})

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    return runner, session, f"http://127.0.0.1:{port}/v2/models/{url.rpartition('/')[2]}"


async def answers(bench: Bench, url: str, images: Any) -> list[Any]:
    """The rows of each image, one after the other."""
    return [await bench.client(url, image).row() for image in images]


def soaked(bench: Bench, seconds: float) -> dict[str, Any]:
    """Many clients at once; the learner runs."""
    images = photographs(CLIENTS)
    expected = asyncio.run(answers(bench, bench.upstream, images))
    with bench.proxy() as (url, _):
        soak = Soak([bench.client(url, image) for image in images], expected)
        return asyncio.run(soak.run(seconds))


def faulted(bench: Bench, seconds: float) -> dict[str, Any]:
    """The same, and the model fails."""
    images = photographs(CLIENTS)
    expected = asyncio.run(answers(bench, bench.upstream, images))

    async def work() -> dict[str, int]:
        runner, session, url = await faulty(bench.upstream)
        with contextlib.ExitStack() as stack:
            context = bench.proxy("--timeout", "2", upstream=url)
            place, _ = await asyncio.to_thread(stack.enter_context, context)
            soak = Soak([bench.client(place, image) for image in images], expected)
            counts = await soak.run(seconds)
        await session.close()
        await runner.cleanup()
        return counts

    return asyncio.run(work())


def learned(bench: Bench, folder: Path) -> str:
    """A state in which an adaptor for noise was promoted; the adaptor in words."""
    promoted: list[Any] = []

    def listen(event: Any) -> None:
        promoted.extend([event] if event.facts()["event"] == "promoted" else [])

    stream = Stream(bench.box(), method="soda-e", directory=folder, listener=listen)
    for images in np.array_split(photographs(TO_LEARN, NOISE), TO_LEARN // 20):
        stream(images)
        if promoted:
            stream.save()
            return str(promoted[0].adaptor)
    sys.exit("no adaptor was promoted")


def killed(bench: Bench, rounds: int) -> dict[str, Any]:
    """SIGKILL again and again; every proxy continues with what was learned."""
    state = bench.folder / "state"
    adaptor = learned(bench, state)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["--upstream", bench.upstream, "--port", str(port), "--state", str(state)]
    log = bench.log.open("ab")
    command = [sys.executable, "-m", "soda_tta", "serve", "--json", *words, *bench.facts]

    def start() -> Any:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=os.environ)
        assert process.stdout is not None
        if not process.stdout.readline():
            sys.exit(bench.log.read_text())
        return process

    images = photographs(CLIENTS, NOISE)
    url = f"http://127.0.0.1:{port}/v2/models/{bench.upstream.rpartition('/')[2]}"
    unadapted = asyncio.run(answers(bench, bench.upstream, images))
    process = start()
    expected = asyncio.run(answers(bench, url, images))
    process.send_signal(signal.SIGKILL)
    process.wait()
    changed = int((np.abs(np.array(expected) - unadapted).max(axis=1) > 0.01).sum())
    soak = Soak([bench.client(url, image) for image in images], expected)
    counts = asyncio.run(kills(soak, start, rounds))
    return {**counts, "adaptor": adaptor, "images that it changes": changed, "images": CLIENTS}


def memory(bench: Bench, count: int) -> dict[str, Any]:
    """Megabytes of the proxy along the way; other images all the time."""
    images = photographs(DIFFERENT, NOISE)
    with bench.proxy() as (url, process):
        resident = psutil.Process(process.pid).memory_info
        megabytes = {}
        clients = [bench.client(url, image) for image in images[:16]]

        async def work(client: Client, numbers: range) -> None:
            for number in numbers:
                client.take(bench.tensor(images[number % len(images)][None]))
                await client.send()

        async def all_of(numbers: range) -> None:
            step = len(clients)
            await asyncio.gather(
                *(work(client, numbers[place::step]) for place, client in enumerate(clients))
            )

        async def run() -> None:
            tenth = count // 10
            for piece in range(10):
                await all_of(range(piece * tenth, (piece + 1) * tenth))
                megabytes[f"MB after {(piece + 1) * tenth:,}"] = resident().rss / 2**20

        asyncio.run(run())
    return {"requests": count, **megabytes}


def measure(part: str, bench: Bench, scale: float) -> dict[str, Any]:
    """One part, or a smaller form of it."""
    if part == "kills":
        return killed(bench, max(1, round(scale * KILLS)))
    if part == "memory":
        return memory(bench, round(scale * REQUESTS))
    seconds = scale * SECONDS[part]
    work = soaked if part == "soak" else faulted
    return {**work(bench, seconds), "seconds": seconds}


def write_table() -> None:
    """Put what is stored into the page: every second measurement of the memory."""
    stored = json.loads((RESULTS / FILE).read_text())
    titles = {
        "soak": "{CLIENTS} clients for {seconds:g} s",
        "faults": "faults of the model at 10 % of calls, {seconds:g} s",
        "kills": "{rounds} times SIGKILL and restart under load",
    }
    rows = [["test", "answers", "wrong", "errors of the model, passed on"]]
    for part, title in titles.items():
        found = stored[part]
        counts = [f"{found[name]:,}" for name in ("answers", "wrong", "errors of the model")]
        rows.append([title.format(CLIENTS=CLIENTS, **found), *counts])
    sizes = [name for name in stored["memory"] if name.startswith("MB")]
    sizes = sizes[:1] + sizes[1::2]
    memory = [["requests", *(name.removeprefix("MB after ") for name in sizes)]]
    memory.append(["MB of the proxy", *(f"{stored['memory'][name]:.0f}" for name in sizes)])
    tables = {"faults": markdown(rows), "memory": markdown(memory)}
    PAGE.write_text(replace_tables(PAGE.read_text(), tables))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "table"])
    parser.add_argument("--scale", type=float, default=1, help="of the tests; not stored below 1")
    options = parser.parse_args()
    random.seed(0)
    for part in options.parts:
        if part == "table":
            write_table()
            continue
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder))
            with bench.model():
                result = measure(part, bench, options.scale)
        show(part, result)
        if options.scale >= 1:
            keep(FILE, part, result)


if __name__ == "__main__":
    main()
