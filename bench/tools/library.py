"""The library, driven: a step for each line on stdin, a line of JSON for each when it is done.

tools/library.py <url>

load               put the scripts into Redis, and set the namespace up
enqueue N          one job at a time, each awaited
plain N            the same from plain code
spaced N           as enqueue, 10 to 30 ms apart; the argument is the moment
spaced_plain N     the same from plain code, and for a plain function
serve              a worker from now on
waits N            ms from enqueueing to running of the N jobs that the worker started
work N C           a worker with C slots, until so many jobs have ended
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from jqmaster import JQ, load
from jqmaster.engine.engine import connect

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kit.contenders import NAME

jq = JQ(sys.argv[1])
TEXT = "a" * 192  # with its name 200 bytes
waited_ms: list[float] = []
started = asyncio.Event()


@jq.job(name=NAME)
async def send(text: str) -> None:
    pass


def note(at: int) -> None:
    waited_ms.append((time.monotonic_ns() - at) / 1e6)


@jq.job
async def begun(at: int) -> None:
    note(at)
    started.set()


@jq.job
def begun_plain(at: int) -> None:
    note(at)
    loop.call_soon_threadsafe(started.set)


async def enqueue(jobs: int) -> None:
    for _ in range(jobs):
        await send.aenqueue(TEXT)


def plain(jobs: int) -> None:
    for _ in range(jobs):
        send.enqueue(TEXT)


def apart() -> float:
    return random.uniform(0.01, 0.03)


async def spaced(jobs: int) -> None:
    for _ in range(jobs):
        await asyncio.sleep(apart())
        await begun.aenqueue(time.monotonic_ns())


def spaced_plain(jobs: int) -> None:
    for _ in range(jobs):
        time.sleep(apart())
        begun_plain.enqueue(time.monotonic_ns())


async def waits(jobs: int) -> dict[str, Any]:
    while len(waited_ms) < jobs:
        started.clear()
        await started.wait()
    found = waited_ms[:]
    waited_ms.clear()
    return {"waits": found}


async def work(jobs: int, slots: int) -> None:
    left, stop = jobs, asyncio.Event()

    def ended(_outcome: Any, state: str) -> None:
        nonlocal left
        assert state == "done", state
        left -= 1
        if not left:
            stop.set()

    await jq.worker([NAME], concurrency=slots, on_outcome=ended).serve(stop)


async def step(name: str, *numbers: int) -> dict[str, Any] | None:
    if name == "load":
        async with connect(jq.url) as redis:
            await load(redis, jq.namespace)
    elif name == "serve":
        serving.add(asyncio.create_task(jq.worker(concurrency=32).serve(asyncio.Event())))
        await asyncio.sleep(0.5)
    elif name in ("plain", "spaced_plain"):
        await asyncio.to_thread(globals()[name], *numbers)
    else:
        found: dict[str, Any] | None = await globals()[name](*numbers)
        return found
    return None


async def main() -> None:
    global loop
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    print(json.dumps({"ready": True}), flush=True)
    while line := (await lines.readline()).decode().split():
        began, before = time.perf_counter(), time.process_time()
        found = await step(line[0], *map(int, line[1:])) or {}
        took = {"ms": (time.perf_counter() - began) * 1e3, "cpu_us": (time.process_time() - before) * 1e6}
        print(json.dumps(took | found), flush=True)


serving: set[asyncio.Task[None]] = set()
uvloop.run(main())
