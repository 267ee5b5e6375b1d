"""Replies get lost on their way: who asks again gets the same jobs, and none ends without having run."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bare import worker_of
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.engine.waiting import Waiting
from jqmaster.errors import Unavailable
from jqmaster.worker.notes import checkpoint, progress
from jqmaster.worker.sources import EngineSource, HttpSource, RedisSource
from parts import answers, dispatching, enqueue, eventually, until
from parts import worker as stub_worker
from processes import MasterProcess
from servers import RedisServer
from topologies import Proxy

pytestmark = pytest.mark.faults

NAMESPACE = "{jq}"
JOBS = 2000
BATCH = 500
LONG_S = 150.0
NIL = b"\xc0"


@pytest.fixture
async def direct(fresh_server: RedisServer) -> AsyncIterator[Engine]:
    """On a way on which nothing gets lost."""
    async with connect(fresh_server.url) as redis:
        await load(redis, NAMESPACE)
        yield Engine(redis, NAMESPACE)


def lose(proxy: Proxy, share: float) -> None:
    dice = random.Random(7)
    proxy.loses = lambda: dice.random() < share


async def fill(engine: Engine) -> list[str]:
    """Jobs that may fail once."""
    spec = {"name": "a", "max_retry": 0, "timeout": 60}
    ids = []
    for _ in range(JOBS // BATCH):
        ids += [made.id for made in await engine.enqueue([(spec, NIL)] * BATCH)]
    return ids


async def check(engine: Engine, ids: list[str]) -> None:
    """All done, and no attempt lapsed on the way."""

    async def left() -> bool:
        return (await engine.queue("a"))["done"] == len(ids)

    await eventually(left, LONG_S)
    counts = (await engine.stats("day"))[0]
    assert (counts.get("lapsed", 0), counts.get("error", 0)) == (0, 0), counts


@asynccontextmanager
async def working(source: EngineSource) -> AsyncIterator[Counter[str]]:
    """A worker; how often it ran each job."""
    runs: Counter[str] = Counter()

    async def run(argument: str) -> None:
        runs[argument] += 1

    stop = asyncio.Event()
    task = asyncio.create_task(worker_of({"a": run}, source, concurrency=20).run(stop))
    yield runs
    stop.set()
    await task


@pytest.mark.timeout(240)
async def test_a_worker_over_http(fresh_server: RedisServer, direct: Engine) -> None:
    """Between master and Redis replies get lost as well as between worker and master."""
    ids = await fill(direct)
    async with Proxy(fresh_server) as behind:
        with await asyncio.to_thread(MasterProcess, "--redis", behind.url) as master:
            port = int(master.url.rpartition(":")[2])
            async with Proxy(port) as proxy:
                lose(proxy, 0.1)
                lose(behind, 0.05)
                source = HttpSource([proxy.url.replace("redis:", "http:")], ["a"])
                async with working(source):
                    await check(direct, ids)
                assert proxy.lost > 20 and behind.lost > 10
                await source.stop()


@pytest.mark.timeout(240)
async def test_a_master_that_pushes(fresh_server: RedisServer, direct: Engine) -> None:
    ids = await fill(direct)
    success = answers(200, {"type": "success", "result": None})
    async with Proxy(fresh_server) as proxy, connect(proxy.url) as redis:
        lose(proxy, 0.1)
        pushing = dispatching(Engine(redis, NAMESPACE))
        async with stub_worker(direct, success, max_jobs=50) as stub, pushing:
            await check(direct, ids)
            assert {job["id"] for job in stub.jobs} == set(ids)
        assert proxy.lost > 20


@pytest.mark.parametrize("timeout_s", [0, 1])
async def test_what_nobody_asks_for_again_is_given_back(
    fresh_server: RedisServer, direct: Engine, timeout_s: float
) -> None:
    job = await enqueue(direct, "a", max_retry=0)
    async with Proxy(fresh_server) as proxy, connect(proxy.url) as redis:
        engine = Engine(redis, NAMESPACE)
        waiting = Waiting(engine)
        await engine.get([job])
        proxy.loses = lambda: proxy.lost < 1
        with pytest.raises(Unavailable):
            await waiting.pick({"worker": "w", "queues": "a"}, timeout_s)

        async def is_back() -> bool:
            document = (await direct.get([job]))[0]
            return document is not None and (document["status"], document["retry_count"]) == ("queued", 0)

        await eventually(is_back)
        await waiting.stop()


async def test_what_a_lost_answer_brought_is_given_back_when_the_worker_stops(
    fresh_server: RedisServer, direct: Engine
) -> None:
    job = await enqueue(direct, "a", max_retry=0)
    async with Proxy(fresh_server) as proxy:
        source = RedisSource(proxy.url, NAMESPACE, ["a"])
        await source.register()
        proxy.loses = lambda: proxy.lost < 1
        with pytest.raises(Unavailable):
            await source.fetch(1)
        await source.stop()
        [document] = await direct.get([job])
        assert document is not None and (document["status"], document["retry_count"]) == ("queued", 0)


async def test_a_checkpoint_that_was_not_heard_is_said_again(fresh_server: RedisServer, direct: Engine) -> None:
    begun: list[int] = []
    async with Proxy(fresh_server) as proxy:

        async def is_told() -> bool:
            [document] = await direct.get([job])
            return document is not None and document.get("progress") == 1

        async def count(argument: int) -> None:
            begun.append(argument)
            if argument == 0:
                progress(1)
                await eventually(is_told)  # the heartbeat that a worker begins with is over
                proxy.silence()
                checkpoint(1)
                await asyncio.sleep(2)
                proxy.heal()
                raise ConnectionError

        source = RedisSource(proxy.url, NAMESPACE, ["a"])
        stop = asyncio.Event()
        task = asyncio.create_task(worker_of({"a": count}, source).run(stop))
        job = await enqueue(direct, "a", 0, retry_base=0, timeout=60)
        await until(direct, job, "done")
        stop.set()
        await task
        await source.stop()
    assert begun == [0, 1]
