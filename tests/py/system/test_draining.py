"""Partitions that are taken out of a system: drained, or given up."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import msgpack
import pytest

from cli_support import Said, call  # noqa: F401 (fixture)
from jqmaster import JQ
from jqmaster.errors import Conflict, Invalid, JQError, NotFound, Unavailable
from jqmaster.system import calls, looking, moving, partitions, resizing
from jqmaster.system.balance import Balancer
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from jqmaster.system.resizing import add, drain, forget, rebalance
from parts import eventually
from systems import walked
from topologies import cluster

COUNT = 3
NIL = msgpack.packb(None)


@pytest.fixture(autouse=True)
def clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """All have one clock, and learn at once."""
    monkeypatch.setattr(moving, "CLOCKS_S", 0.0)
    monkeypatch.setattr(resizing, "LEARNT_S", 0.3)
    monkeypatch.setattr(resizing, "SHARE_S", 0.1)
    monkeypatch.setattr(partitions, "LOOK_S", 0.1)


@pytest.fixture
async def engine(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    await calls.create(redis_url, namespace, COUNT)
    engine = SystemEngine(redis_url, namespace)
    await engine.config(set={"request_ttl": 1})
    yield engine
    await engine.close()


async def put(engine: Any, **spec: Any) -> str:
    [made] = await engine.enqueue([({"name": "a", **spec}, NIL)])
    return str(made.id)


async def drained(engine: SystemEngine, number: int, **more: Any) -> None:
    """Until it is closed, and the engine knows. What it has to tell is carried meanwhile."""
    carrying = asyncio.create_task(Courier(engine).run())

    async def is_closed() -> bool:
        return (await drain(engine.url, engine.root, number, **more)).state == "closed"

    await eventually(is_closed, 60)
    carrying.cancel()
    await asyncio.wait({carrying})
    await engine.look()


class TestDraining:
    async def test_it_takes_nothing_more_and_is_closed_when_it_has_nothing(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        one = (await engine.partitions())[1]
        waits, kept = [await put(one) for _ in range(2)]
        found = await drain(redis_url, namespace, 1)
        assert (found.state, found.unended, found.ended) == ("draining", 2, 0)
        assert set(Counter(found.moved.system.buckets)) == {0, 2}
        made = [await put(engine, unique=f"k{number}") for number in range(10)]
        made += [await put(engine) for _ in range(10)] + [await put(engine, depends=[waits], if_failed="run")]
        assert {partition_of(job) for job in made} == {0, 2}
        for job in (await one.pick("w", "a", 2)).jobs:
            await one.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL)])
        await asyncio.sleep(1.1)  # request_ttl
        found = await drain(redis_url, namespace, 1)
        assert (found.state, found.unended, found.ended) == ("draining", 0, 2)
        assert [job and job["status"] for job in await engine.get(waits, kept)] == ["done"] * 2
        await drained(engine, 1, discard=True)
        with pytest.raises(NotFound, match=r"no such job: \w+, partition 1 is closed"):
            await engine.get(waits)
        assert (await drain(redis_url, namespace, 1)).state == "closed"
        jobs = await walked(engine.jobs, 5)
        assert {job["id"] for job in jobs} == set(made)
        assert await engine.audit_all() == []

    async def test_it_is_not_closed_while_others_wait_for_what_follows_their_jobs(self, engine: SystemEngine) -> None:
        """It may have made that: nobody else is asked before it says so."""
        engines = await engine.partitions()
        assert engine.record is not None
        key = next(key for key in map(str, range(100)) if engine.record.home(key.encode()) == 1)
        await put(engines[0])
        [job] = (await engines[0].pick("w", "a")).jobs
        follow = [({"name": "b", "unique": key}, NIL)]
        await engines[0].finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL, follow)])
        [(to, letter)] = (await engines[0].outbox("c")).letters
        assert to == 1
        await engines[1].deliver([letter])
        [made] = (await engines[1].pick("w", "b")).jobs
        await engines[1].finish("w", [({"id": made.id, "token": made.token, "type": "success"}, NIL)])
        await asyncio.sleep(1.1)  # request_ttl
        for _ in range(3):
            found = await drain(engine.url, engine.root, 1, discard=True)
            assert (found.state, found.unended, found.has_mail) == ("draining", 0, True)
        await drained(engine, 1, discard=True)
        assert not (await engine.pick("w", "b")).jobs

    async def test_one_that_waits_for_its_jobs_goes_on(self, engine: SystemEngine) -> None:
        """Before it is closed all that it has to tell is told; afterwards its jobs count as done."""
        engines = await engine.partitions()
        first = await put(engines[1])
        child = await put(engines[2], depends=[first])
        [job] = (await engines[1].pick("w", "a")).jobs
        await engines[1].finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL)])
        assert not (await engines[2].pick("w", "a")).jobs
        carrying = asyncio.create_task(Courier(engine).run())
        await drained(engine, 1, discard=True)
        assert [one.id for one in (await engines[2].pick("w", "a")).jobs] == [child]
        late = await put(engine, queue="late", depends=[first])

        async def started() -> list[str]:
            return [one.id for one in (await engine.pick("w", "late")).jobs]

        assert await eventually(started) == [late]
        carrying.cancel()

    async def test_all_operations_go_on_without_it(self, engine: SystemEngine) -> None:
        await drained(engine, 1)
        engines = await engine.partitions()
        for one in (engines[0], engines[2]):
            await put(one)
        assert [one["queued"] for one in (await engine.queues()).documents] == [2]
        await engine.queue("a", paused=True)
        assert (await engines[1].queues(["a"])).documents == [], "nothing is set there any more"
        await engine.queue("a", paused=False)
        await engine.constrain("c", {"name": "a"}, concurrency=6)
        assert engine.record is not None
        live = [engines[0], engines[2]]
        balancer = Balancer(live, generation=engine.record.generation, numbers=[0, 2])
        shares: list[int] = []
        while sum(shares) < 6:
            with suppress(JQError):
                await asyncio.sleep(min(await balancer.turn(), 0.1))
            told = [(await one.constraints(["c"])).documents[0] for one in live]
            shares = [one["share"]["concurrency"] for one in told]
        assert shares == [3, 3]
        assert len((await engine.pick("w", "a", 2)).jobs) >= 1
        assert (await engine.kick_queue("a"))[0] >= 1
        cursor, changed = await engine.cancel_where({"queue": "a"})
        assert (cursor, changed) == ("2:", 1)
        assert await engine.cancel_where({"queue": "a"}, cursor=cursor) == ("", 1)
        assert len((await engine.trail()).documents) > 0
        system = await add(engine.url, engine.root, 1)
        assert [one.state for one in system.partitions] == ["active", "closed", "active", "active"]
        assert set(Counter((await rebalance(engine.url, engine.root)).system.buckets)) == {0, 2, 3}

    async def test_processes_go_on(self, redis_url: str, namespace: str, engine: SystemEngine) -> None:
        """A worker, with mail and limits, and a program that enqueues."""
        jq, ran = JQ(redis_url, system=namespace), Counter[int]()

        @jq.job(keep_result=True)
        async def double(number: int) -> int:
            ran[number] += 1
            return number * 2

        await engine.constrain("c", {"name": "*double"}, concurrency=6)
        stop = asyncio.Event()
        task = asyncio.create_task(jq.worker(concurrency=3).serve(stop))
        draining = asyncio.create_task(drained(engine, 1, discard=True))
        handles = []
        while not draining.done():
            handles.append(await double.aenqueue(len(handles)))
            assert await handles[-1].aresult(60) == 2 * (len(handles) - 1)
        await draining
        later = [await double.aenqueue(number) for number in range(1000, 1040)]
        assert [await one.aresult(60) for one in later] == [2 * number for number in range(1000, 1040)]
        assert set(ran.values()) == {1}
        assert {partition_of(one.id) for one in later} == {0, 2}
        stop.set()
        await task
        jq.close()

    async def test_what_stands_in_the_way_is_said(
        self, redis_url: str, namespace: str, engine: SystemEngine, call: Callable[..., Said]
    ) -> None:
        with pytest.raises(Conflict, match="partition 0 has the record of the system: it stays"):
            await drain(redis_url, namespace, 0)
        with pytest.raises(Invalid, match="0 to 2, got 3"):
            await drain(redis_url, namespace, 3)
        await put((await engine.partitions())[2])
        where = ["--redis", redis_url, "--namespace", namespace]
        said = await asyncio.to_thread(call, "system", "drain", "2", *where)
        assert said.code == 1
        assert said.out.startswith("partition 2 is draining, 1 job not ended\n341 buckets moved, ")
        said = await asyncio.to_thread(call, "system", *where, "--json")
        assert [one["state"] for one in said.document["partitions"]] == ["active", "active", "draining"]
        assert said.code == 0


class TestForgetting:
    async def test_one_that_answers_is_not_forgotten(
        self, redis_url: str, namespace: str, engine: SystemEngine, call: Callable[..., Said]
    ) -> None:
        with pytest.raises(Conflict, match="partition 1 answers: `system drain 1` loses nothing"):
            await forget(redis_url, namespace, 1)
        with pytest.raises(Conflict, match="it stays"):
            await forget(redis_url, namespace, 0)
        said = await asyncio.to_thread(call, "system", "forget", "1", "--redis", redis_url, "--namespace", namespace)
        assert said.code == 2 and "would be lost: its jobs" in said.err and "341 of 1024 buckets" in said.err

    async def test_what_depends_on_its_jobs_takes_them_for_failed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calls, "ANSWER_S", 1.0)
        with cluster(3) as nodes:
            for one in nodes.servers:
                one.do("CONFIG", "SET", "cluster-require-full-coverage", "no")
            await calls.create(nodes.url, "{f}", 3)
            engine = SystemEngine(nodes.url, "{f}")
            engines = await engine.partitions()
            lost = [await put(engines[1]) for _ in range(2)]
            fails = await put(engines[0], depends=[lost[0]], if_failed="fail")
            runs = await put(engines[2], depends=[lost[1]], if_failed="run")
            await Courier(engine).carry_all()
            await engine.schedule("s", {"name": "a"}, every=3600)
            node = nodes.owner(engines[1].namespace)
            assert node not in [nodes.owner(engines[at].namespace) for at in (0, 2)]
            node.kill()
            with pytest.raises(Unavailable):
                await rebalance(nodes.url, "{f}")
            said: list[str] = []
            await engines[0].constrain("c", {"name": "b"}, concurrency=3, shared=True)
            system = await forget(nodes.url, "{f}", 1, say=said.append)
            assert said == ["waiting 0.1 s until its share of limits is over"]
            assert [one.state for one in system.partitions] == ["active", "lost", "active"]
            assert set(system.buckets) == {0, 2} and not system.former
            assert await forget(nodes.url, "{f}", 1) == system, "safe to repeat"
            await engine.look()
            carrying = asyncio.create_task(Courier(engine).run())
            with pytest.raises(NotFound, match="partition 1 is lost"):
                await engine.get(lost[0])

            async def states() -> bool:
                found = [one and one["status"] for one in await engine.get(fails, runs)]
                return found == ["error", "queued"]

            await eventually(states)
            chance = random.Random(1)
            ids = [await put(engine, unique=str(chance.random())) for _ in range(20)]
            assert {partition_of(one) for one in ids} == {0, 2}
            assert len(await walked(engine.jobs, 5)) == 22
            found = await looking.look(engine)
            assert found.missing == [] and [one.problem(system.generation) for one in found.partitions] == [""] * 3
            carrying.cancel()
            await engine.close()
