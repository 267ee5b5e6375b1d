"""Partitions that are added to a system while it works."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import pytest

from cli_support import Said, call  # noqa: F401 (fixture)
from jqmaster import JQ
from jqmaster.engine.engine import connect
from jqmaster.errors import Conflict, Invalid, NotFound, Outdated, Unavailable
from jqmaster.system import bringing, calls
from jqmaster.system.balance import Balancer, balance
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of, unpack
from jqmaster.system.resizing import add
from parts import eventually
from systems import looked
from topologies import cluster

COUNT = 2
NIL = msgpack.packb(None)


@pytest.fixture
async def engine(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    """One that knows of the first partitions alone, until it learns of more."""
    await calls.create(redis_url, namespace, COUNT)
    engine = SystemEngine(redis_url, namespace)
    await engine.partitions()
    yield engine
    await engine.close()


async def spread(engine: SystemEngine, count: int = 60) -> Counter[int]:
    made = [await engine.enqueue([({"name": "a"}, NIL)]) for _ in range(count)]
    return Counter(partition_of(one.id) for [one] in made)


class TestAdding:
    async def test_jobs_go_to_those_that_came(self, redis_url: str, namespace: str, engine: SystemEngine) -> None:
        assert set(await spread(engine, 30)) == {0, 1}
        system = await add(redis_url, namespace, 2)
        assert (system.generation, [one.state for one in system.partitions]) == (3, ["active"] * 4)
        assert set(await spread(engine)) == {0, 1, 2, 3}, "refused once, it reads the record again"
        for one in await engine.partitions():
            assert unpack(await one.redis.get(f"{one.namespace}:system")) == system

    async def test_they_are_spread_over_the_nodes(self) -> None:
        with cluster(replicas=False) as nodes:
            await calls.create(nodes.url, "{s}", 3)
            await add(nodes.url, "{s}", 4)
            seen = (await looked(nodes.url, "{s}")).document({})["partitions"]
            assert sorted(Counter(one["node"] for one in seen).values()) == [2, 2, 3]
            assert [one["problem"] for one in seen] == [None] * 7

    async def test_what_is_set_in_all_is_set_in_them(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        await engine.queue("a", paused=True)
        await engine.config(set={"done_ttl": 5})
        await engine.subscribe("w", "http://h/", {"name": "a"})
        await engine.grant("k", ["viewer"])
        await engine.constrain("c", {"argument.x": [1, "y"]}, concurrency=3, rate={"limit": 2, "period": 60})
        await engine.constrain("gone", {"name": "b"}, concurrency=3, expires_in=600)
        await engine.hold("c", 600)
        await add(redis_url, namespace, 1)
        await engine.look()
        engines = await engine.partitions()
        assert await bringing.behind(engines, {}) == [[], [], []]
        [[first], [new]] = [(await engines[at].constraints(["c"])).documents for at in (0, 2)]
        assert new["hold_ms"] > 0 and new["match"] == first["match"] and "share" in new
        assert new["rate"] == first["rate"]

    async def test_what_is_set_by_who_does_not_know_of_them_is_set_in_them(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        await add(redis_url, namespace, 1)
        assert len(await engine.partitions()) == COUNT
        await engine.queue("late", paused=True)
        assert (await (await engine.partitions())[2].queues(["late"])).documents[0]["paused"]
        other = SystemEngine(redis_url, namespace)
        await other.partitions()
        await add(redis_url, namespace, 1)
        await other.constrain("c", {"name": "a"}, concurrency=3)
        assert (await (await other.partitions())[3].constraints(["c"])).documents
        await other.close()

    async def test_who_repeats_what_broke_off_completes_it(
        self, redis_url: str, namespace: str, engine: SystemEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def breaks(*_: Any) -> None:
            raise Unavailable("broken off")

        with monkeypatch.context() as patched:
            patched.setattr(bringing, "sync", breaks)
            with pytest.raises(Unavailable, match="broken off"):
                await add(redis_url, namespace, 2)
        assert [one.state for one in (await calls.read(redis_url, namespace)).partitions[2:]] == ["joining"] * 2
        assert set(await spread(engine)) == {0, 1}
        with pytest.raises(Conflict, match="2 partitions are being added: repeat that first"):
            await add(redis_url, namespace, 1)
        names = (await calls.read(redis_url, namespace)).partitions
        system = await add(redis_url, namespace, 2)
        assert [one.namespace for one in system.partitions] == [one.namespace for one in names]
        assert set(await spread(engine)) == {0, 1, 2, 3}

    async def test_of_two_who_add_at_once_one_does(self, redis_url: str, namespace: str, engine: SystemEngine) -> None:
        told = await asyncio.gather(*(add(redis_url, namespace, 1) for _ in range(4)), return_exceptions=True)
        assert all(isinstance(one, Conflict) for one in told if isinstance(one, BaseException))
        if (await calls.read(redis_url, namespace)).joining:
            await add(redis_url, namespace, 1)
        assert set(await spread(engine)) <= set(range(6))
        assert (await calls.read(redis_url, namespace)).joining == []

    async def test_too_many_and_others_are_refused(self, redis_url: str, namespace: str, engine: SystemEngine) -> None:
        with pytest.raises(Invalid, match="got 302"):
            await add(redis_url, namespace, 300)
        with pytest.raises(NotFound):
            await add(redis_url, "{none}", 1)
        with pytest.raises(Conflict, match="is a partition of the system"):
            await add(redis_url, (await engine.partitions())[1].namespace, 1)


class TestWhoKnowsAnEarlierRecord:
    async def test_repeats_a_request_where_it_was(self, redis_url: str, namespace: str, engine: SystemEngine) -> None:
        jobs: Any = [({"name": "a"}, NIL)] * 2
        first = {token: await engine.enqueue(jobs, request=token) for token in "abcdefgh"}
        await add(redis_url, namespace, 3)
        for token, made in first.items():
            assert [one.id for one in await engine.enqueue(jobs, request=token)] == [one.id for one in made]

    async def test_asks_for_jobs_of_those_that_came(self, redis_url: str, namespace: str, engine: SystemEngine) -> None:
        await add(redis_url, namespace, 1)
        other = SystemEngine(redis_url, namespace)
        [made] = await (await other.partitions())[2].enqueue([({"name": "a"}, NIL)])
        await other.close()
        [document] = await engine.get(made.id)
        assert document and document["id"] == made.id
        with pytest.raises(NotFound, match="no partition 3"):
            await engine.history(made.id[:14] + "03")

    async def test_reads_it_where_it_is_if_partition_0_lost_it(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        before = (await calls.read(redis_url, namespace)).packed()
        await add(redis_url, namespace, 1)
        async with connect(redis_url) as redis:
            await redis.mset({f"{namespace}:system": before, f"{namespace}:generation": 1})
        for _ in range(30):
            await spread(engine, 1)
        assert engine.record and engine.record.generation == 3
        system = await add(redis_url, namespace, 1)
        assert system.generation == 5, "others had the later one: what it says is not said otherwise"
        assert system.partitions[:3] == engine.record.partitions

    async def test_is_told_where_nobody_has_a_later_one(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        async with connect(redis_url) as redis:
            for one in await engine.partitions():
                await redis.set(f"{one.namespace}:generation", 7)
        with pytest.raises(Outdated, match="this is generation 7 of the system, the call was routed by 1"):
            await engine.enqueue([({"name": "a"}, NIL)])
        assert (await engine.queues()).documents == []

    async def test_does_not_balance(self, redis_url: str, namespace: str, engine: SystemEngine) -> None:
        await engine.constrain("c", {"name": "a"}, concurrency=6)
        old = Balancer(await engine.partitions(), generation=1, busy_s=0.02)
        for _ in range(4):
            await old.turn()
        await add(redis_url, namespace, 1)
        with pytest.raises(Outdated):
            await old.turn()
        await engine.look()
        new = Balancer(await engine.partitions(), generation=3, busy_s=0.02)
        shares: list[int] = []
        while shares != [2, 2, 2]:
            with suppress(Outdated):
                await asyncio.sleep(min(await new.turn(), 0.1))
            told = [(await one.constraints(["c"])).documents[0] for one in await engine.partitions()]
            shares = [one["share"]["concurrency"] for one in told]
            assert sum(shares) <= 6


async def test_processes_go_on_with_those_that_come(redis_url: str, namespace: str, engine: SystemEngine) -> None:
    """A worker, which carries mail and balances; one that only balances; a program that enqueues."""
    jq, ran = JQ(redis_url, system=namespace), Counter[int]()

    @jq.job(keep_result=True)
    async def double(number: int) -> int:
        ran[number] += 1
        return number * 2

    await engine.constrain("c", {"name": "*double"}, concurrency=6)
    stop = asyncio.Event()
    task = asyncio.create_task(jq.worker(concurrency=3).serve(stop))
    alone = asyncio.create_task(balance(engine))
    handles = [await double.aenqueue(number) for number in range(20)]
    await add(redis_url, namespace, 2)
    handles += [await double.aenqueue(number) for number in range(20, 80)]
    last = await double.options(depends=[handles[-1]]).aenqueue(80)
    assert await last.aresult(60) == 160
    assert [await one.aresult(60) for one in handles] == [number * 2 for number in range(80)]
    assert set(ran.values()) == {1}
    assert {partition_of(one.id) for one in handles} == {0, 1, 2, 3}
    await eventually(lambda: engine.record and len(engine.record.partitions) == 4)
    alone.cancel()
    await asyncio.wait({alone})
    stop.set()
    await task
    jq.close()


PROGRAM = """
import os
from jqmaster import JQ

