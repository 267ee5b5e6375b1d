"""Masters of a system push jobs of all partitions: what each worker has at once, and what comes of faults."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgpack
import pytest
from aiohttp import web

from jqmaster import JQ
from jqmaster.engine.http import HttpEngine
from jqmaster.errors import Invalid, NotFound
from jqmaster.master.server import ServeOptions
from jqmaster.master.server import Server as MasterServer
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from jqmaster.system.resizing import add
from jqmaster.system.slots import home_of
from jqmaster.worker.run import WorkOptions, work
from parts import FINISHED, StubWorker, answers, came_to, dispatch_of, enqueue, eventually, until, worker
from processes import MasterProcess
from systems import put
from topologies import cluster

COUNT = 6


@pytest.fixture
async def engine(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    await calls.create(redis_url, namespace, COUNT)
    engine = SystemEngine(redis_url, namespace)
    yield engine
    await engine.close()


@pytest.fixture
async def masters(engine: SystemEngine) -> AsyncIterator[Sequence[MasterServer]]:
    options = [ServeOptions(redis_url=engine.url, namespace=engine.root, system=True, port=0) for _ in range(2)]
    async with MasterServer(options[0]) as one, MasterServer(options[1]) as two:
        yield one, two


async def everywhere(engine: SystemEngine, count: int, **spec: Any) -> list[str]:
    """Jobs of all partitions."""
    return [job for one in await engine.partitions() for job in await put(one, count, **spec)]


async def are(engine: SystemEngine, ids: Sequence[str], state: str) -> bool:
    return all(one and one["status"] == state for one in await engine.get(*ids))


async def held(engine: SystemEngine) -> int:
    return sum(one["held"] for one in (await engine.workers()).documents)


@asynccontextmanager
async def slow(engine: SystemEngine, max_jobs: int, seconds: float = 0.02) -> AsyncIterator[StubWorker]:
    async def answer(_job: dict[str, Any]) -> web.Response:
        await asyncio.sleep(seconds)
        return web.Response(body=msgpack.packb({"type": "success"}))

    async with worker(engine, answer, max_jobs=max_jobs) as stub:
        yield stub


async def test_two_masters_push_all_once_and_never_more_than_the_slots(
    engine: SystemEngine, masters: Sequence[MasterServer]
) -> None:
    async with slow(engine, 1) as one, slow(engine, 2) as two, slow(engine, 7) as three:
        stubs = (one, two, three)
        ids = await everywhere(engine, 20)
        await eventually(lambda: are(engine, ids, "done"))
        assert Counter(job["id"] for stub in stubs for job in stub.jobs) == Counter(ids)
        assert [stub.most_under_way <= most for stub, most in zip(stubs, (1, 2, 7), strict=True)] == [True] * 3
        assert all(job["retry_count"] == 0 for stub in stubs for job in stub.jobs)
        await eventually(lambda: _none_held(engine))
        assert [one["id"] for one in (await engine.workers()).documents] == sorted(stub.id for stub in stubs)
    assert sum(came_to(master.dispatch, *FINISHED) for master in masters) == len(ids)
    assert await engine.audit_all() == []


async def _none_held(engine: SystemEngine) -> bool:
    return await held(engine) == 0


async def test_a_worker_of_the_library_gets_jobs_of_all_partitions(
    engine: SystemEngine, masters: Sequence[MasterServer]
) -> None:
    """Signed, renewed and reported through whichever master."""
    seen: list[Any] = []
    stop = asyncio.Event()

    async def function(argument: Any) -> Any:
        seen.append(argument)
        await asyncio.sleep(6 if argument < 2 else 0.01)  # leases of 4 s are renewed meanwhile
        return argument * 2

    urls = [master.url for master in masters]
    options = WorkOptions({"a": function}, masters=urls, push=True, concurrency=4)
    task = asyncio.create_task(work(options, stop))
    try:
        jq = JQ(urls[0])
        handles = [await jq.aenqueue("a", number, timeout=4, max_lapses=0, keep_result=True) for number in range(40)]
        assert len({partition_of(one.id) for one in handles}) > 1
        assert [await one.aresult(timeout=60) for one in handles] == [2 * number for number in range(40)]
        assert sorted(seen) == list(range(40))
        [document] = await jq.aworkers()
        assert document["max_jobs"] == 4
        await eventually(lambda: _none_held(engine))
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)
    assert (await engine.workers()).documents == []


async def test_a_job_that_runs_has_its_slot_until_it_ends_or_its_lease_does(
    engine: SystemEngine, masters: Sequence[MasterServer]
) -> None:
    http = HttpEngine([masters[1].url])
    async with worker(engine, answers(202), max_jobs=1) as stub:
        elsewhere = [one for number, one in enumerate(await engine.partitions()) if number != home_of(stub.id)]
        [first] = await put(elsewhere[0], timeout=3, max_lapses=0)
        [job] = await stub.delivered()
        [second] = await put(elsewhere[1])
        for _ in range(16):
            answer = await http.send(
                "POST", "/worker/heartbeat", msgpack.packb({"worker": stub.id, "jobs": [[first, job["token"]]]})
            )
            assert answer[0] == 200
            await asyncio.sleep(0.25)
        assert [one["id"] for one in stub.jobs] == [first]
        [document] = (await engine.workers()).documents
        assert (document["held"], document["state"], document["running"][0][0]) == (1, "full", first)
        await stub.delivered(2)  # nobody renews it any more
        assert [one["id"] for one in stub.jobs] == [first, second]
        await until(engine, first, "error")
    await http.close()


async def test_what_a_worker_has_elsewhere_goes_back_with_it(
    engine: SystemEngine, masters: Sequence[MasterServer]
) -> None:
    async with worker(engine, answers(202), max_jobs=20) as stub:
        ids = await everywhere(engine, 1)
        await stub.delivered(COUNT)
        assert await engine.kick_worker(stub.id, count=2) == (2, True)
        await stub.delivered(COUNT + 2)
        await engine.worker(stub.id, "quiet")
        assert await engine.kick_worker(stub.id) == (COUNT, False)
        await engine.worker(stub.id, "resume")
        await stub.delivered(2 * COUNT + 2)
        await engine.unregister(stub.id)
        await eventually(lambda: are(engine, ids, "queued"))
    with pytest.raises(NotFound):
        await engine.unregister(stub.id)


async def test_a_worker_that_hangs_loses_its_jobs_and_holds_up_no_other(
    engine: SystemEngine, masters: Sequence[MasterServer]
) -> None:
    async def never(_job: dict[str, Any]) -> web.Response:
        await asyncio.sleep(60)
        return web.Response(status=202)

    async with worker(engine, never, max_jobs=3) as hanging:
        ids = await everywhere(engine, 1, timeout=2.0, retry_base=0.01, max_lapses=100)
        await hanging.delivered(3)
        async with slow(engine, 3) as well:
            await eventually(lambda: are(engine, ids, "done"))
            assert {one["id"] for one in well.jobs} == set(ids)


async def test_a_master_that_is_killed_leaves_no_slot_taken(engine: SystemEngine) -> None:
    """Both push; one dies with deliveries under way, whose leases end, and all is done once more by the other."""
    starts: dict[str, list[float]] = defaultdict(list)

    async def answer(job: dict[str, Any]) -> web.Response:
        starts[job["id"]].append(time.monotonic())
        await asyncio.sleep(0.05)
        return web.Response(body=msgpack.packb({"type": "success"}))

    command = ("--redis", engine.url, "--system", engine.root)
    with MasterProcess(*command) as one, MasterProcess(*command):
        async with worker(engine, answer, max_jobs=4) as stub:
            ids = await everywhere(engine, 15, timeout=2.0, retry_base=0.01, max_lapses=9)
            await stub.delivered(10)
            one.kill()
            await eventually(lambda: are(engine, ids, "done"))
            assert starts.keys() == set(ids) and stub.most_under_way <= 4
            await eventually(lambda: _none_held(engine))
    assert await engine.audit_all() == []


async def test_a_name_that_a_worker_does_not_know_goes_to_others(
    engine: SystemEngine, masters: Sequence[MasterServer]
) -> None:
    async with worker(engine, answers(404)) as ignorant:
        ids = await everywhere(engine, 2)
        await ignorant.delivered()
        async with slow(engine, 5) as able:
            await eventually(lambda: are(engine, ids, "done"))
            assert {one["id"] for one in able.jobs} == set(ids)
        assert len(ignorant.jobs) <= 2 * len(ids)


async def test_pushing_goes_on_over_partitions_that_are_added(
    engine: SystemEngine, masters: Sequence[MasterServer]
) -> None:
    async with slow(engine, 2) as stub:
        await add(engine.url, engine.root, 2)
        await eventually(lambda: _knows(engine, COUNT + 2))
        ids = await everywhere(engine, 2)
        await eventually(lambda: are(engine, ids, "done"))
        assert {partition_of(one["id"]) for one in stub.jobs} == set(range(COUNT + 2))


async def _knows(engine: SystemEngine, count: int) -> bool:
    return len(await engine.partitions()) == count


async def test_who_registers_again_replaces_its_older_self(engine: SystemEngine) -> None:
    first = await engine.register("one", "a", url="http://host:1/", max_jobs=3)
    again = await engine.register("two", "a", url="http://host:1/", max_jobs=4)
    assert [one["id"] for one in (await engine.workers()).documents] == [again] != [first]
    with pytest.raises(Invalid, match="without announce or url"):
        await engine.register("three", "a")


@pytest.mark.faults
async def test_a_node_that_dies_holds_up_no_other_partition() -> None:
    """And its jobs are pushed when it is back."""
    with cluster(3, 0, 1500, "--cluster-require-full-coverage", "no", "--appendonly", "yes") as nodes:
        await calls.create(nodes.url, "{shop}", COUNT)
        options = ServeOptions(redis_url=nodes.url, namespace="{shop}", system=True, port=0)
        engine = SystemEngine(nodes.url, "{shop}", partial=True)
        async with MasterServer(options):
            partitions = await engine.partitions()
            async with slow(engine, 3) as stub:
                home = home_of(stub.id)
                assert home is not None
                dead = next(one for one in nodes.primaries if one is not nodes.owner(partitions[home].namespace))
                away = {at for at, one in enumerate(partitions) if nodes.owner(one.namespace) is dead}
                ids = await everywhere(engine, 20, timeout=3.0, retry_base=0.01, max_lapses=9)
                await stub.delivered(10)
                dead.kill()
                left = [one for one in ids if partition_of(one) not in away]
                await eventually(lambda: are(engine, left, "done"))
                [more] = await put(partitions[home], timeout=3.0)
                await eventually(lambda: are(engine, [more], "done"))
                dead.start()
                await eventually(lambda: _done_again(engine, ids))
                assert stub.most_under_way <= 3
        await engine.close()


async def _done_again(engine: SystemEngine, ids: Sequence[str]) -> bool:
    try:
        return await are(engine, ids, "done")
    except Exception:
        return False


async def test_an_idle_master_of_a_system_sleeps(engine: SystemEngine) -> None:
    """A worker with room is no reason to look again and again."""
    dispatch = dispatch_of(engine)
    dispatch.start()
    async with worker(engine, answers(202)) as stub:
        job = await enqueue(engine)
        await stub.delivered()
        await until(engine, job, "running")
        client = (await engine.partitions())[0].redis
        calls_made = [await _scripts(client)]
        for _ in range(3):
            await asyncio.sleep(2)
            calls_made.append(await _scripts(client))
        least = min(after - before for before, after in pairwise(calls_made))
        assert least <= 4 * COUNT, calls_made
    await dispatch.stop(1)


async def _scripts(client: Any) -> int:
    found = await client.info("commandstats")
    return sum(int(found[f"cmdstat_{name}"]["calls"]) for name in ("fcall", "evalsha") if f"cmdstat_{name}" in found)
