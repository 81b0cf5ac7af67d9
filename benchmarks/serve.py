"""What does the proxy cost? Always next to the model alone, in one run.

    python benchmarks/serve.py identity            # no adaptor, nothing is learned
    python benchmarks/serve.py learning            # the learner runs behind the traffic
    python benchmarks/serve.py adaptors large      # adaptors of the bank; 224 x 224 pixels
    python benchmarks/serve.py identity --triton   # Triton in place of our own server
    python benchmarks/serve.py table

The model is the CIFAR-10 ResNet-20 in ONNX Runtime, in a process of its own. Direct and proxied
requests take turns, so that a busy machine slows both. Writes results/serve.json or, for Triton,
results/serve_triton.json, and the tables of docs/how-to/serve.md. `serve_faults.py` asks whether
answers are lost.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from pages import markdown, replace_tables
from serve_faults import NOISE, learned
from serve_parts import (
    LARGE,
    RESULTS,
    ROOT,
    SMALL,
    Bench,
    Client,
    keep,
    noise,
    photographs,
    rate,
    show,
)
from soda_tta import find_conditions
from soda_tta.adaptors import Adaptor, Bank, Identity, RoutedAdaptor
from soda_tta.adaptors.quick import for_requests

PAGE = ROOT / "docs" / "how-to" / "serve.md"
CONNECTIONS = 16  # enough to saturate the model
WARM_UP = 200  # requests
ROUNDS = 7  # of the throughput
ALONE = 50  # calls of an adaptor by itself
CONDITIONS = 100  # images of each of two conditions
FIRST = 600  # images before the latency with a learner: from then on there is a router
PACE = 50  # of these images per second, directly and through the proxy each
# What runs on images with little contrast and on noisy ones learn; the second is among the slowest.
ADAPTORS = {
    "contrast": {"standard contrast": 0.4, "gamma": 0.2},
    "noise": {"adaptive shrinkage 2.5": 0.5, "cosine shrinkage 0.15": 0.3},
}
PARTS = ("identity", "learning", "adaptors", "large")


async def latency(direct: Client, proxied: Client, count: int) -> dict[str, float]:
    """Milliseconds of one connection; the two take turns."""
    times: dict[str, list[float]] = {"direct": [], "proxied": []}
    for number in range(WARM_UP + count):
        for name, client in (("direct", direct), ("proxied", proxied)):
            seconds = await timed(client)
            if number >= WARM_UP:
                times[name].append(seconds)
    return compared(times)


async def timed(client: Client) -> float:
    """Seconds of one request."""
    start = time.perf_counter()
    status, _, body = await client.send()
    seconds = time.perf_counter() - start
    assert status == 200, body
    return seconds


def compared(times: dict[str, list[float]]) -> dict[str, float]:
    """Quantiles in milliseconds, and what the proxy adds to them."""
    result = {}
    for name, values in times.items():
        result |= {f"{name} p{q}": 1000 * float(np.percentile(values, q)) for q in (50, 99)}
    for q in (50, 99):
        result[f"added p{q}"] = result[f"proxied p{q}"] - result[f"direct p{q}"]
    return result


async def paced(bench: Bench, url: str, images: Any, count: int) -> dict[str, float]:
    """The same with other images all the time, as they come from a camera."""
    clients = {"direct": bench.client(bench.upstream, images[0])}
    clients["proxied"] = bench.client(url, images[0])
    for image in images[:FIRST]:
        clients["proxied"].take(bench.tensor(image[None]))
        await clients["proxied"].send()
    before = await asyncio.to_thread(learner_of, url)
    times: dict[str, list[float]] = {name: [] for name in clients}
    start = time.perf_counter()
    for number, image in enumerate(itertools.islice(itertools.cycle(images[FIRST:]), count)):
        await asyncio.sleep(max(0.0, start + number / PACE - time.perf_counter()))
        for name, client in clients.items():
            client.take(bench.tensor(image[None]))
            times[name].append(await timed(client))
    seconds = time.perf_counter() - start
    after = await asyncio.to_thread(learner_of, url)
    spent = (after["queries"] - before["queries"]) / count
    facts = {"images": count, "images per second": count / seconds, "learner per image": spent}
    return {**compared(times), **facts, "adaptors": after["adaptors"]}


def learner_of(url: str) -> dict[str, Any]:
    """What the learner has done so far."""
    with urllib.request.urlopen(url.partition("/v2")[0] + "/control/status") as response:
        live = json.load(response)["live"]
    conditions = [each for source in live["sources"] for each in source["conditions"]]
    adaptors = [each["adaptor"] for each in conditions if any(each["parameters"])]
    return {"queries": sum(live["queries"].values()), "adaptors": adaptors}


async def throughput(
    direct: list[Client], proxied: list[Client], count: int, proxy: int
) -> dict[str, float]:
    """Requests per second at saturation; medians of rounds that take turns.

    And the CPU time of a request, in milliseconds: it hardly depends on what else is running.
    """
    rounds: dict[str, list[float]] = {"direct": [], "proxied": []}
    spent: dict[str, float] = dict.fromkeys(cpu_seconds(proxy), 0.0)
    for _ in range(ROUNDS):
        rounds["direct"].append(await rate(direct, count // ROUNDS))
        before = cpu_seconds(proxy)
        rounds["proxied"].append(await rate(proxied, count // ROUNDS))
        after = cpu_seconds(proxy)
        spent = {name: spent[name] + after[name] - before[name] for name in spent}
    result = {name: float(np.median(values)) for name, values in rounds.items()}
    shares = np.array(rounds["proxied"]) / np.array(rounds["direct"])
    requests = ROUNDS * (count // ROUNDS)
    cpu = {f"CPU ms of the {name}": 1000 * value / requests for name, value in spent.items()}
    return {**result, "share": float(np.median(shares)), **cpu}


def cpu_seconds(proxy: int) -> dict[str, float]:
    """CPU time so far of the client, the proxy and the model's server, which may be several."""
    here = psutil.Process()
    times = {each.pid: sum(each.cpu_times()[:2]) for each in here.children(recursive=True)}
    of_the_proxy = times.pop(proxy)
    return {
        "client": sum(here.cpu_times()[:2]),
        "proxy": of_the_proxy,
        "model": sum(times.values()),
    }


