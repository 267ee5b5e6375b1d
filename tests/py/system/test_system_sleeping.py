"""Where workers of a system with more partitions than are near them sleep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgpack
import pytest

from jqmaster.engine.waiting import channel_of
from jqmaster.system import calls, picking
from jqmaster.system.engine import SystemEngine
from jqmaster.system.picking import PLACES, Places
from jqmaster.system.place import Quiet
from jqmaster.worker.run import WorkOptions, work
from parts import eventually


@asynccontextmanager
async def working(engine: SystemEngine, ran: list[Any]) -> AsyncIterator[None]:
    """A worker that notes the arguments of its jobs."""

    async def note(argument: Any) -> None:
        ran.append(argument)

    stop = asyncio.Event()
    options = WorkOptions({"a": note}, redis_url=engine.url, system=engine.root, drain_timeout_s=1.0)
    task = asyncio.create_task(work(options, stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)


@pytest.fixture
async def wide(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    """A system of more partitions than are near a worker."""
    await calls.create(redis_url, namespace, PLACES + 3)
    engine = SystemEngine(redis_url, namespace)
    yield engine
    await engine.close()


async def _each_runs_one(engine: SystemEngine, ran: list[Any]) -> None:
    ran.clear()
    for number, one in enumerate(await engine.partitions()):
        await one.enqueue([({"name": "a"}, msgpack.packb(number))])
    await eventually(lambda: len(ran) == PLACES + 3)


async def _asleep(engine: SystemEngine) -> list[int]:
    """How many sleep at each partition."""
    key = f":asleep:{channel_of(['a'], 'priority')}"
    return [await one.redis.zcard(one.namespace + key) for one in await engine.partitions()]


async def test_more_partitions_than_one_worker_sleeps_at(wide: SystemEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picking, "COVER_S", 600.0)
    monkeypatch.setattr(picking, "NET_S", 0.5)
    monkeypatch.setattr(picking, "MOST_PLACES", PLACES)
    ran: list[Any] = []
    async with working(wide, ran):
        await _each_runs_one(wide, ran)
        await eventually(lambda: _slept(wide, PLACES))
        await _each_runs_one(wide, ran)
        assert sum(await _asleep(wide)) == PLACES


async def _slept(engine: SystemEngine, count: int) -> bool:
    return sum(map(bool, await _asleep(engine))) == count


async def test_a_worker_sleeps_where_nobody_else_does(wide: SystemEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picking, "NET_S", 0.5)
    ran: list[Any] = []
    async with working(wide, ran):
        await eventually(lambda: _slept(wide, PLACES + 3))
        monkeypatch.setattr(picking, "COVER_S", 0.5)
        async with working(wide, ran):  # is near some of those, which the other leaves
            await _each_runs_one(wide, ran)
            await eventually(lambda: _slept(wide, PLACES + 3))


async def test_where_others_sleep_by_now_is_left(wide: SystemEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picking, "NET_S", 0.0)
    monkeypatch.setattr(picking, "COVER_S", 0.0)
    wish = {"queues": ["a"]}
    first, other = Places(wide, "first", wish), Places(wide, "other", wish)
    await first.pick("first", wish, 1.0, Quiet())
    far = [one for one in first.all if not one.is_near]
    assert len(far) == 3 and all(one.channel for one in far)
    monkeypatch.setattr(picking, "PLACES", PLACES + 3)  # those of the other, to which all are near
    sleeping = asyncio.create_task(other.pick("other", wish, 600.0, Quiet()))

    async def is_left() -> bool:
        await first.pick("first", wish, 0.2, Quiet())
        return not any(one.channel for one in far)

    await eventually(is_left)
    sleeping.cancel()
    await asyncio.wait({sleeping})
    await first.stop()
    await other.stop()
