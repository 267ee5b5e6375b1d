"""What one master counts about itself: requests, deliveries, calls of scripts. `GET /metrics` shows it."""

from __future__ import annotations

from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

# Upper ends of the steps, in seconds.
FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
SLOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each


class Meters:
    """Counts since the master started. `breakers`: workers whose circuit is open, and why."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.breakers: dict[str, str] = {}
        # Looking up the series for its labels costs more than to count.
        self._requests = cache(self._counter("http_requests", "Requests answered.", "method", "path", "status").labels)
        text = "Time to answer; long polls wait on purpose."
        self._request_s = cache(self._histogram("http_request_seconds", text, "method", "path").labels)
        self._calls = cache(self._counter("script_calls", "Calls of scripts.", "script", "code").labels)
        text = "Time until a script's reply was there, the way to Redis included."
        self._call_s = cache(self._histogram("script_seconds", text, "script").labels)
        text = "Jobs offered to workers, by what came of it."
        self._deliveries = cache(self._counter("deliveries", text, "outcome").labels)
        self._delivery_s = self._histogram("delivery_seconds", "Time until a worker answered an offer.", ends=SLOW)
        text = "Workers that are pushed nothing for a while."
        Gauge("jq_breakers_open", text, registry=self.registry).set_function(lambda: len(self.breakers))

    def request(self, method: str, path: str, status: int, seconds: float | None) -> None:
        """A request was answered, within `seconds` if that is known. `path` as the API's document writes it."""
        self._requests(method, path, status).inc()
        if seconds is not None:
            self._request_s(method, path).observe(seconds)

    def call(self, script: str, code: str, seconds: float) -> None:
        """A script was called; `code` of its error, `ok` for none."""
        self._calls(script, code).inc()
        self._call_s(script).observe(seconds)

    def delivery(self, outcome: str, seconds: float) -> None:
        """A worker was offered a job."""
        self._deliveries(outcome).inc()
        self._delivery_s.observe(seconds)

    def value(self, name: str, **labels: str) -> float:
        """Of a series: `value("jq_deliveries_total", outcome="done")`."""
        return self.registry.get_sample_value(name, labels) or 0.0

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"jq_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, *labels: str, ends: Any = FAST) -> Histogram:
        return Histogram(f"jq_{name}", text, labels, buckets=ends, registry=self.registry)
