"""The dashboard at /: a page without data, which asks for them with the admin key."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
from aiohttp import web

from soda_tta.engine.live import LiveStream
from soda_tta.judging.estimate import NoEstimate, assumed, estimate_accuracy
from soda_tta.serve.control import as_json
from soda_tta.serve.http_front import Page
from soda_tta.serve.proxy import Proxy
from soda_tta.types import Array

LATEST = 256  # answers of a condition that confidence is computed from
FEWEST = 8  # fewer say nothing
FEWEST_ESTIMATED = 100  # of which the balance of the classes says something
MOST_CLASSES = 100  # of more classes so few answers say little, and the bound takes long


def dashboard_pages(proxy: Proxy) -> dict[str, Page]:
    """The pages by path."""
    template = files("soda_tta.serve").joinpath("dashboard.html").read_text(encoding="utf-8")

    async def page(request: web.BaseRequest) -> web.StreamResponse:
        nonce = secrets.token_urlsafe(16)
        needs_key = "yes" if proxy.keys.admin is not None else "no"
        text = template.replace("NONCE", nonce).replace("NEEDS_KEY", needs_key)
        headers = {
            "content-type": "; ".join(("text/html", "charset=utf-8")),
            "content-security-policy": (
                f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
                "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'"
            ),
            "cache-control": "no-store",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        }
        return web.Response(body=text.encode(), headers=headers)

    async def data(request: web.BaseRequest) -> web.StreamResponse:
        return as_json(await asyncio.to_thread(facts, proxy))

    async def images(request: web.BaseRequest) -> web.StreamResponse:
        recent = proxy.adapting.recent
        if recent is None:
            return as_json({"shown": False, "images": []})
        return as_json({"shown": True, "images": await asyncio.to_thread(recent.as_json)})

    return {"/": page, "/control/dashboard": data, "/control/images": images}


def facts(proxy: Proxy) -> dict[str, Any]:
    """Everything that the page shows except images, as plain JSON."""
    status = proxy.status()
    counts = status["counts"]
    live = proxy.adapting.live
    return {
        **status,
        "seconds": time.monotonic(),  # the page computes rates from two answers
        "requests": sum(
            value
            for name, value in counts.items()
            if name.startswith("requests_total[") and ",infer," in name
        ),
        "queries": counts.get("upstream_queries_total", 0),
        "kind": None if live is None else type(live).__name__,
        "answers": list(answers_of(live)) if isinstance(live, LiveStream) else [],
        "timeline": list(proxy.audit.recent)[::-1],
    }


def answers_of(live: LiveStream) -> Iterator[dict[str, Any]]:
    """The recent answers of each condition, to images as they came and to adapted ones.

    These are different images of the same condition: each is answered once.
    """
    method = live.method
    for key, source in list(live.learner.sources.items()):
        items = list(source.buffer.items)
        for number, condition in enumerate(list(source.conditions)):
            own = [item for item in items if item.condition == number]
            current = condition.adaptor
            without = [item.answer for item in own if item.adaptor == 0]
            adapted = [item.answer for item in own if item.adaptor == current != 0]
            shares = method.class_shares(len(own[0].answer)) if own else None
            yield {
                "key": key,
                "condition": number,
                "without": summary(without, shares),
                "with": summary(adapted, shares),
            }


def summary(answers: list[Array], shares: Array | None = None) -> dict[str, Any] | None:
    """Mean confidence, mutual information (nats) and a bound of the accuracy of the latest answers.

    None of too few. `shares` are the class frequencies that the user stated.
    """
    if len(answers) < FEWEST:
        return None
    rows = np.array(answers[-LATEST:], np.float64)
    mean = rows.mean(axis=0)
    return {
        "images": len(rows),
        "confidence": float(rows.max(axis=1).mean()),
        "information": float(entropy(mean) - entropy(rows).mean()),
        "accuracy": accuracy_of(rows, shares),
    }


def accuracy_of(rows: Array, shares: Array | None) -> str | None:
    """What is known about the accuracy without labels, in words; None if that is nothing."""
    if len(rows) < FEWEST_ESTIMATED or rows.shape[1] > MOST_CLASSES:
        return None
    estimate = estimate_accuracy(rows, shares=shares)
    if isinstance(estimate, NoEstimate):
        return None
    return f"{estimate.short} if {assumed(shares)}"


def entropy(rows: Array) -> Array:
    """The entropy of probabilities along the last axis."""
    entropies: Array = -(rows * np.log(np.maximum(rows, 1e-12))).sum(axis=-1)
    return entropies
