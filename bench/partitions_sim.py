"""How far from the order of one queue jobs start in a system of many partitions, and what that costs: a simulation.

bench/partitions_sim.py                      1 to 256 partitions, on up to 100 nodes
bench/partitions_sim.py --load 0.9 --partitions 6 16

Jobs come at random, to partitions by chance, and take times of an exponential distribution. Workers choose as
`jqmaster.system.picking` does. Of each start it is counted how many older jobs waited anywhere (its rank error).
Nothing here takes time but jobs: calls are counted. No Redis is asked.
"""

from __future__ import annotations

import argparse
import bisect
import heapq
import random
from collections import deque
from dataclasses import dataclass, field

from jqmaster.system.picking import LOOKS_S, NET_S, PLACES

BLOCKS_S = 3.0  # how long one wait for a marker lasts (jqmaster.connection.wake)
SLOTS_OF_A_NODE = 12


@dataclass
class Run:
    """One simulation. Time is in service times."""

    partitions: int
    slots: int
    load: float
    looks: bool  # at other partitions; else each stays where it is
    chance: random.Random
    ranks: list[int] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        self.now = 0.0
        self.queues: list[deque[float]] = [deque() for _ in range(self.partitions)]
        self.waiting: list[float] = []  # moments at which jobs came, all in order
        self.home = [self.chance.randrange(self.partitions) for _ in range(self.slots)]
        self.idle = set(range(self.slots))

    def run(self, jobs: int) -> Run:
        """Until so many have come."""
        rate = self.slots * self.load
        events: list[tuple[float, int]] = [(self.chance.expovariate(rate), -1)]
        while jobs:
            self.now, slot = heapq.heappop(events)
            if slot < 0:
                jobs -= 1
                place = self.chance.randrange(self.partitions)
                self.queues[place].append(self.now)
                self.waiting.append(self.now)
                heapq.heappush(events, (self.now + self.chance.expovariate(rate), -1))
                if not self.idle:
                    continue
                slot = self.idle.pop()
                self.home[slot] = place  # which woke it
            if self._starts(slot):
                heapq.heappush(events, (self.now + self.chance.expovariate(1.0), slot))
            else:
                self.idle.add(slot)
        return self

    def _starts(self, slot: int) -> bool:
        home = place = self.home[slot]
        self.calls += 1  # the report, with a pick of what comes before the head of another
        if self.looks and self.partitions > 1:
            other = (home + 1 + self.chance.randrange(self.partitions - 1)) % self.partitions
            self.calls += 1
            if self._head(other) < self._head(home):
                place = other
                self.calls += 1
        if not self.queues[place]:
            others = [one for one in range(self.partitions) if self.queues[one]]
            if not others:
                return False
            place = self.chance.choice(others)
            self.calls += 1
        came = self.queues[place].popleft()
        self.home[slot] = place
        rank = bisect.bisect_left(self.waiting, came)
        self.ranks.append(rank)
        del self.waiting[rank]
        return True

    def _head(self, place: int) -> float:
        """When the job came that is next there."""
        return self.queues[place][0] if self.queues[place] else self.now


def table(load: float, counts: list[int], jobs: int) -> None:
    """One line for each number of partitions."""
    print(f"load {load:g}; rank error: mean (p99)\n")
    print("| partitions | nodes | slots | stays | looks | calls per job | connections | idle calls/s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for count in counts:
        nodes = min(100, max(1, count // 2))
        slots = max(64, nodes * SLOTS_OF_A_NODE)
        runs = [Run(count, slots, load, looks, random.Random(1)).run(jobs) for looks in (False, True)]
        told = []
        for one in runs:
            ranks = sorted(one.ranks[len(one.ranks) // 3 :])
            told.append(f"{sum(ranks) / len(ranks):.1f} ({ranks[len(ranks) * 99 // 100]})")
        places, others = min(count, PLACES), max(0, count - PLACES)
        looked = others / max(NET_S, LOOKS_S * others) if others else 0.0
        print(f"| {count} | {nodes} | {slots} | {told[0]} | {told[1]} | {runs[1].calls / len(runs[1].ranks):.2f} "
              f"| {count + 3 * places} | {places / BLOCKS_S + looked:.1f} |", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=float, default=1.1)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 2, 6, 16, 50, 100, 200, 256])
    parser.add_argument("--jobs", type=int, default=30_000)
    options = parser.parse_args()
    table(options.load, options.partitions, options.jobs)


if __name__ == "__main__":
    main()
