"""Versions of the settings of a system, and changes that a partition misses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import pack
from jqmaster.system import bringing, calls, settled
from jqmaster.system.bringing import keep_in_line
from jqmaster.system.engine import SystemEngine
from jqmaster.worker.run import WorkOptions, work
from parts import LONG_S


async def versions(system: SystemEngine) -> list[str]:
    """Of all partitions."""
    return [await calls.version_of(one) for one in await system.partitions()]


async def are_in_line(system: SystemEngine) -> bool:
    found = await bringing.behind(await system.partitions(), {})
    return all(one == [] for one in found) and len(set(await versions(system))) == 1


async def missed(system: SystemEngine, number: int, operation: str, **spec: Any) -> str:
    """A change that all partitions get but one; the version since then."""
    engines = await system.partitions()
    move = (await calls.version_of(engines[0]), settled.following(await calls.version_of(engines[0])))
    for at, one in enumerate(engines):
        if at != number:
            await one.call(operation, pack({**spec, "settings": move}))
    return move[1]


@asynccontextmanager
async def kept_in_line(system: SystemEngine) -> AsyncIterator[None]:
    task = asyncio.create_task(keep_in_line(system))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def working(system: SystemEngine, *queues: str) -> AsyncIterator[list[Any]]:
    """A worker that runs one job at a time, and the arguments of its jobs."""
    ran: list[Any] = []

    async def note(argument: Any) -> None:
        ran.append(argument)

    stop = asyncio.Event()
    options = WorkOptions({"a": note}, redis_url=system.url, system=system.root, queues=queues, concurrency=1)
    task = asyncio.create_task(work(options, stop))
    try:
        yield ran
    finally:
        stop.set()
        await asyncio.wait_for(task, LONG_S)


def picks(*queues: str) -> bytes:
    """Of a worker that takes all it gets."""
    return pack({"worker": "w", "queues": list(queues), "count": 9, "order": "ordered"})


async def ids(system: SystemEngine, *queues: str) -> list[str]:
    """The jobs that a pick brings."""
    return [job.id for job in replies.picked(await system.call("pick", picks(*queues))).jobs]


async def status(system: SystemEngine, job: str) -> str:
    """Of a job."""
    [document] = await system.get(job)
    assert document is not None
    return str(document["status"])


@asynccontextmanager
async def other(system: SystemEngine) -> AsyncIterator[SystemEngine]:
    """Another process."""
    engine = SystemEngine(system.url, system.root)
    yield engine
    await engine.close()
