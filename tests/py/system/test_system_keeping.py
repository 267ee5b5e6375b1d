"""Settings that a partition missed are brought there by whoever carries mail."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgpack
import pytest

from jqmaster.engine.engine import Engine
from jqmaster.errors import PartitionsAway
from jqmaster.system import bringing, calls
from jqmaster.system.engine import SystemEngine
from jqmaster.worker.run import WorkOptions, work
from parts import eventually
from systems import system
from topologies import cluster

__all__ = ["system"]


@asynccontextmanager
async def working(engine: SystemEngine) -> AsyncIterator[list[Any]]:
    """A worker, and the arguments of its jobs."""
    ran: list[Any] = []

    async def note(argument: Any) -> None:
        ran.append(argument)

    stop = asyncio.Event()
    options = WorkOptions({"a": note}, redis_url=engine.url, system=engine.root, drain_timeout_s=1.0)
    task = asyncio.create_task(work(options, stop))
    try:
        yield ran
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)


async def _are_the_same(engine: SystemEngine) -> bool:
    engines = await engine.partitions()
    return await bringing.behind(engines, {}) == [[]] * len(engines)


async def test_what_a_partition_missed_is_brought_by_a_worker(
    system: SystemEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bringing, "CHECK_S", 0.1)
    monkeypatch.setattr(bringing, "_EACH_S", 0.0)
    first, second, third = await system.partitions()
    await first.queue("b", paused=True)
    await third.config({"done_max": 7})
    await second.queue("only here", paused=True)
    async with working(system):
        await eventually(lambda: _are_the_same(system))
    assert [(await one.queue("b"))["paused"] for one in (first, second, third)] == [True] * 3
    assert not (await second.queue("only here"))["paused"]
    assert (await third.config())["done_max"] == (await first.config())["done_max"] != 7


async def test_what_is_under_way_is_left_to_who_sets_it(system: SystemEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engines = await system.partitions()
    await engines[0].queue("b", paused=True)
    looks, look = 0, bringing._look

    async def counted(engines: Sequence[Engine], *rest: Any, **more: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 2:  # somebody has begun to set it meanwhile
            await engines[0].queue("c", paused=True)
            await engines[1].queue("b", paused=True)
        return await look(engines, *rest, **more)

    monkeypatch.setattr(bringing, "_look", counted)
    assert await bringing.bring(system, lasting_s=0.01) == {0: [], 1: [], 2: ["queue b", "queue c"]}
    assert [[one.what for one in found] for found in await bringing.behind(engines, {})] == [
        [],
        ["queue c"],
        [],
    ]


@pytest.mark.faults
async def test_a_partition_that_comes_back_learns_of_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bringing, "CHECK_S", 600.0)
    with cluster(primaries=3, timeout_ms=60_000) as nodes:  # who hangs is not given up
        await calls.create(nodes.url, "{jq}", 3)
        engine = SystemEngine(nodes.url, "{jq}")
        partitions = await engine.partitions()
        async with working(engine) as ran:
            await partitions[1].enqueue([({"name": "a"}, msgpack.packb("before"))])
            await eventually(lambda: ran == ["before"])
            node = nodes.owner(partitions[1].namespace)
            node.process.send_signal(signal.SIGSTOP)
            try:
                with pytest.raises(PartitionsAway):
                    await engine.queue("a", paused=True)
            finally:
                node.process.send_signal(signal.SIGCONT)
            await eventually(lambda: _are_the_same(engine))
        assert (await partitions[1].queue("a"))["paused"]
        await engine.close()