def identity(bench: Bench, images: Any, count: int) -> dict[str, Any]:
    """What the proxy itself costs."""
    with bench.proxy("--freeze") as (url, process):
        pair = [bench.client(each, images[0]) for each in (bench.upstream, url)]
        results = {"latency": asyncio.run(latency(pair[0], pair[1], count))}
        show("identity: milliseconds of one image", results["latency"])
        many = [
            [bench.client(each, image) for image in images[:CONNECTIONS]]
            for each in (bench.upstream, url)
        ]
        results["throughput"] = asyncio.run(throughput(many[0], many[1], count, process.pid))
        show("identity: requests per second", results["throughput"])
    return results


def learning(bench: Bench, count: int) -> dict[str, Any]:
    """What is added while the learner runs; for noise, an adaptor has been learned before."""
    results = {}
    state = bench.folder / "state"
    learned(bench, state)
    cases = (("clean", None, ()), ("gaussian noise", NOISE, ("--state", str(state))))
    for name, corruption, words in cases:
        with bench.proxy(*words) as (url, _):
            images = photographs(FIRST + count, corruption)
            results[name] = asyncio.run(paced(bench, url, images, count))
        show(f"learning from images with: {name}", results[name])
    return results


def with_adaptor(bench: Bench, adaptor: Adaptor, image: Any, count: int) -> dict[str, Any]:
    """What an adaptor adds, and the part of it that is the adaptor's own."""
    file = bench.folder / "bank.safetensors"
    adaptor.save(file)
    with bench.proxy("--adaptor", str(file), "--freeze") as (url, _):
        pair = [bench.client(each, image) for each in (bench.upstream, url)]
        result = asyncio.run(latency(pair[0], pair[1], count))
        with urllib.request.urlopen(url.partition("/v2")[0] + "/metrics") as response:
            text = response.read().decode()
    pattern = r"^soda_tta_adapt_seconds_(?:sum|count) (\S+)"
    calls, total = map(float, re.findall(pattern, text, re.MULTILINE))
    result["mean of the adaptor"] = 1000 * total / calls
    result |= graph_and_torch(adaptor, image)
    show(f"{adaptor.describe()}: milliseconds of one image", result)
    return result


def graph_and_torch(adaptor: Adaptor, image: Any) -> dict[str, float]:
    """Mean CPU milliseconds of one image in ONNX Runtime and in PyTorch, in turns, on one thread.

    They hardly depend on what else is running.
    """
    torch.set_num_threads(1)
    forms = {"as a graph": for_requests(adaptor), "in PyTorch": adaptor}
    times: dict[str, list[float]] = {name: [] for name in forms}
    for number in range(3 + ALONE):
        for name, function in forms.items():
            start = time.process_time()
            function(image[None])
            if number >= 3:
                times[name].append(1000 * (time.process_time() - start))
    return {name: float(np.mean(values)) for name, values in times.items()}


def adaptors(bench: Bench, image: Any, count: int) -> dict[str, Any]:
    """Two adaptors of the bank, and a router in front of one of them."""
    size = image.shape[1:]
    results = {
        name: with_adaptor(bench, Bank.for_size(size).adaptor(parts), image, count)
        for name, parts in ADAPTORS.items()
    }
    adaptor, noisy = of_conditions(size)
    return {**results, "conditions": with_adaptor(bench, adaptor, noisy, count)}


