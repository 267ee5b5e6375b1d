"""What one server counts about itself: requests, deliveries, calls of scripts. `GET /metrics` shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram, disable_created_metrics

# Upper ends of the steps, in seconds.
FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
SLOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)
disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each


class Meters:
    """Times since the server started, of which each is told with the values of its labels and the seconds."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        text = "Time to answer; long polls wait on purpose."
        self.request = self._timer("http_request", text, FAST, "method", "path", "status")
        text = "Time until a script's reply was there, the way to Redis included."
        self.call = self._timer("script", text, FAST, "script", "code")
        text = "Time until a worker or a receiver of webhooks answered, by what came of it."
        self.delivery = self._timer("delivery", text, SLOW, "to", "outcome")
        text = "Deliveries that are not answered yet."
        self.under_way = Gauge("jq_deliveries_under_way", text, registry=self.registry)

    def _timer(self, name: str, text: str, ends: Sequence[float], *labels: str) -> Callable[..., None]:
        # Looking up the series for its labels costs more than to count.
        series = cache(Histogram(f"jq_{name}_seconds", text, labels, buckets=ends, registry=self.registry).labels)

        def observe(*values: Any) -> None:
            series(*values[:-1]).observe(values[-1])

        return observe
