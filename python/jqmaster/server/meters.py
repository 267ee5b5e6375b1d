"""What one master counts about itself: requests, deliveries, calls of scripts. `GET /metrics` shows it.

Counting must cost next to nothing, as it is done for every request whether anybody looks or not: plain maps
and lists, in one thread, without a library.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

# Upper ends of the steps, in seconds.
FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
SLOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0)


class Histogram:
    """Counts of what was seen, by step. `counts` has one more than `ends`: what was longer than all."""

    __slots__ = ("counts", "ends", "sum")

    def __init__(self, ends: tuple[float, ...] = FAST) -> None:
        self.ends = ends
        self.counts = [0] * (len(ends) + 1)
        self.sum = 0.0

    def see(self, seconds: float) -> None:
        self.counts[bisect_left(self.ends, seconds)] += 1
        self.sum += seconds


class Meters:
    """Counts since the master started."""

    def __init__(self) -> None:
        self.requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        """By method, path as the API's document writes it (empty for none), and status."""
        self.request_seconds: defaultdict[tuple[str, str], Histogram] = defaultdict(Histogram)
        self.calls: defaultdict[tuple[str, str], int] = defaultdict(int)
        """By script, and code of the error (`ok` for none)."""
        self.call_seconds: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.deliveries: defaultdict[str, int] = defaultdict(int)
        """By what came of them."""
        self.delivery_seconds = Histogram(SLOW)
        self.breakers: dict[str, str] = {}
        """Workers whose circuit is open, and why."""

    def request(self, method: str, path: str, status: int, seconds: float | None) -> None:
        """A request was answered, within `seconds` if that is known."""
        self.requests[method, path, status] += 1
        if seconds is not None:
            self.request_seconds[method, path].see(seconds)

    def call(self, script: str, code: str, seconds: float) -> None:
        """A script was called: the time until its reply was there, the way to Redis included."""
        self.calls[script, code] += 1
        self.call_seconds[script].see(seconds)

    def delivery(self, outcome: str, seconds: float) -> None:
        """A worker was offered a job."""
        self.deliveries[outcome] += 1
        self.delivery_seconds.see(seconds)
