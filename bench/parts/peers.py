"""A job's life by the library, beside other job queues: each figure by job, or as its head says."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median

from kit.peers import PEERS, environment, has_bullmq
from kit.programs import driver
from kit.server import Server
from kit.tables import Figures, Options, Table

BASE, REDIS_PY = "JQ", "redis-py's FCALL"
OWN = {BASE: "with_jq.py", "JQ, plain": "with_jq_plain.py", REDIS_PY: "with_redis_py.py"}
HAS_MANY = ("JQ", "JQ, plain", "RQ", "BullMQ")
IN_COROUTINES = ("JQ", "arq", "BullMQ")
NOTE = (
    "By job; arguments of 200 bytes. Enqueues are awaited one at a time. Worker: no-op jobs that wait, 32 at a time "
    "(RQ and Celery: one), its CPU with start and stop. Idle: from before the enqueue in one process until the "
    "function runs in another, jobs 10 to 30 ms apart. MB: of the worker, behind it. Celery, huey, dramatiq and arq "
    "have no call for many. redis-py's FCALL: the same enqueue by a blocking client."
)


class Side:
    def __init__(self, stack: ExitStack, name: str, program: str, python: str, options: Options) -> None:
        self.name, self.options = name, options
        server = stack.enter_context(Server())
        self.redis = server.wire()
        self.client = stack.enter_context(driver(program, server.path, python=python))
        self.worker = stack.enter_context(driver(program, server.path, python=python))
        self.few, self.many = options.count(60, 20), options.count(3000, 200)
        self.client.step("enqueue", self.many)  # Node compiles what runs often
        if name != REDIS_PY:
            self.worker.step("work", self.many)

    def measure(self) -> Figures:
        before = self.redis.cpu_us()
        told = self.client.step("enqueue", self.many)
        found = {
            "enqueue, µs": told["ms"] * 1e3 / self.many,
            "enqueue, client CPU µs": told["cpu_us"] / self.many,
            "enqueue, Redis CPU µs": (self.redis.cpu_us() - before) / self.many,
        }
        if self.name not in IN_COROUTINES:
            told = self.client.step("threads", self.many)
            found["8 threads, µs"] = told["ms"] * 1e3 / self.many
        if self.name == REDIS_PY:
            return found
        waiting = self.many * (1 if self.name in IN_COROUTINES else 2)
        if self.name in HAS_MANY:
            told = self.client.step("many", 2 * self.many)
            found["many, jobs/s"] = 2e3 * self.many / told["ms"]
            waiting += 2 * self.many
        before = self.redis.cpu_us()
        told = self.worker.step("work", waiting)
        found |= {
            "no-ops/s": 1e3 * waiting / told["run_ms"],
            "worker, own CPU µs": told["cpu_us"] / waiting,
            "worker, Redis CPU µs": (self.redis.cpu_us() - before) / waiting,
            "idle, p50 ms": self.idle(),
            "MB": self.worker.resident_mb(),
        }
        return found

    def idle(self) -> float:
        self.worker.begin("work", self.few)
        time.sleep(1.0)
        self.client.step("spaced", self.few)
        waited_ms: list[float] = self.worker.end()["waited_ms"]
        return median(waited_ms)


def tables(options: Options, stack: ExitStack) -> Iterator[Table]:
    programs = {name: (program, sys.executable) for name, program in OWN.items()}
    if options.peers:
        programs |= {name: (program, environment(name)) for name, (program, _) in PEERS.items()}
        if has_bullmq():
            programs["BullMQ"] = "bullmq.js", ""
    sides = {name: Side(stack, name, program, python, options).measure for name, (program, python) in programs.items()}
    yield Table("The library beside other job queues", NOTE, sides, BASE)
