"""What all models behind a network have in common."""

from __future__ import annotations

from typing import Any

from soda_tta.box.backends.backend import Backend
from soda_tta.box.box import Box
from soda_tta.box.wrappers.batched import Batched
from soda_tta.box.wrappers.limited import Limited, Limiter
from soda_tta.box.wrappers.pooled import Pooled
from soda_tta.box.wrappers.retrying import RETRIES, Retrying, retry

WORKERS = 4  # requests at once, per server
MOST_WORKERS = 64  # requests at once, unless stated
LOADING_ATTEMPTS = 3  # a server that does not even describe its model is not waited for
LIMITS = ("max_qps", "max_concurrent")
OWN = ("workers", "retries", *LIMITS)


class RemoteBackend(Backend):
    """A model that is reached by requests: several at once, each of them limited and retried."""

    @classmethod
    def options(cls) -> set[str]:
        return super().options() | set(OWN)

    @classmethod
    def load(cls, model: Any, options: dict[str, Any]) -> Box:
        """Concurrent requests, each of them retried; `workers` of them at once."""
        limits = {name: options[name] for name in LIMITS if name in options}
        limiter = Limiter(**limits)
        arguments = {name: value for name, value in options.items() if name not in OWN}
        attempts = 1 + options.get("retries", RETRIES)
        box = retry(
            lambda: cls.connect(model, arguments, limiter),
            attempts=min(LOADING_ATTEMPTS, attempts),
        )
        servers = len(box.replicas.all) if isinstance(box, Pooled) else 1
        workers = options.get("workers", min(MOST_WORKERS, WORKERS * servers))
        limited = Limited(box, limiter) if limits else box
        return Batched(
            Retrying(limited, attempts=attempts),
            batch=request_size(box, limiter),
            workers=int(min(workers, limiter.max_concurrent)),
        )

    @classmethod
    def connect(cls, model: Any, options: dict[str, Any], limiter: Limiter) -> Box:
        """The box of a model, without retries; its own options only."""
        return super().load(model, options)


def request_size(box: Box, limiter: Limiter) -> int:
    """Images per request: no more than a second of the limit, so that the stream is even."""
    if box.fixed_batch:
        return box.batch
    return int(max(1, min(box.batch, limiter.max_qps)))
