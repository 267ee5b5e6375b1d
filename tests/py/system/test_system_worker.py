"""A worker whose jobs come from all partitions of a system."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgpack
import pytest

from jqmaster import JQ
from jqmaster.engine.engine import Engine
from jqmaster.errors import Unavailable
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import System, partition_of
from jqmaster.worker.ending import FollowUp
from jqmaster.worker.run import WorkOptions, work
from jqmaster.worker.worker import Function
from parts import eventually
from systems import walked
from topologies import cluster

COUNT = 4


@pytest.fixture
async def system(redis_url: str, namespace: str) -> System:
    return await calls.create(redis_url, namespace, COUNT)


@pytest.fixture
async def engine(redis_url: str, namespace: str, system: System) -> AsyncIterator[SystemEngine]:
    engine = SystemEngine(redis_url, namespace)
    yield engine
    await engine.close()


async def put(one: Engine, argument: Any = None, count: int = 1, **spec: Any) -> list[str]:
    """Jobs for one partition."""
    made = await one.enqueue([({"name": "a", **spec}, msgpack.packb(argument))] * count)
    return [job.id for job in made]


@asynccontextmanager
async def working(engine: SystemEngine, functions: Mapping[str, Function], **more: Any) -> AsyncIterator[None]:
    stop = asyncio.Event()
    options = WorkOptions(
        functions, redis_url=engine.url, system=engine.root, drain_timeout_s=more.pop("drain_timeout_s", 1.0), **more
    )
    task = asyncio.create_task(work(options, stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)


class Seen:
    """A function that notes its arguments, and may be held up."""

    def __init__(self) -> None:
        self.arguments: list[Any] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, argument: Any) -> None:
        self.arguments.append(argument)
        await self.go_on.wait()

    async def has(self, argument: Any) -> None:
        """Wait until it was called with that."""
        await eventually(lambda: argument in self.arguments)

    @property
    def function(self) -> Function:
        async def called(argument: Any) -> None:
            await self(argument)

        return called


async def test_each_job_of_each_partition_runs_once(redis_url: str, namespace: str, engine: SystemEngine) -> None:
    jq, ran = JQ(redis_url, system=namespace), Counter[int]()

    @jq.job(keep_result=True)
    async def double(number: int) -> int:
        ran[number] += 1
        return number * 2

    handles = [await double.aenqueue(number) for number in range(40)]
    stop = asyncio.Event()
    task = asyncio.create_task(jq.worker(concurrency=3).serve(stop))
    more = [await double.aenqueue(number) for number in range(40, 80)]
    assert [await one.aresult(60) for one in handles + more] == [number * 2 for number in range(80)]
    stop.set()
    await task
    assert len(ran) == 80 and set(ran.values()) == {1}
    assert {partition_of(one.id) for one in handles} == set(range(COUNT))
    assert sum(one["done"] for one in (await engine.queues(["double"])).documents) == 80
    jq.close()


async def test_one_that_sleeps_is_woken_by_every_partition(engine: SystemEngine) -> None:
    seen = Seen()
    async with working(engine, {"a": seen.function}):
        await put((await engine.partitions())[0], "first")
        await seen.has("first")
        await asyncio.sleep(0.5)  # it sleeps
        for turn in range(3):
            for number, one in enumerate(await engine.partitions()):
                await put(one, [turn, number])
                async with asyncio.timeout(45):  # it would look without being woken after a minute
                    await seen.has([turn, number])


async def test_who_is_busy_passes_the_call_on(engine: SystemEngine) -> None:
    """Both have slept everywhere, and count as asleep where the busy one is not any more."""
    ones = [Seen(), Seen()]
    async with (
        working(engine, {"a": ones[0].function}, concurrency=1, drain_timeout_s=0.1),
        working(engine, {"a": ones[1].function}, concurrency=1, drain_timeout_s=0.1),
    ):
        await asyncio.sleep(1)
        for one in ones:
            one.go_on.clear()
        partitions = await engine.partitions()
        await put(partitions[0], "long")
        await eventually(lambda: sum(len(one.arguments) for one in ones) == 1)
        busy, idle = sorted(ones, key=lambda one: -len(one.arguments))
        idle.go_on.set()
        for number, one in enumerate(partitions):
            await put(one, number)
            async with asyncio.timeout(30):
                await idle.has(number)
        await put(partitions[2], "due", delay=1.0)
        async with asyncio.timeout(30):
            await idle.has("due")
        assert busy.arguments == ["long"]
        busy.go_on.set()


async def test_what_is_due_comes_although_those_who_were_told_of_it_are_busy(engine: SystemEngine) -> None:
    first, second = Seen(), Seen()
    partitions = await engine.partitions()
    await put(partitions[1], "due", delay=2.0)
    async with working(engine, {"a": first.function}, concurrency=1, drain_timeout_s=0.1):
        await asyncio.sleep(0.3)  # it sleeps until then
        first.go_on.clear()
        await put(partitions[0], "long")
        await eventually(lambda: first.arguments == ["long"])
        async with working(engine, {"a": second.function}, concurrency=1):
            async with asyncio.timeout(30):
                await eventually(lambda: second.arguments == ["due"])
        first.go_on.set()


async def test_an_urgent_job_does_not_wait_for_those_of_another_partition(engine: SystemEngine) -> None:
    order: list[Any] = []
    partitions = await engine.partitions()

    async def note(argument: Any) -> None:
        order.append(argument)
        if len(order) == 20:
            await put(partitions[3], "urgent", priority=-1)

    await put(partitions[0], "plain", 300)
    async with working(engine, {"a": note}, concurrency=1):
        await eventually(lambda: len(order) == 301, 60)
    assert order.index("urgent") < 150  # each pick looks at one of three others, by chance


async def test_partitions_take_turns_by_the_age_of_their_jobs(engine: SystemEngine) -> None:
    order: list[int] = []

    async def note(number: int) -> None:
        order.append(number)

    partitions = await engine.partitions()
    for number in range(200):
        await put(partitions[number % COUNT], number)
    async with working(engine, {"a": note}, concurrency=1):
        await eventually(lambda: len(order) == 200, 60)
    errors = [abs(position - number) for position, number in enumerate(order)]
    assert sum(errors) / len(errors) < 6 * COUNT, order  # partition by partition it is 75


async def test_what_follows_a_job_is_made_where_it_belongs(engine: SystemEngine, system: System) -> None:
    seen = Seen()

    async def first(key: str) -> FollowUp[None]:
        return FollowUp(None, [{"name": "second", "argument": key, "unique": key}])

    keys = {system.home(key.encode()): key for key in map(str, range(100))}
    assert len(keys) == COUNT
    async with working(engine, {"first": first, "second": seen.function}):
        home = (await engine.partitions())[1]
        for key in keys.values():
            await put(home, key, name="first")
        await eventually(lambda: sorted(seen.arguments) == sorted(keys.values()))
    made = await walked(partial(engine.jobs, {"queue": "second"}), 100)
    assert {partition_of(one["id"]): one["argument"] for one in made} == {
        place: msgpack.packb(key) for place, key in keys.items()
    }


async def test_leases_are_renewed_and_a_cancelled_job_stops_at_once(engine: SystemEngine) -> None:
    running: dict[str, str] = {}

    async def last(argument: str) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            running[argument] = "stopped"
            raise

    async with working(engine, {"a": last}, drain_timeout_s=0.1):
        ids = [(await put(one, str(number), timeout=3))[0] for number, one in enumerate(await engine.partitions())]
        await eventually(lambda: _running(engine, ids))
        await asyncio.sleep(5)
        assert [one["attempt"] for one in await engine.get(*ids)] == [1] * COUNT
        await engine.cancel(ids)
        await eventually(lambda: len(running) == COUNT)
    assert {one["status"] for one in await engine.get(*ids)} == {"cancelled"}


async def _running(engine: SystemEngine, ids: list[str]) -> bool:
    return all(one["status"] == "running" for one in await engine.get(*ids))


async def test_one_that_stops_gives_its_jobs_back(engine: SystemEngine) -> None:
    seen = Seen()
    seen.go_on.clear()
    ids = [(await put(one, number))[0] for number, one in enumerate(await engine.partitions())]
    async with working(engine, {"a": seen.function}, drain_timeout_s=0.1):
        await eventually(lambda: len(seen.arguments) == COUNT)
    assert [(one["status"], one["retry_count"]) for one in await engine.get(*ids)] == [("queued", 0)] * COUNT


async def test_it_is_listed_while_it_works(engine: SystemEngine) -> None:
    async def listed() -> Any:
        pages = [await one.workers(others=True) for one in await engine.partitions()]
        return [one["name"] for page in pages for one in page.documents]

    async with working(engine, {"a": Seen().function}, name="mine"):
        await eventually(listed)
        assert await listed() == ["mine"]
    assert await listed() == []


@pytest.mark.parametrize("more", [{"push": True}, {"register": True}])
async def test_it_is_not_registered(engine: SystemEngine, more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="pulls from its partitions"):
        async with working(engine, {"a": Seen().function}, **more):
            pass


@pytest.mark.faults
async def test_a_partition_that_hangs_holds_up_no_other() -> None:
    with cluster(primaries=3, timeout_ms=60_000) as nodes:  # it is not given up
        await calls.create(nodes.url, "{jq}", 3)
        engine, seen = SystemEngine(nodes.url, "{jq}"), Seen()
        partitions = await engine.partitions()
        async with working(engine, {"a": seen.function}, concurrency=4):
            await asyncio.sleep(0.5)
            seen.go_on.clear()
            stuck = await put(partitions[1], "stuck", 4, timeout=30)
            await eventually(lambda: len(seen.arguments) == 4)
            node = nodes.owner(partitions[1].namespace)
            node.process.send_signal(signal.SIGSTOP)
            try:
                seen.go_on.set()  # all slots end jobs of the partition that hangs
                await put(partitions[0], "a", 50)
                await put(partitions[2], "c", 50)
                await eventually(lambda: len(seen.arguments) == 104, 30)
            finally:
                node.process.send_signal(signal.SIGCONT)
            await eventually(lambda: _done(partitions[1], stuck), 30)
            await put(partitions[1], "b", 20)
            await eventually(lambda: len(seen.arguments) == 124, 30)
        await engine.close()


@pytest.mark.faults
async def test_a_partition_that_dies_loses_nothing_and_comes_back() -> None:
    with cluster(primaries=3, replicas=3) as nodes:
        await calls.create(nodes.url, "{jq}", 6)
        engine, ran = SystemEngine(nodes.url, "{jq}"), Counter[int]()
        made: dict[str, int] = {}

        async def count(number: int) -> None:
            ran[number] += 1

        async def feed() -> None:
            for number in range(1500):
                try:
                    [[one]] = [await engine.enqueue([({"name": "a", "timeout": 5}, msgpack.packb(number))])]
                except Unavailable:
                    continue  # it may have come all the same
                made[one.id] = number
                await asyncio.sleep(0.005)

        async with working(engine, {"a": count}, concurrency=4), working(engine, {"a": count}, concurrency=4):
            feeding = asyncio.create_task(feed())
            await asyncio.sleep(1.5)
            nodes.owner((await engine.partitions())[2].namespace).kill()
            await feeding
            await eventually(lambda: set(made.values()) <= set(ran), 60)
        assert len(made) > 500
        await engine.close()


async def _done(one: Engine, ids: list[str]) -> bool:
    return all(found and found["status"] == "done" for found in await one.get(*ids))


async def test_workers_alone_carry_mail_and_share_limits_out(redis_url: str, engine: SystemEngine) -> None:
    jq, running, most = JQ(redis_url, system=engine.root), 0, 0

    @jq.job(keep_result=True)
    async def part(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return number

    @jq.job(keep_result=True)
    async def whole() -> int:
        return sum(await jq.adependency_results())

    await jq.aconstrain("parts", {"name": part.name}, concurrency=3)
    parts = [await part.aenqueue(number) for number in range(40)]
    assert {partition_of(one.id) for one in parts} == set(range(COUNT))
    last = await whole.options(depends=parts).aenqueue()
    stop = asyncio.Event()
    task = asyncio.create_task(jq.worker(concurrency=10).serve(stop))
    assert await last.aresult(60) == sum(range(40))
    stop.set()
    await task
    assert 1 <= most <= 3
    jq.close()
