"""The events of all partitions in one stream of a master."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import msgpack
import pytest

from jqmaster import JQ
from jqmaster.engine.replies import Event
from jqmaster.master.server import ServeOptions, Server
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from jqmaster.system.resizing import add
from parts import eventually
from topologies import cluster

COUNT = 3
NIL = msgpack.packb(None)


@pytest.fixture
async def engine(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    await calls.create(redis_url, namespace, COUNT)
    engine = SystemEngine(redis_url, namespace)
    await engine.config({"events_max": 100_000})
    yield engine
    await engine.close()


@asynccontextmanager
async def served(engine: SystemEngine) -> AsyncIterator[JQ]:
    options = ServeOptions(redis_url=engine.url, namespace=engine.root, system=True, port=0)
    async with Server(options) as server:
        yield JQ(server.url)


@asynccontextmanager
async def followed(jq: JQ, after: str | None = None) -> AsyncIterator[list[Event]]:
    """What came so far; the first when this begins."""
    got: list[Event] = []

    async def follow() -> None:
        async with aclosing(jq.aevents(after=after)) as events:
            async for event in events:
                got.append(event)

    task = asyncio.create_task(follow())
    try:
        yield got
    finally:
        task.cancel()
        await asyncio.wait({task})


async def put(engine: SystemEngine, number: int, count: int = 1) -> list[str]:
    """Jobs of one partition; their ids."""
    made = await (await engine.partitions())[number].enqueue([({"name": "a"}, NIL)] * count)
    return [one.id for one in made]


async def until_heard(engine: SystemEngine, got: list[Event], number: int) -> None:
    """Make jobs until one is heard of: who follows has begun by then."""

    async def is_heard() -> bool:
        await put(engine, number)
        return any(partition_of(one.data["id"]) == number for one in got)

    await eventually(is_heard)


def of(got: list[Event], ids: list[str]) -> dict[str, list[str]]:
    """The states that were told of each."""
    return {id: [one.data["state"] for one in got if one.data["id"] == id] for id in ids}


async def test_events_of_all_partitions_come_and_go_on_where_they_were(engine: SystemEngine) -> None:
    async with served(engine) as jq:
        async with followed(jq) as got:
            for number in range(COUNT):
                await until_heard(engine, got, number)
            ids = [id for number in range(COUNT) for id in await put(engine, number, 5)]
            await engine.cancel(ids)
            await eventually(lambda: of(got, ids) == {id: ["queued", "cancelled"] for id in ids})
        last = got[-1].id
        missed = [id for number in range(COUNT) for id in await put(engine, number, 5)]
        async with followed(jq, last) as again:
            await eventually(lambda: of(again, missed) == {id: ["queued"] for id in missed})
            assert {one.kind for one in again} == {"message"}
            told = Counter((one.data["id"], one.data["state"]) for one in again)
            assert set(told.values()) == {1}
            newly = await put(engine, 1)
            await eventually(lambda: of(again, newly) == {newly[0]: ["queued"]})


async def test_who_comes_back_after_a_partition_has_trimmed_is_told(engine: SystemEngine) -> None:
    async with served(engine) as jq:
        async with followed(jq) as got:
            await until_heard(engine, got, 1)
        await engine.config({"events_max": 10})
        for _ in range(5):
            await put(engine, 2, 100)
        async with followed(jq, got[-1].id) as again:
            await eventually(lambda: again)
            assert again[0].kind == "missed"


async def test_a_partition_that_is_added_is_heard(engine: SystemEngine) -> None:
    async with served(engine) as jq, followed(jq) as got:
        await until_heard(engine, got, 0)
        await add(engine.url, engine.root, 1)
        await eventually(lambda: _knows(engine, COUNT + 1))
        ids = await put(engine, COUNT, 3)
        await eventually(lambda: of(got, ids) == {id: ["queued"] for id in ids})


async def _knows(engine: SystemEngine, count: int) -> bool:
    return len(await engine.partitions()) == count


@pytest.mark.faults
async def test_what_happens_in_a_partition_that_was_away_is_told_when_it_is_back() -> None:
    with cluster(primaries=3, timeout_ms=60_000) as nodes:  # who hangs is not given up
        await calls.create(nodes.url, "{jq}", 3)
        engine = SystemEngine(nodes.url, "{jq}")
        await engine.config({"events_max": 1000})
        async with served(engine) as jq, followed(jq) as got:
            for number in range(3):
                await until_heard(engine, got, number)
            node = nodes.owner((await engine.partitions())[1].namespace)
            node.process.send_signal(signal.SIGSTOP)
            try:
                ids = await put(engine, 2, 3)
                await eventually(lambda: of(got, ids) == {id: ["queued"] for id in ids})
            finally:
                node.process.send_signal(signal.SIGCONT)
            more = await put(engine, 1, 3)
            await eventually(lambda: of(got, more) == {id: ["queued"] for id in more})
        await engine.close()
