"""What one master counts about itself: requests, deliveries, calls of scripts. `GET /metrics` shows it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Gauge, Histogram, disable_created_metrics

# Upper ends of the steps, in seconds.
FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
SLOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each


class Meters:
    """Times since the master started. `breakers`: workers, and receivers of webhooks, whose circuit is open."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.breakers: set[str] = set()
        text = "Time to answer; long polls wait on purpose."
        self._requests = self._histogram("http_request", text, FAST, "method", "path", "status")
        text = "Time until a script's reply was there, the way to Redis included."
        self._calls = self._histogram("script", text, FAST, "script", "code")
        text = "Time until a worker or a receiver of webhooks answered, by what came of it."
        self._deliveries = self._histogram("delivery", text, SLOW, "to", "outcome")
        text = "Deliveries that are not answered yet."
        self.under_way = Gauge("jq_deliveries_under_way", text, registry=self.registry)
        text = "Workers, and receivers of webhooks, that are sent nothing for a while."
        Gauge("jq_breakers_open", text, registry=self.registry).set_function(lambda: len(self.breakers))

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        """A request was answered. `path` as the API's document writes it."""
        self._requests(method, path, status).observe(seconds)

    def call(self, script: str, code: str, seconds: float) -> None:
        """A script was called; `code` of its error, `ok` for none."""
        self._calls(script, code).observe(seconds)

    def delivery(self, to: str, outcome: str, seconds: float) -> None:
        """A worker was offered a job, or a receiver of webhooks a notification."""
        self._deliveries(to, outcome).observe(seconds)

    def value(self, name: str, **labels: str) -> float:
        """Of a series: `value("jq_delivery_seconds_count", to="worker", outcome="success")`."""
        return self.registry.get_sample_value(name, labels) or 0.0

    def _histogram(self, name: str, text: str, ends: tuple[float, ...], *labels: str) -> Callable[..., Histogram]:
        # Looking up the series for its labels costs more than to count.
        return cache(Histogram(f"jq_{name}_seconds", text, labels, buckets=ends, registry=self.registry).labels)
