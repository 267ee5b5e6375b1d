"""Workers of a cluster, straight on Redis: each serves all partitions."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bare import worker_of
from jqmaster import JQ
from jqmaster.cluster.cluster import Cluster
from jqmaster.cluster.names import home_of, number_of
from jqmaster.engine.calling import pack
from jqmaster.worker.sources import RedisSource
from jqmaster.worker.worker import Worker
from parts import audit_all, eventually, until
from test_jobs import add
from topologies import Cluster as RedisCluster

SERVED_S = 5.0
KEYS = {home_of(f"k{number}", 6): f"k{number}" for number in range(200)}


@asynccontextmanager
async def working(nodes: RedisCluster, name: str, functions: Any, concurrency: int = 10) -> AsyncIterator[Worker]:
    source = RedisSource(nodes.url, name, list(functions))
    worker, stop = worker_of(functions, source, concurrency=concurrency), asyncio.Event()
    running = asyncio.create_task(worker.run(stop))
    try:
        yield worker
    finally:
        stop.set()
        await running
        await source.stop()


async def test_the_library_takes_it_for_a_namespace(nodes: RedisCluster, name: str) -> None:
    jq = JQ(nodes.url, namespace=name)

    @jq.job(keep_result=True)
    async def double(number: int) -> int:
        return number * 2

    stop = asyncio.Event()
    working = asyncio.create_task(jq.worker().serve(stop))
    handles = [await double.aenqueue(number) for number in range(40)]
    assert len({number_of(handle.id, 6) for handle in handles}) > 2
    assert [await handle.aresult(timeout=60) for handle in handles] == [2 * number for number in range(40)]
    many = await asyncio.gather(*(double.options(unique=f"u{number}").aenqueue(1) for number in range(30)))
    assert {number_of(handle.id, 6) for handle in many} == set(range(6))
    stop.set()
    await working
    await double.aenqueue(1)
    assert await jq.aburst() >= 1


async def test_one_that_sleeps_is_woken_in_each_partition(nodes: RedisCluster, name: str, jq: Cluster) -> None:
    ran: dict[str, float] = {}

    async def a(argument: Any) -> None:
        ran[argument] = time.monotonic()

    async with working(nodes, name, {"a": a}):
        await eventually(lambda: _sleeps_everywhere(jq))
        for home, key in KEYS.items():
            began = time.monotonic()
            await add(jq, {"unique": key}, argument=f"{home}")
            await eventually(lambda home=home: str(home) in ran)
            assert ran[str(home)] - began < SERVED_S


async def _sleeps_everywhere(jq: Cluster) -> bool:
    counts = [await engine.redis.hlen(f"{engine.namespace}:sleepers") for engine in jq.engines]
    return all(counts)


async def test_one_that_is_busy_all_the_time_serves_each_partition(nodes: RedisCluster, name: str, jq: Cluster) -> None:
    ran: dict[int, float] = {}
    count = 0

    async def a(argument: int) -> None:
        nonlocal count
        count += 1
        ran[argument] = time.monotonic()

    await jq.queue("a", set={"route": "argument"})
    homes = {home_of(str(number), 6): number for number in range(100)}
    async with working(nodes, name, {"a": a}, concurrency=1):
        await eventually(lambda: _sleeps_everywhere(jq))  # nor has it slept there before in vain
        for _ in range(40):
            await jq.enqueue([({"name": "a"}, pack(homes[0]))] * 500)
        began = {home: time.monotonic() for home in homes}
        for number in homes.values():
            await add(jq, {}, argument=number)
        await eventually(lambda: len(ran) == 6)
        assert count < 20_000  # it was busy
        assert all(ran[homes[home]] - began[home] < SERVED_S for home in homes if home)


async def test_where_there_are_many_partitions_one_serves_those_where_it_does_not_sleep(nodes: RedisCluster) -> None:
    name = "{tmany" + str(time.time_ns()) + ":*/20}"
    ran: Counter[str] = Counter()

    async def a(argument: str) -> None:
        ran[argument] += 1

    jq = Cluster(nodes.url, name)
    await jq.load()
    keys = {home_of(f"k{number}", 20): f"k{number}" for number in range(500)}
    async with working(nodes, name, {"a": a}):
        await asyncio.sleep(0.5)
        began = time.monotonic()
        for key in keys.values():
            await add(jq, {"unique": key}, argument=key)
        await eventually(lambda: len(ran) == 20)
        assert time.monotonic() - began < SERVED_S + 1
    assert set(ran.values()) == {1}
    await jq.close()


async def test_a_running_job_is_cancelled_at_once_wherever_it_is(nodes: RedisCluster, name: str, jq: Cluster) -> None:
    began: set[str] = set()
    ended: set[str] = set()

    async def a(argument: str) -> None:
        began.add(argument)
        try:
            await asyncio.sleep(60)
        finally:
            ended.add(argument)

    async with working(nodes, name, {"a": a}):
        ids = [job for key in KEYS.values() for job in await add(jq, {"unique": key, "timeout": 600}, argument=key)]
        await eventually(lambda: len(began) == 6)
        assert await jq.cancel(ids) == ["running"] * 6
        await eventually(lambda: len(ended) == 6, 5)


@pytest.mark.faults
async def test_a_slot_moves_under_load_and_no_job_is_lost_or_runs_twice(
    nodes: RedisCluster, name: str, jq: Cluster
) -> None:
    ran: Counter[int] = Counter()
    enqueued: list[str] = []
    numbers = iter(range(10**6))

    async def a(number: int) -> None:
        ran[number] += 1

    async def load(over: asyncio.Event) -> None:
        while not over.is_set():
            number = next(numbers)
            token = f"request {number}"
            enqueued.extend(job.id for job in await jq.enqueue([({"name": "a"}, _int(number))], request=token))

    over = asyncio.Event()
    async with working(nodes, name, {"a": a}):
        loading = [asyncio.create_task(load(over)) for _ in range(4)]
        await asyncio.sleep(1)
        for partition in (0, 3):
            moved = jq.namespaces[partition]
            source = nodes.owner(moved)
            target = next(server for server in nodes.primaries if server is not source)
            await asyncio.to_thread(nodes.move, moved, target, 0.1)
            await asyncio.sleep(0.5)
            assert nodes.owner(moved) is target
        over.set()
        await asyncio.gather(*loading)
        for job in enqueued[-5:]:
            await until(jq, job, "done")
        await eventually(lambda: len(ran) == len(enqueued))
    assert set(ran.values()) == {1}
    assert {number_of(job, 6) for job in enqueued} == set(range(6))
    assert await audit_all(jq) == []


def _int(number: int) -> bytes:
    return b"\xce" + number.to_bytes(4, "big")


@pytest.mark.faults
async def test_the_other_partitions_go_on_while_a_node_is_away(nodes: RedisCluster, name: str, jq: Cluster) -> None:
    ran: set[str] = set()

    async def a(argument: str) -> None:
        ran.add(argument)

    paused = nodes.owner(jq.namespaces[1])
    here = [number for number, one in enumerate(jq.namespaces) if nodes.owner(one) is not paused]
    async with working(nodes, name, {"a": a}):
        await eventually(lambda: _sleeps_everywhere(jq))
        await asyncio.to_thread(paused.do, "CLIENT", "PAUSE", 4000, "ALL")
        for home in here:
            await add(jq, {"unique": KEYS[home]}, argument=KEYS[home])
        await eventually(lambda: len(ran) == len(here), 4)
        await add(jq, {"unique": KEYS[1]}, argument=KEYS[1])
        await eventually(lambda: KEYS[1] in ran)
