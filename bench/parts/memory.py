"""Bytes that Redis holds for one waiting job, above its argument."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from kit.engine import ARGUMENT, JQ, Floor
from kit.peers import has_bullmq
from kit.programs import driver
from kit.server import Server
from kit.tables import Figures, Options, Table
from kit.wire import Wire


def settled(wire: Wire) -> int:
    """used_memory once tables have stopped growing or moving."""
    last, steady = wire.used_memory(), 0
    while steady < 5:
        time.sleep(0.1)
        now = wire.used_memory()
        steady = steady + 1 if abs(now - last) < 4096 else 0
        last = now
    return last


def growth(wire: Wire, enqueue: Callable[[int], object], jobs: int) -> Figures:
    enqueue(100)
    before = settled(wire)
    enqueue(jobs)
    return {"bytes": (settled(wire) - before) / jobs - len(ARGUMENT)}


def of_engine(engine: JQ | Floor, jobs: int) -> Figures:
    with Server() as server:
        wire = server.wire()
        engine.prepare(wire)
        return growth(wire, lambda count: wire.pipelined(engine.enqueue(count, 100), depth=20), jobs)


def of_bullmq(jobs: int) -> Figures:
    with Server() as server, driver("bullmq.js", server.path) as client:
        return growth(server.wire(), lambda count: client.step("many", count), jobs)


def tables(options: Options, stack: ExitStack) -> Iterator[Table]:
    jobs = options.count(200_000, 20_000)
    sides = {"JQ": partial(of_engine, JQ(), jobs), "floor": partial(of_engine, Floor(), jobs)}
    if options.peers and has_bullmq():
        sides["BullMQ"] = partial(of_bullmq, jobs)
    note = f"Growth of used_memory over {jobs:,} waiting jobs, by job, less its argument of {len(ARGUMENT)} bytes."
    yield Table("A waiting job", note, sides, "JQ", rounds=1)
