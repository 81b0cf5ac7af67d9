"""What both sides of the proxy, HTTP and gRPC, share."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

from soda_tta.adaptors import Answering
from soda_tta.errors import SodaError
from soda_tta.serve.adapting import Adapted, Adapting
from soda_tta.serve.answers import Answers
from soda_tta.serve.headers import Passing
from soda_tta.serve.keys import Keys
from soda_tta.serve.learner import Arrival, Learner
from soda_tta.serve.limits import Limits, read_limits
from soda_tta.serve.live import FixedAdaptor, LiveAdaptor
from soda_tta.serve.logs import Log
from soda_tta.serve.metrics import Metrics
from soda_tta.serve.pixels import Pixels
from soda_tta.serve.places import Places
from soda_tta.serve.recent import Recent
from soda_tta.serve.state import Audit
from soda_tta.serve.upstream import Upstream
from soda_tta.types import Array

LONGEST_KEY = 128  # characters of the name of a source
T = TypeVar("T")
Rewrite = Callable[[Sequence[T], Answers, Answering, int], T]  # serve/rewriting.py


class Proxy:
    """One model behind the proxy, and everything that its requests need.

    Parameters
    ----------
    upstream : Upstream
    keys : Keys, optional
    passing : Passing, optional
        Which headers pass.
    config : str, optional
        The TOML file with the limits, read again by `reload`.
    key_header, key_parameter : str, optional
        The header, or the parameter of a request, that names the source of its images.
    log : Log, optional
    log_requests : bool, default False
        Also write a line for each inference.
    show_images : bool, optional
        Show some recent images on the dashboard. Default: only without a client key.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        keys: Keys | None = None,
        passing: Passing | None = None,
        config: str | None = None,
        key_header: str | None = None,
        key_parameter: str | None = None,
        log: Log | None = None,
        log_requests: bool = False,
        show_images: bool | None = None,
    ) -> None:
        self.upstream = upstream
        self.keys = keys or Keys()
        self.passing = passing or Passing()
        self.config = config
        self.key_header = None if key_header is None else key_header.lower()
        self.key_parameter = key_parameter
        self.log = log or Log()
        self.log_requests = log_requests
        self.limits = read_limits(config)
        self.metrics = Metrics()
        self.places = Places(lambda: self.limits, self.metrics)
        self.adapting = Adapting(self.metrics, self.log, self.limits)
        if self.keys.client is None if show_images is None else show_images:
            self.adapting.recent = Recent()
        self.audit = Audit(None, self.log, self.metrics)
        self.learner: Learner | None = None
        self.answers: Answers | None = None
        self.fresh: Callable[[], LiveAdaptor] | None = None
        self.draining = False
        self.ended = threading.Event()
        self.pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="adapt")

    def begin(
        self,
        pixels: Pixels,
        live: LiveAdaptor,
        answers: Answers,
        *,
        saves: bool = True,
        fresh: Callable[[], LiveAdaptor] | None = None,
    ) -> None:
        """Adapt from now on, and learn unless the adaptor is fixed.

        Parameters
        ----------
        saves : keep the state.
        fresh : removes what was saved, and makes an adaptor that has learned nothing; for `reset`.
        """
        self.answers = answers
        self.fresh = fresh
        self.adapting.begin(pixels, live)
        self.metrics.follow(self.live_facts)
        if not isinstance(live, FixedAdaptor):
            self.learner = Learner(self.adapting, self.metrics, self.log, saves=saves)
            self.learner.start()

    def live_facts(self) -> dict[str, Any]:
        """Those of the adaptor that answers now; `missed` are images that were not learned from."""
        live, learner = self.adapting.live, self.learner
        facts = {} if live is None else live.facts()
        if learner is None:
            return facts
        return {**facts, "missed": facts.get("missed", 0) + learner.missed}

    def reset(self) -> None:
        """Forget what was learned; images are left as they are until it is learned again."""
        if self.fresh is None:
            raise SodaError("nothing is learned here, so there is nothing to forget.")
        with nullcontext() if self.learner is None else self.learner.saving:
            self.adapting.live = self.fresh()

    def reload(self) -> None:
        """Read the limits again; an invalid file changes nothing."""
        try:
            limits = read_limits(self.config)
        except Exception as error:
            self.log.warning("the limits stay as they were", error=error)
            return
        self.set_limits(limits)
        self.log.info("limits reloaded", limits=limits.card())
        self.audit.write("limits reloaded", limits=limits.card())

    def set_limits(self, limits: Limits) -> None:
        """Use other limits from now on."""
        self.limits = limits
        self.adapting.limits = limits
        self.upstream.limit(limits.response_bytes)

    async def off_loop(self, large: bool, work: Callable[..., T], *arguments: Any) -> T:
        """The result of `work`, in a thread if it takes time."""
        if self.adapting.is_quick and not large:
            return work(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, work, *arguments)

    def key_of(self, headers: Mapping[str, str], parameters: Mapping[str, Any]) -> str | None:
        """The source of the images of a request, if it names one."""
        name: Any = None
        if self.key_header is not None:
            name = headers.get(self.key_header)
        if name is None and self.key_parameter is not None:
            name = parameters.get(self.key_parameter)
        return None if name is None else str(name)[:LONGEST_KEY]

    def is_adapted(self, name: str, version: str) -> bool:
        """Whether a request for this model, and this version or none, is adapted."""
        return name == self.upstream.name and self.upstream.version in ("", version)

    def learn_from(
        self,
        adapted: Adapted,
        read: Callable[[Answers, int], Array | None],
        *,
        key: str | None,
        client: str | None,
    ) -> None:
        """Hand a response to the learner, which reads it later."""
        learner, answers, images = self.learner, self.answers, adapted.images
        if learner is None or answers is None or images is None or self.adapting.paused:
            return
        reader = partial(read, answers, len(images))
        learner.offer(Arrival(images, reader, key, adapted.routes, client))

    def answered(self, rewrite: Rewrite[T], responses: Sequence[T], adapted: Adapted) -> T:
        """The first response with the answer in it; as the model sent it if that fails."""
        assert self.answers is not None and adapted.images is not None
        try:
            return rewrite(responses, self.answers, adapted.answering, len(adapted.images))
        except Exception as error:
            self.metrics.error("answers")
            self.log.warning("a response passes without class weights or views", error=error)
            return responses[0]

    def log_request(
        self,
        protocol: str,
        verb: str,
        path: str,
        status: int,
        seconds: float,
        headers: Mapping[str, str],
    ) -> None:
        """Write a line about one inference, if that is wanted."""
        if self.log_requests:
            self.log.info(
                "request",
                protocol=protocol,
                method=verb,
                path=path,
                status=status,
                milliseconds=round(1000 * seconds, 3),
                traceparent=headers.get("traceparent"),
            )

    def status(self) -> dict[str, Any]:
        """What is known now, as plain JSON."""
        live = self.adapting.live
        return {
            "model": self.upstream.name,
            "version": self.upstream.version or None,
            "adapting": live is not None and not self.adapting.paused,
            "paused": self.adapting.paused,
            "learner": "failing" if self.adapting.failing else "ok",
            "draining": self.draining,
            "limits": self.limits.card(),
            "counts": self.metrics.totals(),
            "live": None if live is None else self.live_facts(),
        }

    def close(self) -> None:
        """End the threads and save."""
        self.ended.set()
        if self.learner is not None:
            self.learner.close()
        self.pool.shutdown(wait=False, cancel_futures=True)
