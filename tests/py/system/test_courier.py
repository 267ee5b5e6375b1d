"""Couriers: what they carry, and what stops them and what does not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial

import msgpack
import pytest

from jqmaster.engine.engine import Engine
from jqmaster.errors import JQError
from jqmaster.system import calls, courier
from jqmaster.system.courier import MOST_SERVED, Courier
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import System
from parts import eventually
from systems import walked
from topologies import cluster

COUNT = 4
NIL = msgpack.packb(None)


@pytest.fixture
async def system(redis_url: str, namespace: str) -> System:
    return await calls.create(redis_url, namespace, COUNT)


@pytest.fixture
async def engine(redis_url: str, namespace: str, system: System) -> AsyncIterator[SystemEngine]:
    engine = SystemEngine(redis_url, namespace)
    yield engine
    await engine.close()


@contextlib.asynccontextmanager
async def running(*couriers: Courier) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(courier.run()) for courier in couriers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            assert task.cancelled(), task.exception()


async def put(engine: SystemEngine, number: int, **spec: object) -> str:
    """A job of one partition."""
    [made] = await (await engine.partitions())[number].enqueue([({"name": "a", **spec}, NIL)])
    return made.id


async def finish(engine: SystemEngine, number: int, job_id: str) -> None:
    there = (await engine.partitions())[number]
    [job] = (await there.pick("w", "a")).jobs
    assert job.id == job_id
    await there.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL)])


async def until(fact: Callable[[], Awaitable[object]], timeout_s: float = 60) -> None:
    async with asyncio.timeout(timeout_s):
        while True:
            if await fact():
                return
            await asyncio.sleep(0.005)


async def comes_to(engine: SystemEngine, job_id: str, status: str, timeout_s: float = 60) -> None:
    async def has_come() -> bool:
        return [one and one["status"] for one in await engine.get(job_id)] == [status]

    await until(has_come, timeout_s)


async def is_known(engine: SystemEngine, job_id: str) -> bool:
    """Whether the other partition said what it knows of what the job waits for."""
    return "status" in (await engine.explain(job_id))["elsewhere"][0]


async def asleep(engine: SystemEngine, couriers: int) -> None:
    """Until so many sleep at each partition."""
    for one in await engine.partitions():

        async def are_asleep(one: Engine = one) -> bool:
            return int(await one.redis.zcard(f"{one.namespace}:asleep:mail")) >= couriers

        await until(are_asleep)


class TestCourier:
    async def test_it_is_woken_and_carries_what_there_is(self, engine: SystemEngine) -> None:
        async with running(Courier(engine)):
            await asleep(engine, 1)
            for _ in range(3):
                parent = await put(engine, 1)
                child = await put(engine, 2, name="b", depends=[parent])
                await finish(engine, 1, parent)
                await comes_to(engine, child, "queued", 3)  # sooner than anything looks without being woken

    async def test_several_share_the_work(self, engine: SystemEngine) -> None:
        async with running(Courier(engine, "one"), Courier(engine, "two")):
            await asleep(engine, 2)
            for _ in range(5):
                parents = [await put(engine, number) for number in range(COUNT)]
                child = await put(engine, 0, name="b", depends=parents)
                for number, parent in enumerate(parents):
                    await finish(engine, number, parent)
                await comes_to(engine, child, "queued")
            assert await (await engine.partitions())[0].audit_all() == []

    async def test_one_that_ends_leaves_its_mail_to_another(self, engine: SystemEngine) -> None:
        async with running(Courier(engine, "one")):
            await asleep(engine, 1)
        parent = await put(engine, 1)
        child = await put(engine, 2, name="b", depends=[parent])
        await finish(engine, 1, parent)
        async with running(Courier(engine, "two")):
            await comes_to(engine, child, "queued", 3)

    async def test_a_lost_marker_is_made_up_for(self, engine: SystemEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("jqmaster.system.courier.NET_S", 0.2)
        async with running(Courier(engine)):
            await asleep(engine, 1)
            for one in await engine.partitions():
                await one.redis.delete(f"{one.namespace}:asleep:mail")
            child = await put(engine, 1, name="b", depends=[await put(engine, 0)])
            await until(lambda: is_known(engine, child))

    async def test_partitions_that_know_different_records_get_the_later_one(
        self, engine: SystemEngine, system: System
    ) -> None:
        """What follows a job is made by the same record here and there."""
        first, *_, last = await engine.partitions()
        key = next(key for key in map(str, range(100)) if system.home(key.encode()) == COUNT - 1)
        async with running(Courier(engine)):
            for number, ahead in enumerate((first, last), 1):
                await ahead.system(system.routed("some", "queue" if number % 2 else None).packed())
                system = replace(system, generation=system.generation + 1)
                await put(engine, 0, name="a")
                [job] = (await first.pick("w", "a")).jobs
                follow = [({"name": "b", "unique": key}, NIL)]
                await first.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL, follow)])

                async def has_come() -> bool:
                    jobs = (await last.pick("w", "b")).jobs
                    for one in jobs:
                        await last.finish("w", [({"id": one.id, "token": one.token, "type": "success"}, NIL)])
                    return bool(jobs)

                await until(has_come)
                assert (await first.system())[0] == (await last.system())[0] == system.generation

    async def test_a_small_system_is_served_whole_a_large_one_in_shares(
        self, engine: SystemEngine, redis_url: str, namespace: str
    ) -> None:
        assert await Courier(engine).served() == list(range(COUNT))
        other = SystemEngine(redis_url, f"{namespace[:-1]}large}}")
        await calls.create(redis_url, other.root, 20)
        shares = [await Courier(other, f"c{number}").served() for number in range(30)]
        assert {len(share) for share in shares} == {MOST_SERVED}
        assert {number for share in shares for number in share} == set(range(20))
        await other.close()

    async def test_it_says_when_there_is_no_system(self, redis_url: str) -> None:
        engine = SystemEngine(redis_url, "{nothing}")
        with pytest.raises(JQError):
            await Courier(engine).run()
        await engine.close()


@pytest.mark.faults
@pytest.mark.timeout(180)
async def test_a_partition_that_hangs_holds_up_no_other() -> None:
    with cluster(3, timeout_ms=60_000) as nodes:  # it is not given up
        system = await calls.create(nodes.url, "{jq}", 3)
        engine = SystemEngine(nodes.url, "{jq}")
        places = [nodes.owner(one.namespace) for one in system.partitions]
        async with running(Courier(engine)):
            await asleep(engine, 1)
            parents = [await put(engine, number) for number in range(2)]
            hung = await put(engine, 2, name="b")
            assert places[2].process
            await put(engine, 1, name="c", depends=[hung])
            os.kill(places[2].process.pid, signal.SIGSTOP)
            try:
                child = await put(engine, 1, name="b", depends=[parents[0]])
                stuck = await put(engine, 0, name="b", depends=[hung])
                await finish(engine, 0, parents[0])
                await comes_to(engine, child, "queued", 60)
                document = await engine.explain(stuck)
                assert document["elsewhere"] == [{"id": hung, "partition": 2}]
            finally:
                os.kill(places[2].process.pid, signal.SIGCONT)
            await until(lambda: is_known(engine, stuck), 60)
        await engine.close()


COURIER = """
import asyncio, sys
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
asyncio.run(Courier(SystemEngine(*sys.argv[1:])).run())
"""


@pytest.mark.faults
@pytest.mark.timeout(180)
async def test_couriers_that_are_killed_lose_nothing(engine: SystemEngine, redis_url: str, namespace: str) -> None:
    """Processes, killed with what they carry. A child must become ready once its parents are done, and not before; what
    follows a job comes once."""
    chance = random.Random(7)
    children: dict[str, list[str]] = {}
    done: set[str] = set()
    killed = 0
    courier = None
    for _ in range(12):
        parents = [await put(engine, number) for number in range(COUNT)]
        for number in range(COUNT):
            depends = chance.sample(parents, 2)
            children[await put(engine, number, name="b", depends=depends)] = depends
        courier = courier or await asyncio.create_subprocess_exec(sys.executable, "-c", COURIER, redis_url, namespace)
        await asyncio.sleep(chance.uniform(0.2, 1.5))
        for number in range(COUNT):
            if chance.random() < 0.9:
                for job in (await (await engine.partitions())[number].pick("w", "a", 100)).jobs:
                    how = {"id": job.id, "token": job.token, "type": "success"}
                    follow = [({"name": "f", "unique": job.id}, NIL)]
                    await (await engine.partitions())[number].finish("w", [(how, NIL, follow)])
                    done.add(job.id)
        await asyncio.sleep(chance.uniform(0, 0.02))
        if chance.random() < 0.7:
            courier.kill()
            await courier.wait()
            courier, killed = None, killed + 1
        for document in await engine.get(*children):
            assert document and (document["status"] == "blocked" or done.issuperset(children[document["id"]]))
    if courier:
        courier.kill()
        await courier.wait()
    assert killed > 3
    async with running(Courier(engine)):
        for child, depends in children.items():
            if done.issuperset(depends):
                await comes_to(engine, child, "queued", 30)

        async def all_followed() -> bool:
            return {one["unique"] for one in await walked(partial(engine.jobs, {"queue": "f"}), 100)} == done

        await until(all_followed)
    assert len(await walked(partial(engine.jobs, {"queue": "f"}), 100)) == len(done)
    for one in await engine.partitions():
        assert await one.audit_all() == []


async def test_an_oversight_in_one_part_of_the_upkeep_ends_none(
    engine: SystemEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    async def fails(what: str, *_: object) -> None:
        begun.append(what)
        if begun.count(what) < 3:
            raise KeyError(what)
        await asyncio.Event().wait()

    monkeypatch.setattr(courier, "AGAIN_S", 0.01)
    monkeypatch.setattr(courier, "balance", partial(fails, "limits"))
    monkeypatch.setattr(courier, "keep_in_line", partial(fails, "settings"))
    monkeypatch.setattr(Courier, "run", staticmethod(partial(fails, "mail")))
    tending = asyncio.create_task(courier.tend(engine, "c"))
    await eventually(lambda: sorted(begun) == ["limits"] * 3 + ["mail"] * 3 + ["settings"] * 3)
    others = asyncio.all_tasks() - {tending}
    tending.cancel()
    await asyncio.wait({tending})
    assert asyncio.all_tasks() <= others
