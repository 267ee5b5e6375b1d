"""Several masters on one Redis: they share the work, and none of them matters."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator

import msgpack
import pytest

from bare import program
from jqmaster import JQ
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.http import HttpEngine
from jqmaster.server import dispatch
from jqmaster.server.server import ServeOptions, Server
from parts import FINISHED, answers, asleep, came_to, commands, enqueue, eventually, until, worker
from servers import RedisServer

Masters = tuple[Server, Server, Server]


@pytest.fixture
async def masters(redis_url: str, namespace: str) -> AsyncIterator[Masters]:
    options = [ServeOptions(redis_url=redis_url, namespace=namespace, port=0) for _ in range(3)]
    async with Server(options[0]) as one, Server(options[1]) as two, Server(options[2]) as three:
        yield one, two, three


@pytest.fixture
async def own(redis_url: str, namespace: str, masters: Masters) -> AsyncIterator[Engine]:
    async with connect(redis_url) as redis:
        yield Engine(redis, namespace)


async def test_every_job_is_delivered_once(masters: Masters, own: Engine) -> None:
    async with (
        worker(own, answers(200, {"type": "success"}), max_jobs=40) as one,
        worker(own, answers(200, {"type": "success"}), max_jobs=40) as two,
    ):
        made = []
        for master in masters * 3:
            jq = JQ(master.url)
            made += [job.id for job in await jq.aenqueue_many(jq.new_job("mail", number) for number in range(40))]
        await eventually(lambda: _done(own, "mail", len(made)))
        delivered = Counter(job["id"] for stub in (one, two) for job in stub.jobs)
    assert delivered == Counter(made)
    assert sum(came_to(master.senders[0], *FINISHED) for master in masters) == len(made)


async def _done(engine: Engine, queue: str, count: int) -> bool:
    found = (await engine.queues([queue])).documents
    return bool(found and found[0]["done"] == count)


async def test_what_one_master_takes_another_delivers_and_a_third_hears_of(masters: Masters, own: Engine) -> None:
    """The worker reports to the third, the pusher waits at the second; the first is gone."""
    first, second, third = masters
    pusher, waiter, reporter = JQ(first.url), JQ(second.url), HttpEngine([third.url])
    async with worker(own, answers(202)) as stub:
        job = await pusher.aenqueue("mail")
        [delivered] = await stub.delivered()
        await first.stop()
        waiting = asyncio.create_task(waiter.handle(job.id).aresult(60))
        outcome = {"id": job.id, "token": delivered["token"], "type": "success", "result": 7}
        body = msgpack.packb({"outcomes": [outcome], "worker": stub.id})
        assert (await reporter.send("POST", "/done", body))[0] == 200
        assert await waiting == 7
        await reporter.close()


@pytest.mark.parametrize("survivor", range(3))
async def test_a_master_that_is_killed_takes_no_moment_with_it(
    masters: Masters, own: Engine, survivor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "LOOK_EVERY_S", 2.0)
    await enqueue(own, delay=0.01)  # every master looks once, and sleeps by the shorter time from then on
    await asyncio.sleep(0.1)
    for master in masters:
        master.senders[0]._channel.wake_all()
    job = await enqueue(own, delay=1.5)
    for index, master in enumerate(masters):
        if index != survivor:
            for task in (master.senders[0]._loop_task, master.senders[0]._channel._listener):
                if task is not None:
                    task.cancel()
    await until(own, job, "queued")


async def test_idle_masters_make_next_to_no_calls() -> None:
    with RedisServer() as server:
        options = [ServeOptions(redis_url=server.url, port=0) for _ in range(2)]
        async with Server(options[0]) as one, Server(options[1]) as two, connect(server.url) as redis:
            stop = asyncio.Event()
            tasks = [
                asyncio.create_task(program({"mail": print}, url).worker().serve(stop))
                for url in (one.url, two.url, server.url)
            ]
            await asleep(Engine(redis), 5)
            rates = []  # in the first seconds some end what they began with
            while len(rates) < 4 and min(rates, default=3) > 2:
                began, before = time.monotonic(), await commands(redis)
                await asyncio.sleep(3)
                rates.append((await commands(redis) - before) / (time.monotonic() - began))
            assert min(rates) <= 2, rates  # each second
            stop.set()
            await asyncio.wait_for(asyncio.gather(*tasks), 60)