jq = JQ(os.environ["JQ_REDIS"], system=os.environ["JQ_SYSTEM"])

@jq.job(keep_result=True)
async def double(number: int) -> int:
    return number * 2
"""


async def test_a_worker_process_runs_jobs_of_those_that_come(
    redis_url: str, namespace: str, engine: SystemEngine, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    told = {**os.environ, "JQ_REDIS": redis_url, "JQ_SYSTEM": namespace, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "jqmaster", "work", "program:jq", "--system", namespace]
    worker = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, env=told)
    try:
        ids: list[str] = []
        for number in range(120):
            if number == 40:
                await add(redis_url, namespace, 2)
            [made] = await engine.enqueue([({"name": "double", "keep_result": True}, msgpack.packb([number]))])
            ids.append(made.id)

        async def all_done() -> bool:
            states = [one["status"] for one in await engine.get(*ids) if one]
            assert set(states) <= {"queued", "running", "done"}, Counter(states)
            return states == ["done"] * len(ids)

        await eventually(all_done, 60)
        assert {partition_of(one) for one in ids} == {0, 1, 2, 3}
    finally:
        worker.terminate()
        assert await asyncio.wait_for(worker.wait(), 60) == 0


def test_the_command_says_what_there_is_then(call: Callable[..., Said], redis_url: str, namespace: str) -> None:
    where = ["--redis", redis_url, "--namespace", namespace]
    call("system", "create", "2", *where)
    said = call("system", "add", "1", *where)
    assert (said.code, said.out) == (0, f"{namespace} has 3 partitions, generation 3\n")
    shown = call("system", *where, "--json").document
    assert [one["state"] for one in shown["partitions"]] == ["active"] * 3
    assert [one["behind"] for one in shown["partitions"]] == [[]] * 3
    many = call("system", "add", "255", *where)
    assert many.code == 2 and "254" in many.err
