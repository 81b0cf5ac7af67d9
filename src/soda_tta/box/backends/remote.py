"""What all models behind a network have in common."""

from __future__ import annotations

from typing import Any

from soda_tta.box.backends.backend import Backend
from soda_tta.box.box import Box
from soda_tta.box.wrappers.batched import Batched
from soda_tta.box.wrappers.retrying import RETRIES, Retrying, retry

WORKERS = 4  # requests at once
LOADING_ATTEMPTS = 3  # a server that does not even describe its model is not waited for


class RemoteBackend(Backend):
    """A model that is reached by requests: several at once, each of them retried."""

    @classmethod
    def options(cls) -> set[str]:
        return super().options() | {"workers", "retries"}

    @classmethod
    def load(cls, model: Any, options: dict[str, Any]) -> Box:
        """Concurrent requests, each of them retried; `workers` of them at once."""
        own = ("workers", "retries")
        arguments = {name: value for name, value in options.items() if name not in own}
        attempts = 1 + options.get("retries", RETRIES)
        box = retry(
            lambda: super(RemoteBackend, cls).load(model, arguments),
            attempts=min(LOADING_ATTEMPTS, attempts),
        )
        return Batched(Retrying(box, attempts=attempts), workers=options.get("workers", WORKERS))
