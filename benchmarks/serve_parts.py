"""What the benchmarks of the proxy share: the model, its images, proxies, and fast clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from serving_speed import mean_colours, serving
from soda_tta import load_box, zoo
from soda_tta.box import Box
from soda_tta.data import Corrupted, load_dataset
from soda_tta.errors import SodaError
from soda_tta.protocols.open_inference import (
    RequestedOutput,
    Tensor,
    decode_metadata,
    decode_response,
    encode_request,
)

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
SMALL, LARGE = 32, 224  # pixels
MODEL = "cifar10_resnet20"


def model_file(folder: Path, size: int) -> tuple[Path, list[str]]:
    """The model, and what a client does to its pixels, as options."""
    if size == LARGE:
        return mean_colours(folder), []
    try:
        path, facts = zoo.onnx_path(MODEL), zoo.ENTRIES[MODEL].input
    except (SodaError, OSError):
        sys.exit("the real data are needed: see CONTRIBUTING.md, SODA_TTA_DATA")
    numbers = [",".join(map(str, values)) for values in (facts.mean, facts.std)]
    return Path(path), ["--mean", numbers[0], "--std", numbers[1]]


@contextlib.contextmanager
def served(*words: str, log: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`soda-tta serve` in a process of its own, and the address of its model."""
    command = [sys.executable, "-m", "soda_tta", "serve", "--json", *words]
    with log.open("ab") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            sys.exit(log.read_text())
        yield json.loads(line)["http"], process
    finally:
        process.terminate()
        process.wait()


class Client:
    """One connection that sends raw HTTP, so that the time of the client does not matter."""

    def __init__(self, url: str, tensor: Tensor, output: str) -> None:
        _, _, self.place, *path = url.split("/")
        self.path = "/".join(path)
        self.output = output
        self.streams: Any = None
        self.take(tensor)

    def take(self, tensor: Tensor) -> None:
        """Send this from now on."""
        body, headers = encode_request([tensor], [RequestedOutput(self.output, True)], binary=True)
        lines = [f"POST /{self.path}/infer HTTP/1.1", f"Host: {self.place}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}", "", ""]
        self.request = "\r\n".join(lines).encode() + body

    async def open(self) -> None:
        host, _, port = self.place.partition(":")
        self.streams = await asyncio.open_connection(host, int(port), limit=2**20)

    async def send(self) -> tuple[int, dict[str, str], bytes]:
        """One request and its response."""
        if self.streams is None:
            await self.open()
        reader, writer = self.streams
        writer.write(self.request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        return int(first.split()[1]), headers, body

    async def row(self) -> Any:
        """The answer to one image; None if there is none."""
        status, headers, body = await self.send()
        return decode_response(body, headers)[self.output][0] if status == 200 else None

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def rate(clients: list[Client], count: int) -> float:
    """Requests per second of all clients together."""

    async def work(client: Client) -> None:
        for _ in range(count // len(clients)):
            await client.send()

    start = time.perf_counter()
    await asyncio.gather(*map(work, clients))
    return count / (time.perf_counter() - start)


def prepared(facts: list[str], values: Any) -> Any:
    """Images in [0, 1] as a client of the model prepares them."""
    if not facts:
        return values
    mean, std = (np.array(text.split(","), np.float32) for text in (facts[1], facts[3]))
    return ((values - mean[:, None, None]) / std[:, None, None]).astype(np.float32)


def noise(count: int, size: int) -> Any:
    """Random pixels."""
    return np.random.default_rng(0).random((count, 3, size, size), dtype=np.float32)


def photographs(count: int, corruption: str | None = None) -> Any:
    """Images of CIFAR-10 in [0, 1], clean or corrupted at severity 5."""
    data = load_dataset("cifar10").subset(np.arange(count))
    source = data if corruption is None else Corrupted(data, corruption, 5, seed=0)
    return source[slice(0, count)]


def show(title: str, result: dict[str, Any]) -> None:
    print(f"\n{title}")
    for name, value in result.items():
        shown = f"{value:10.2f}" if isinstance(value, float) else f"{value!s:>10}"
        print(f"  {name:28}{shown}")


def keep(file: str, part: str, result: dict[str, Any]) -> None:
    """Add a result to those that are stored."""
    path = RESULTS / file
    stored = json.loads(path.read_text()) if path.exists() else {}
    stored[part] = result
    path.write_text(json.dumps(stored, indent=1) + "\n")


class Bench:
    """One model in a process of its own, its clients, and proxies in front of it.

    Parameters
    ----------
    folder : where files are written.
    size : pixels of the images.
    triton : Triton serves the model, in place of `soda-tta serve --model`.
    """

    def __init__(self, folder: Path, size: int = SMALL, *, triton: bool = False) -> None:
        self.folder = folder
        self.triton = triton
        self.file, self.facts = model_file(folder, size)
        self.log = folder / "log.txt"

    @contextlib.contextmanager
    def model(self) -> Iterator[None]:
        """Serve the model, and read what it declares."""
        with contextlib.ExitStack() as stack:
            if self.triton:
                server = serving("triton", "triton_server.py", self.file, self.folder)
                self.upstream = stack.enter_context(server).http
            else:
                words = ("--model", str(self.file), "--port", "0", "--freeze", *self.facts)
                self.upstream, _ = stack.enter_context(served(*words, log=self.log))
            with urllib.request.urlopen(self.upstream) as response:
                metadata = decode_metadata(json.load(response))
            self.name, self.output = metadata.inputs[0].name, metadata.outputs[0].name
            yield

    def tensor(self, images: Any) -> Tensor:
        return Tensor(self.name, prepared(self.facts, images))

    def client(self, url: str, image: Any) -> Client:
        """A client that sends one image, again and again."""
        return Client(url, self.tensor(image[None]), self.output)

    def proxy(self, *words: str, upstream: str | None = None) -> Any:
        where = ("--upstream", upstream or self.upstream, "--port", "0")
        return served(*where, *self.facts, *words, log=self.log)

    def box(self) -> Box:
        """The model as the library sees it."""
        numbers = [tuple(map(float, self.facts[place].split(","))) for place in (1, 3)]
        return load_box(self.upstream, mean=numbers[0], std=numbers[1])
