"""What `top` shows: few calls for each look, and rates from the difference of two."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from jqmaster.cli import show
from jqmaster.cli.options import Client
from jqmaster.cli.queues import WAITING, rates

ORDERS = ("waiting", "running", "rate", "errors", "name")
_RARELY_S = 5.0  # what changes slowly, or costs more, is looked at so often
_SMOOTH = 5  # looks over which rates are taken
_TRACE = 400
_COUNTED = ("enqueued", "done", "failed")


@dataclass(frozen=True)
class Snapshot:
    """One look. `rates` are of all queues, a second; `per_minute` of each, (enqueued, done)."""

    now_ms: int
    queues: list[dict[str, Any]]
    workers: list[dict[str, Any]]
    constraints: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    totals: Counter[str]
    rates: dict[str, float]
    per_minute: dict[str, tuple[float, float]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return asdict(self) | {"totals": dict(self.totals)}


class Watch:
    """Looks again and again."""

    def __init__(self, client: Client, sort: str = "waiting") -> None:
        self.order = sort
        self.is_reversed = False
        self.trace: list[float] = []
        self._client = client
        self._begin_ms = (show.now_ms() // 60_000 - 1) * 60_000
        self._sums: list[tuple[float, Counter[str]]] = []
        self._rarely: dict[str, Any] = {}
        self._rarely_at = float("-inf")

    def look(self) -> Snapshot:
        """Raises what the client does."""
        now = show.now_ms()
        if time.monotonic() - self._rarely_at > _RARELY_S:
            self._rarely = {
                "constraints": self._client.constraints(),
                "failures": sorted(self._client.failures(), key=lambda group: -group["last_ms"]),
                "per_minute": rates(self._client, now),
            }
            self._rarely_at = time.monotonic()
        found = self._client.queues()
        totals: Counter[str] = Counter()
        for queue in found:
            totals.update({state: queue[state] for state in show.STATES})
        workers = self._client.workers()
        return self.sorted(Snapshot(now, found, workers, totals=totals, rates=self._rates(now), **self._rarely))

    def next_order(self, step: int) -> None:
        self.order = ORDERS[(ORDERS.index(self.order) + step) % len(ORDERS)]

    def sorted(self, snapshot: Snapshot) -> Snapshot:
        """The same look, in the order that is wanted now."""
        queues = sorted(snapshot.queues, key=lambda queue: self._place(queue, snapshot), reverse=self.is_reversed)
        return replace(snapshot, queues=queues)

    def _place(self, queue: dict[str, Any], snapshot: Snapshot) -> tuple[Any, ...]:
        waiting = sum(queue[state] for state in WAITING)
        came, went = snapshot.per_minute.get(queue["name"], (0.0, 0.0))
        first: dict[str, Any] = {"rate": (-came - went,), "errors": (-queue["error"],), "name": ()}
        first |= {"waiting": (-waiting, -queue["running"]), "running": (-queue["running"], -waiting)}
        return (*first[self.order], queue["name"])

    def _rates(self, now_ms: int) -> dict[str, float]:
        # Sums over buckets from a fixed one on: the difference of two looks is what happened in between.
        sums: Counter[str] = Counter()
        for one in self._client.stats("minute", from_ms=self._begin_ms, brief=True):
            failed = one["failed"] + one["error"] + one["lapsed"]
            sums.update({"enqueued": one["enqueued"], "done": one["done"] + one["moved"], "failed": failed})
        self._sums = [*self._sums, (time.monotonic(), sums)][-_SMOOTH - 1 :]
        (first_s, first), (last_s, last) = self._sums[0], self._sums[-1]
        passed_s = last_s - first_s
        if passed_s <= 0:
            return dict.fromkeys(_COUNTED, 0.0)
        latest_s = self._sums[-1][0] - self._sums[-2][0]
        self.trace = [*self.trace, max(0, last["done"] - self._sums[-2][1]["done"]) / max(0.01, latest_s)][-_TRACE:]
        if now_ms - self._begin_ms > 90 * 60_000:
            self._begin_ms, self._sums = (now_ms // 60_000 - 1) * 60_000, []
        return {name: max(0, last[name] - first[name]) / passed_s for name in _COUNTED}
