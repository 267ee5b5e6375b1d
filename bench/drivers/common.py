"""What all drivers have in common: a step for each line on stdin, a line of JSON on stdout when it is done.

    drivers/<driver> <socket of Redis> <slots of its worker>

enqueue N     one job at a time, each awaited; threads N: by eight threads
many N        as many in a call as the queue has a call for
spaced N      as enqueue, 10 to 30 ms apart
work N        a worker, until N jobs have run: ms that each waited, ms from the first start to the last
"""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

PATH, SLOTS = sys.argv[1], int(sys.argv[2])
TEXT = "a" * 192
THREADS = 8


class Work:
    """What ran since `begin`; then `stop` is called."""

    def begin(self, wanted: int) -> None:
        self.wanted, self.stop = wanted, lambda: None
        self.waited_ms: list[float] = []
        self.started_at = self.ended_at = 0.0
        self.lock = threading.Lock()

    def told(self) -> dict[str, Any]:
        return {"waited_ms": self.waited_ms, "run_ms": (self.ended_at - self.started_at) * 1e3}


work = Work()


def ran(at: int) -> None:
    """To be called by the job, with the moment at which it was enqueued."""
    now = time.monotonic_ns()
    with work.lock:
        work.waited_ms.append((now - at) / 1e6)
        work.ended_at = now / 1e9
        work.started_at = work.started_at or work.ended_at
        if len(work.waited_ms) == work.wanted:
            work.stop()


def job() -> tuple[int, str]:
    """The arguments of one."""
    return time.monotonic_ns(), TEXT


def drive(
    enqueue: Callable[..., Any],
    serve: Callable[[], Any] | None = None,
    enqueue_many: Callable[[int], Any] | None = None,
    prepare: Callable[[], Any] | None = None,
) -> None:
    """`serve` works until the `stop` that it sets is called. Each may be a coroutine function."""

    async def apart(count: int, is_spaced: bool) -> None:
        for _ in range(count):
            if is_spaced:
                await asyncio.sleep(random.uniform(0.01, 0.03))
            await enqueue(*job())

    def plainly(count: int, is_spaced: bool = False) -> None:
        for _ in range(count):
            if is_spaced:
                time.sleep(random.uniform(0.01, 0.03))
            enqueue(*job())

    def finished(result: Any) -> Any:
        return runner.run(result) if inspect.isawaitable(result) else result

    def step(name: str, count: int) -> dict[str, Any]:
        if name == "threads":
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(plainly, [count // THREADS] * THREADS))
        elif name == "many":
            assert enqueue_many
            finished(enqueue_many(count))
        elif name == "work":
            assert serve
            work.begin(count)
            finished(serve())
            return work.told()
        else:
            one_by_one = apart if inspect.iscoroutinefunction(enqueue) else plainly
            finished(one_by_one(count, name == "spaced"))
        return {}

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        if prepare:
            finished(prepare())
        print(json.dumps({"ready": True}), flush=True)
        while line := sys.stdin.readline():
            name, count = line.split()
            began, before = time.perf_counter(), time.process_time()
            found = step(name, int(count))
            took = {"ms": (time.perf_counter() - began) * 1e3, "cpu_us": (time.process_time() - before) * 1e6}
            print(json.dumps(took | found), flush=True)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
