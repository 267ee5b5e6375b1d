"""What a flooding tenant does to others: a queue served by slots in simulated time.

The engine decides which job starts; the bench keeps the clock, in which a job takes 0.5 to 1.5 units of time,
so that figures do not depend on the machine.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from statistics import mean
from typing import Any

import msgpack

from kit.constrained import Constrained, argument
from kit.wire import Wire

FLOODER = "flooder"
Arrival = tuple[float, str]
"""(moment, tenant)"""


@dataclass(frozen=True)
class Load:
    """Light tenants, and one that floods: ``flood`` of its jobs wait from the beginning, and always."""

    flood: int
    is_burst: bool
    """each light tenant sends all its jobs at the moment 1, or single jobs come at random"""
    slots: int = 10
    light: int = 9
    jobs: int = 100
    """of each light tenant"""
    share: float = 0.7
    """of the slots' time that single jobs take, all together"""


def arrivals(load: Load, seed: int) -> list[Arrival]:
    """In order of time; the same for the same seed, with and without the flood."""
    chance = random.Random(seed)
    tenants = [f"light{number}" for number in range(load.light)] * load.jobs
    if load.is_burst:
        return [(1.0, tenant) for tenant in sorted(tenants)]
    chance.shuffle(tenants)
    at, found = 1.0, []
    for tenant in tenants:
        found.append((at, tenant))
        at += chance.expovariate(load.slots * load.share)
    return found


class Simulation:
    def __init__(self, wire: Wire, jq: Constrained, load: Load, seed: int) -> None:
        self.wire, self.jq, self.load = wire, jq, load
        tenants = [FLOODER, *(f"light{number}" for number in range(load.light))]
        self.argument_of = {tenant: argument(tenant) for tenant in tenants}
        self.tenant_of = {packed: tenant for tenant, packed in self.argument_of.items()}
        self.coming = arrivals(load, seed)[::-1]
        self.length = random.Random(seed)
        self.arrived: dict[bytes, float] = {}
        self.busy: list[tuple[float, Any]] = []
        self.waits: list[float] = []
        self.waiting = self.floods = self.lost = 0

    def enqueue(self, tenant: str, at: float, count: int = 1) -> None:
        commands = self.jq.jobs([self.argument_of[tenant]] * count, min(count, 1000))
        for reply in self.wire.pipelined(commands):
            self.arrived |= dict.fromkeys(reply[::2], at)
        self.waiting += count
        self.floods += count if tenant == FLOODER else 0

    def start(self, now: float) -> None:
        """Fill the slots. A pick that finds nothing though jobs wait is lost room."""
        while len(self.busy) < self.load.slots and self.waiting:
            reply = self.wire.send(self.jq.pick(1, 1)[0])
            if not reply[1:]:
                self.lost += 1
                return
            document, packed = msgpack.unpackb(reply[1]), reply[2]
            token = (document["id"], document["token"])
            heapq.heappush(self.busy, (now + self.length.uniform(0.5, 1.5), token))
            self.waiting -= 1
            if self.tenant_of[packed] != FLOODER:
                self.waits.append(now - self.arrived[document["id"].encode()])
                continue
            self.floods -= 1
            if self.floods < self.load.flood:
                self.enqueue(FLOODER, now)

    def run(self) -> dict[str, float]:
        """Serve all light jobs: mean and 99th percentile of their waits, part of the slots' time at work."""
        now = 0.0
        if self.load.flood:
            self.enqueue(FLOODER, now, self.load.flood)
        wanted = len(self.coming)
        worked = 0.0
        while len(self.waits) < wanted:
            self.start(now)
            is_arrival = self.coming and (not self.busy or self.coming[-1][0] <= self.busy[0][0])
            at = self.coming[-1][0] if is_arrival else self.busy[0][0]
            worked += len(self.busy) * (at - now)
            now = at
            if is_arrival:
                self.enqueue(self.coming.pop()[1], now)
            else:
                _, token = heapq.heappop(self.busy)
                self.wire.send(self.jq.finish([token], 1)[0])
        ordered = sorted(self.waits)
        self.wire.pipelined(self.jq.finish([token for _, token in self.busy], 1))
        return {
            "wait": mean(ordered),
            "p99": ordered[len(ordered) * 99 // 100],
            "worked": worked / now / self.load.slots,
            "lost": self.lost,
        }