def of_conditions(size: tuple[int, int]) -> tuple[RoutedAdaptor, Any]:
    """An adaptor for clean and for noisy images, and a noisy image."""
    clean = (
        photographs(CONDITIONS).repeat(size[0] // SMALL, axis=2).repeat(size[1] // SMALL, axis=3)
    )
    grain = 0.1 * np.random.default_rng(0).standard_normal(clean.shape).astype(np.float32)
    images = np.concatenate([clean, (clean + grain).clip(0, 1)])
    found = find_conditions(images, conditions=2)
    noisy = found.of_each[-1]
    bank = Bank.for_size(size)
    adaptors: list[Adaptor] = [Identity(), Identity()]
    adaptors[noisy] = bank.adaptor({"cosine shrinkage 0.3": 0.8})
    shares = [0.5, 0.5]
    routed = RoutedAdaptor(router=found.router, adaptors=adaptors, words=found.words, shares=shares)
    assert routed.routes(images[-1:]).familiar.all()
    return routed, images[-1]


def measure(part: str, bench: Bench, count: int) -> dict[str, Any]:
    """One part of the figures."""
    if part == "large":
        images = noise(CONNECTIONS, LARGE)
        return {**identity(bench, images, count), **adaptors(bench, images[0], count // 4)}
    if part == "learning":
        return learning(bench, count)
    images = photographs(CONNECTIONS)
    if part == "adaptors":
        return adaptors(bench, images[0], count)
    return identity(bench, images, count)


def table_of_latency(stored: dict[str, dict[str, Any]]) -> str:
    """Milliseconds that are added, one row for each case."""
    ours, triton = stored["ours"], stored["triton"]
    small, large = ours.get("adaptors", {}), ours.get("large", {})
    cases = [
        ("none, 32 x 32", ours["identity"]["latency"]),
        ("none, 32 x 32, Triton", triton["identity"]["latency"]),
        *((f"learning, {name} images, 32 x 32", ours["learning"][name]) for name in LEARNED),
        *((f"{LABELS[name]}, 32 x 32", small[name]) for name in LABELS if name in small),
        *((f"{LABELS[name]}, 224 x 224", large[name]) for name in LABELS if name in large),
        *([("none, 224 x 224", large["latency"])] if large else []),
    ]
    head = ["adaptor", "direct p50", "added p50", "added p99"]
    rows = [[*head, "CPU of the adaptor alone", "in PyTorch"]]
    for label, case in cases:
        values = [case[name] for name in ("direct p50", "added p50", "added p99")]
        own = [case.get(name) for name in ("as a graph", "in PyTorch")]
        shown = ["" if value is None else f"{value:.2f}" for value in (*values, *own)]
        rows.append([label, *shown])
    return markdown(rows)


LEARNED = ("clean", "gaussian noise")
LABELS = {
    "contrast": "contrast and gamma",
    "noise": "adaptive and cosine shrinkage",
    "conditions": "router, and cosine shrinkage for noisy images",
}


def table_of_throughput(stored: dict[str, dict[str, Any]]) -> str:
    """Requests per second, one row for each server."""
    cases = {
        "`soda-tta serve --model`": stored["ours"]["identity"],
        "Triton": stored["triton"]["identity"],
    }
    if "large" in stored["ours"]:
        cases["`soda-tta serve --model`, 224 x 224, mean colours"] = stored["ours"]["large"]
    head = ["server of the model", "direct", "through the proxy", "share"]
    rows = [[*head, "CPU ms of the proxy", "of model and client"]]
    for label, case in cases.items():
        found = case["throughput"]
        numbers = [f"{found[name]:,.0f}" for name in ("direct", "proxied")]
        others = found["CPU ms of the model"] + found["CPU ms of the client"]
        cpu = [f"{each:.2f}" for each in (found["CPU ms of the proxy"], others)]
        rows.append([label, *numbers, f"{found['share']:.0%}", *cpu])
    return markdown(rows)


def write_tables() -> None:
    """Put what is stored into the page."""
    files = {"ours": "serve.json", "triton": "serve_triton.json"}
    stored = {name: json.loads((RESULTS / file).read_text()) for name, file in files.items()}
    tables = {"latency": table_of_latency(stored), "throughput": table_of_throughput(stored)}
    PAGE.write_text(replace_tables(PAGE.read_text(), tables))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "table"])
    parser.add_argument("--requests", type=int, default=2000, help="requests per measurement")
    parser.add_argument("--triton", action="store_true", help="Triton as the model's server")
    options = parser.parse_args()
    for part in options.parts:
        if part == "table":
            write_tables()
            continue
        load = os.getloadavg()[0]
        with tempfile.TemporaryDirectory() as folder:
            size = LARGE if part == "large" else SMALL
            bench = Bench(Path(folder), size, triton=options.triton)
            with bench.model():
                result = measure(part, bench, options.requests)
        file = "serve_triton.json" if options.triton else "serve.json"
        keep(file, part, {**result, "requests": options.requests, "load before": round(load, 1)})


if __name__ == "__main__":
    main()
