"""What is counted, for Prometheus at /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from soda_tta.errors import SodaError

SECONDS = (
    *(0.0005, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.01, 0.02),
    *(0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)
CONTENT_TYPE = "; ".join(("text/plain", "version=0.0.4", "charset=utf-8"))


class Metrics:
    """Counters and histograms of one proxy, in a registry of their own."""

    def __init__(self) -> None:
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
        except ImportError as error:
            raise SodaError(
                "serving needs aiohttp and prometheus-client: pip install 'soda-tta[serve]'."
            ) from error
        self.registry = CollectorRegistry()
        named: dict[str, Any] = {"namespace": "soda_tta", "registry": self.registry}
        self.requests = Counter(
            "requests", "Requests by clients", ["protocol", "kind", "status"], **named
        )
        self.upstream_requests = Counter("upstream_requests", "Requests to the model", **named)
        self.upstream_queries = Counter(
            "upstream_queries", "Images sent to the model for clients", **named
        )
        self.image_counter = Counter(
            "images", "Images of clients, by what was done", ["how"], **named
        )
        self.errors = Counter("errors", "What went wrong", ["kind"], **named)
        self.request_seconds = Histogram(
            "request_seconds",
            "Inference, from the request to the response",
            buckets=SECONDS,
            **named,
        )
        self.upstream_seconds = Histogram(
            "upstream_seconds", "The model's part of it", buckets=SECONDS, **named
        )
        self.adapt_seconds = Histogram(
            "adapt_seconds", "The adaptor's part of it", buckets=SECONDS, **named
        )
        self.in_flight = Gauge("in_flight", "Requests that are adapted or computed", **named)
        self.waiting = Gauge("waiting", "Requests that wait for a place", **named)
        self.learner_ok = Gauge("learner_ok", "1 unless learning fails", **named)
        self._images: dict[str, Any] = {}
        self._requests: dict[tuple[str, str, int], Any] = {}

    def images(self, how: str, count: int) -> None:
        """Count images by what was done to them."""
        if count:
            if how not in self._images:
                self._images[how] = self.image_counter.labels(how)
            self._images[how].inc(count)

    def request(self, protocol: str, kind: str, status: int) -> None:
        """Count a request that was answered."""
        key = (protocol, kind, status)
        if key not in self._requests:  # as fast as a dictionary
            self._requests[key] = self.requests.labels(protocol, kind, str(status))
        self._requests[key].inc()

    def error(self, kind: str) -> None:
        """Count an error."""
        self.errors.labels(kind).inc()

    def follow(self, facts: Callable[[], dict[str, Any]]) -> None:
        """Also show the numbers among these facts, asked for when they are read."""
        self.registry.register(Facts(facts))

    def text(self) -> bytes:
        """All of them in the text format of Prometheus."""
        from prometheus_client import generate_latest

        return bytes(generate_latest(self.registry))

    def totals(self) -> dict[str, float]:
        """The counters as plain JSON, by name and labels."""
        totals = {}
        for family in self.registry.collect():
            for sample in family.samples:
                if sample.name.endswith(("_total", "_in_flight", "_waiting")):
                    labels = ",".join(sample.labels.values())
                    name = sample.name.removeprefix("soda_tta_")
                    totals[f"{name}[{labels}]" if labels else name] = sample.value
        return totals


class Facts:
    """The numbers among the facts of a live adaptor, as gauges.

    Its queries, and images that it had no time to learn from, are counters.
    """

    def __init__(self, facts: Callable[[], dict[str, Any]]) -> None:
        self.facts = facts

    def collect(self) -> Iterator[Any]:
        """Called by the registry."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        facts = self.facts()
        family = GaugeMetricFamily("soda_tta_live", "Facts of the adaptor", labels=["fact"])
        for name, value in facts.items():
            if isinstance(value, int | float):
                family.add_metric([name], float(value))
        yield family
        spent = CounterMetricFamily(
            "soda_tta_learner_queries", "Images sent to the model to learn", labels=["purpose"]
        )
        queries = facts.get("queries")
        if isinstance(queries, dict):
            for purpose, count in queries.items():
                spent.add_metric([purpose], float(count))
        yield spent
        if "missed" in facts:
            yield CounterMetricFamily(
                "soda_tta_images_not_learned_from",
                "Images that the learner had no time for",
                value=float(facts["missed"]),
            )

    def describe(self) -> list[Any]:
        """Nothing before it is read."""
        return []
