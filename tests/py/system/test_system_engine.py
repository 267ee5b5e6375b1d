"""A system's operations as if it were one namespace."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import msgpack
import pytest

from jqmaster import JQ
from jqmaster.engine.calls import pack
from jqmaster.engine.scripts import builtin
from jqmaster.errors import Conflict, Invalid, JQError, NotFound, Unavailable
from jqmaster.system import calls
from jqmaster.system.engine import OPERATIONS, SystemEngine
from jqmaster.system.record import System, partition_of
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


async def put(engine: SystemEngine, count: int = 1, **spec: Any) -> list[str]:
    """Ids of jobs that were enqueued one by one, so that partitions are chosen for each."""
    made = [await engine.enqueue([({"name": "a", **spec}, msgpack.packb(number))]) for number in range(count)]
    return [one.id for [one] in made]


async def spread(engine: SystemEngine, **spec: Any) -> list[str]:
    """An id of each partition, by its number."""
    found: dict[int, str] = {}
    while len(found) < COUNT:
        [job] = await put(engine, **spec)
        found[partition_of(job)] = job
    return [found[number] for number in range(COUNT)]


class TestEnqueue:
    async def test_jobs_go_to_all_partitions_which_their_ids_name(self, engine: SystemEngine, system: System) -> None:
        ids = await put(engine, 60)
        assert set(Counter(map(partition_of, ids))) == set(range(COUNT))
        for number, one in enumerate(await engine.partitions()):
            assert one.namespace == system.partitions[number].namespace
            assert {job["id"] for job in (await one.jobs()).documents} == {
                job for job in ids if partition_of(job) == number
            }
        assert {len(job) for job in ids} == {14, 16}

    async def test_a_call_without_links_is_whole_or_nothing(self, engine: SystemEngine) -> None:
        for _ in range(10):
            made = await engine.enqueue([({"name": "a"}, NIL)] * 20)
            assert len({partition_of(one.id) for one in made}) == 1
        with pytest.raises(Invalid) as refused:
            await engine.enqueue([({"name": "a"}, NIL), ({"name": "a", "priority": "x"}, NIL)])
        assert refused.value.path == "jobs[1].priority"
        assert sum(one["queued"] for one in (await engine.queues()).documents) == 200

    async def test_a_unique_key_has_one_job_wherever_it_comes_from(self, engine: SystemEngine, system: System) -> None:
        keys = [f"key {number}" for number in range(30)]
        jobs = [({"name": "a", "unique": key}, NIL) for key in keys]
        made = await engine.enqueue(jobs)
        assert [partition_of(one.id) for one in made] == [system.home(key.encode()) for key in keys]
        assert all(one.created for one in made)
        again = await engine.enqueue(jobs[::-1])
        assert [(one.id, one.created) for one in again] == [(one.id, False) for one in made[::-1]]
        assert await engine.free(keys[3]) == made[3].id
        with pytest.raises(NotFound):
            await engine.free(keys[3])
        assert (await engine.enqueue([jobs[3]]))[0].created

    async def test_what_depends_on_others_is_with_them(self, engine: SystemEngine, system: System) -> None:
        for parent in await spread(engine):
            [child] = await put(engine, depends=[parent])
            assert partition_of(child) == partition_of(parent)
        key = next(f"k{number}" for number in range(1000) if system.home(f"k{number}".encode()) == 2)
        specs: list[dict[str, Any]] = [
            {"name": "far", "unique": next(f"x{n}" for n in range(1000) if system.home(f"x{n}".encode()) == 1)},
            {"name": "first"},
            {"name": "second", "depends": [1]},
            {"name": "third", "depends": [2], "unique": key},
        ]
        far, first, second, third = await engine.enqueue([(spec, NIL) for spec in specs])
        assert [partition_of(one.id) for one in (far, first, second, third)] == [1, 2, 2, 2]
        documents = await engine.get(second.id, third.id)
        assert [one and one["depends"] for one in documents] == [[first.id], [second.id]]

    async def test_what_depends_on_several_is_with_the_first_or_with_its_key(
        self, engine: SystemEngine, system: System
    ) -> None:
        one, other, *_ = await spread(engine)
        for ids in ([one, other], [other, one]):
            [child] = await put(engine, depends=ids)
            assert partition_of(child) == partition_of(ids[0])
        key = next(f"k{number}" for number in range(1000) if system.home(f"k{number}".encode()) == 3)
        [child] = await put(engine, depends=[one], unique=key)
        assert partition_of(child) == 3

    async def test_what_would_have_to_be_in_two_places_is_refused(self, engine: SystemEngine, system: System) -> None:
        keys = [next(f"k{n}" for n in range(1000) if system.home(f"k{n}".encode()) == home) for home in (1, 3)]
        jobs = [({"name": "a", "unique": keys[0]}, NIL), ({"name": "b", "unique": keys[1], "depends": [0]}, NIL)]
        with pytest.raises(Invalid, match="it belongs to partition 3, and jobs") as refused:
            await engine.enqueue(jobs)
        assert refused.value.path == "jobs[1].unique"
        [one] = await put(engine)
        with pytest.raises(NotFound, match="no partition 200") as missing:
            await put(engine, depends=[one[:14] + "c8"])
        assert missing.value.path == "jobs[0].depends[0]"
        with pytest.raises(NotFound):
            await put(engine, depends=["f" * 14])

    async def test_a_problem_names_the_job_of_the_whole_call(self, engine: SystemEngine) -> None:
        jobs = [({"name": "a", "unique": f"k{number}"}, NIL) for number in range(20)]
        jobs[13][0]["max_retry"] = -1
        with pytest.raises(Invalid) as refused:
            await engine.enqueue(jobs)
        assert refused.value.path == "jobs[13].max_retry"

    async def test_a_request_that_is_repeated_enqueues_nothing(self, engine: SystemEngine) -> None:
        jobs = [({"name": "a"}, NIL), *(({"name": "a", "unique": f"k{number}"}, NIL) for number in range(9))]
        for token in ("one", "other"):
            made = await engine.enqueue(jobs, request=token)
            for _ in range(5):
                assert await engine.enqueue(jobs, request=token) == made
        assert [one["queued"] for one in (await engine.queues()).documents] == [11]


class TestByIds:
    async def test_answers_come_in_the_order_asked(self, engine: SystemEngine) -> None:
        ids = (await spread(engine))[::-1] * 3
        unknown = [job[:13] + "f" + job[14:] for job in ids[:COUNT]]
        found = await engine.get(*ids, *unknown)
        assert [one and one["id"] for one in found] == [*ids, *[None] * COUNT]
        assert await engine.watch(*ids) == ["queued"] * len(ids)
        assert await engine.track(ids[:COUNT]) == ["queued"] * COUNT
        assert await engine.change([({"id": job, "priority": 3}, b"") for job in ids]) == ["queued"] * len(ids)
        assert {one["priority"] for one in await engine.get(*ids) if one} == {3}
        assert await engine.cancel(ids[:COUNT]) == ["queued"] * COUNT
        assert await engine.retry(ids[:COUNT]) == ["queued"] * COUNT
        assert await engine.kick(ids[:COUNT]) == ["CONFLICT"] * COUNT
        assert await engine.discard(ids[:COUNT]) == ["queued"] * COUNT

    async def test_one_job_is_asked_for_where_it_is(self, engine: SystemEngine) -> None:
        for job in await spread(engine):
            assert (await engine.explain(job))["id"] == job
            assert (await engine.history(job))["events"]
            assert await engine.result(job) == ("queued", None)
            [child] = await put(engine, depends=[job])
            assert await engine.depend(child, remove=[job]) == "queued"

    async def test_a_partition_that_there_is_not_has_no_job(self, engine: SystemEngine) -> None:
        [job] = await put(engine)
        with pytest.raises(NotFound, match="no partition 4") as missing:
            await engine.get(job, job[:14] + "04")
        assert missing.value.path == "ids[1]"
        with pytest.raises(NotFound):
            await engine.result(job[:14] + "ff")

    async def test_all_or_nothing_is_within_one(self, engine: SystemEngine) -> None:
        one, other, *_ = await spread(engine)
        with pytest.raises(Invalid) as refused:
            await engine.cancel([one, other], atomic=True)
        assert refused.value.path == "atomic"
        with pytest.raises(Conflict):
            await engine.cancel([one], atomic=True)
            await engine.cancel([one], atomic=True, force=False, dependents="refuse")
            raise Conflict("cancelled before")  # which is no conflict

    async def test_a_problem_with_one_of_a_list_names_it_by_its_place_there(self, engine: SystemEngine) -> None:
        """As the whole call has it, not the part of it that goes to a partition."""
        free, awaited, *_ = await spread(engine)
        [child] = await put(engine, depends=[awaited])
        with pytest.raises(Conflict, match=child) as refused:
            await engine.cancel([free, awaited], dependents="refuse")
        assert refused.value.path == "ids[1]"


class TestLists:
    async def test_jobs_are_found_wherever_they_are(self, engine: SystemEngine) -> None:
        ids = await put(engine, 40, tags=["t"])
        for count in (1, 7, 1000):
            cursor, found = "", []
            while True:
                page = await engine.jobs({"tag": "t"}, cursor=cursor or None, count=count)
                found += [one["id"] for one in page.documents]
                cursor = page.cursor
                if not cursor:
                    break
            assert sorted(found) == sorted(ids)
        with pytest.raises(Invalid):
            await engine.jobs(cursor="4:")
        with pytest.raises(Invalid):
            await engine.jobs(cursor="x")
        cursor, changed = await engine.cancel_where({"tag": "t"})
        while cursor:
            cursor, more = await engine.cancel_where({"tag": "t"}, cursor=cursor)
            changed += more
        assert changed == 40

    async def test_the_head_is_the_best_of_all_partitions(self, engine: SystemEngine) -> None:
        assert await engine.head("a") is None
        for priority in (5, 3, -2, 4):
            for one in await engine.partitions():
                await one.enqueue([({"name": "a", "priority": priority}, b"\xc0")])
            best = [await one.head("*") for one in await engine.partitions()]
            assert await engine.head(["a", "b"]) == min(filter(None, best))
        for _ in await engine.partitions():
            found = await engine.head("a")
            assert found and found[0] == -2
            await (await engine.of(found[1])).pick("w", "a")

    async def test_queues_of_one_name_are_added_up(self, engine: SystemEngine) -> None:
        names = [f"q{number}" for number in range(12)]
        for name in names:
            await put(engine, 5, queue=name)
        await spread(engine, queue="all")
        [first, *_] = await engine.partitions()
        await first.queue("all", paused=True)
        for count in (1, 5, 1000):
            cursor, found = "", []
            while True:
                page = await engine.queues(cursor=cursor or None, count=count)
                assert len(page.documents) <= count
                found += page.documents
                cursor = page.cursor
                if not cursor:
                    break
            assert [one["name"] for one in found] == sorted([*names, "all"])
            assert {one["queued"] for one in found if one["name"] in names} == {5}
        [document] = (await engine.queues(names=["none", "all"])).documents
        each = [(await one.queues(names=["all"])).documents[0] for one in await engine.partitions()]
        assert document["queued"] == sum(one["queued"] for one in each)
        assert document["oldest_ready_ms"] == min(one["oldest_ready_ms"] for one in each)
        assert document["paused"] is True


class TestNotYet:
    @pytest.mark.parametrize("operation", sorted(builtin().keys() - OPERATIONS))
    async def test_what_is_not_possible_says_so_and_asks_nobody(self, engine: SystemEngine, operation: str) -> None:
        with pytest.raises(Invalid, match=f"^INVALID {operation} is not possible over the partitions"):
            await engine.call(operation, msgpack.packb({}))

    async def test_nor_are_some_ways_of_asking(self, engine: SystemEngine) -> None:
        for asked in (engine.register("w", "a"), engine.call("pick", pack({"worker": "w", "queues": "a", "wait": {}}))):
            with pytest.raises(Invalid, match="is not possible over the partitions"):
                await asked

    def test_a_system_is_none_of_its_namespaces(self, redis_url: str, namespace: str, system: System) -> None:
        with pytest.raises(ValueError, match="one or the other"):
            JQ(redis_url, system=namespace, namespace=namespace)


class TestLibrary:
    def test_handles_wait_for_results_of_all_partitions(self, redis_url: str, namespace: str, system: System) -> None:
        with closing(JQ(redis_url, system=namespace)) as jq:
            handles = [jq.enqueue("double", number, keep_result=True) for number in range(30)]
            for one in system.partitions:
                with closing(JQ(redis_url, namespace=one.namespace)) as its:

                    @its.job
                    def double(number: int) -> int:
                        return 2 * number

                    its.burst()
            assert [handle.result(timeout=60) for handle in handles] == [2 * number for number in range(30)]
            assert jq.handle(handles[0].id).status() == "done"

    async def test_a_namespace_alone_is_no_system(self, redis_url: str, namespace: str) -> None:
        async with asyncio.timeout(60):
            with pytest.raises(NotFound, match="is no system"):
                await JQ(redis_url, system=namespace).aenqueue("a")


@pytest.mark.faults
async def test_a_partition_that_is_away_leaves_the_others_going() -> None:
    with cluster(3, 0, 1500, "--cluster-require-full-coverage", "no") as servers:
        record = await calls.create(servers.url, "{away}", 3)
        engine = SystemEngine(servers.url, "{away}")
        ids: dict[int, str] = {}
        while len(ids) < 3:
            [job] = await put(engine)
            ids[partition_of(job)] = job
        lost = servers.owner(record.partitions[1].namespace)
        assert lost.process is not None
        lost.process.send_signal(signal.SIGSTOP)
        try:
            assert (await engine.get(ids[0], ids[2]))[0] is not None
            with pytest.raises(Unavailable):
                async with asyncio.timeout(40):
                    await engine.get(ids[0], ids[1])
        finally:
            lost.process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(30):
            while True:
                try:
                    [document] = await engine.get(ids[1])
                    break
                except JQError:
                    await asyncio.sleep(0.1)
        assert document is not None
        await engine.close()
