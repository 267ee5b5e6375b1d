"""The worker in its three ways: pulling over HTTP, pulling from Redis, and pushed to."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgpack
import pytest

from bare import app_worker, worker_of
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.packform import MSGPACK
from jqmaster.engine.replies import Beat, Job, Note
from jqmaster.server import signing
from jqmaster.server.server import ServeOptions, Server
from jqmaster.worker import attempts
from jqmaster.worker.ending import Outcome
from jqmaster.worker.sources import RedisSource
from jqmaster.worker.worker import Worker
from parts import enqueue, eventually, status, until
from servers import RedisServer
from surface_support import own, server

__all__ = ["own", "server"]

WAYS = ("redis", "http", "push")
SOON_S = 60.0
SECRET = signing.new_secret()


class Working:
    """A worker in this process."""

    def __init__(self, stop: asyncio.Event, task: asyncio.Task[None], outcomes: list[tuple[Outcome, str]]) -> None:
        self.stop = stop
        self.task = task
        self.outcomes = outcomes


@asynccontextmanager
async def working(way: str, server: Server, functions: dict[str, Any], **more: Any) -> AsyncIterator[Working]:
    stop = asyncio.Event()
    outcomes: list[tuple[Outcome, str]] = []
    told = {"on_outcome": lambda outcome, state: outcomes.append((outcome, state)), **more}
    worker = app_worker(way, (str(server.redis_url), server.url), server.options.namespace, functions, **told)
    task = asyncio.create_task(worker.serve(stop))
    try:
        yield Working(stop, task, outcomes)
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)


async def double(argument: int) -> int:
    return argument * 2


@pytest.mark.parametrize("way", ["redis", "http", "push"])
async def test_a_heartbeat_keeps_a_long_job(way: str, server: Server, own: Engine) -> None:
    async def long(argument: Any) -> None:
        await asyncio.sleep(argument)

    async with working(way, server, {"long": long}):
        for timeout in (0.5, 2, 8):  # if the machine stands still for the time of a lease, with a longer one
            job = await enqueue(own, "long", 3 * timeout, timeout=timeout, max_retry=0)
            if (await until(own, job, "done", "error"))["status"] == "done":
                return
    raise AssertionError("its lease was not renewed")


async def test_only_jobs_that_still_run_are_renewed(
    own: Engine, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jqmaster.worker.attempts.ALIVE_EVERY_S", 0.03)
    renewed: list[bool] = []
    stop = asyncio.Event()

    class Source(RedisSource):
        async def heartbeat(self, held: list[tuple[str, str]], notes: Mapping[tuple[str, str], Note]) -> Beat:
            renewed.extend(key in [running.job.held for running in worker.running] for key in held)
            return await super().heartbeat(held, notes)

    async def short(argument: float) -> None:
        await asyncio.sleep(argument)

    worker = worker_of({"short": short}, source := Source(redis_url, own.namespace, ["short"]))
    running = asyncio.create_task(worker.run(stop))
    jobs = [await enqueue(own, "short", 0.01 + 0.001 * number) for number in range(60)]
    for job in jobs:
        await until(own, job, "done")
    stop.set()
    await running
    await source.stop()
    assert renewed and all(renewed)


async def test_a_job_that_is_cancelled_as_it_comes_leaves_its_slot(own: Engine, redis_url: str) -> None:
    stop, ran = asyncio.Event(), []

    class Meeting(Worker):
        def start(self, job: Job, asked: float) -> None:
            super().start(job, asked)
            if job.attempt == 1 and job.id == first:
                self.attempts.running[job.held].stop("CANCELLED")  # before its task has had a turn

    async def take(argument: Any) -> None:
        ran.append(argument)

    source = RedisSource(redis_url, own.namespace, ["take"])
    worker = worker_of({"take": take}, source, Meeting, concurrency=1)
    first = await enqueue(own, "take", "first", timeout=60)
    running = asyncio.create_task(worker.run(stop))
    second = await enqueue(own, "take", "second")
    await until(own, second, "done")
    assert ran == ["second"] and not worker.running
    stop.set()
    await running
    await source.stop()


@pytest.mark.parametrize("way", ["redis", "http", "push"])
async def test_a_cancelled_job_is_stopped(way: str, server: Server, own: Engine) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def hang(argument: Any) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with working(way, server, {"hang": hang}):
        job = await enqueue(own, "hang", timeout=0.6)
        await asyncio.wait_for(began.wait(), SOON_S)
        await own.cancel([job])
        await asyncio.wait_for(ended.wait(), SOON_S)
        assert await status(own, job) == "cancelled"


@pytest.mark.parametrize("way", ["redis", "http", "push"])
async def test_a_stop_lets_running_jobs_finish_and_gives_the_rest_back(way: str, server: Server, own: Engine) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def short(argument: Any) -> None:
        began.set()
        await go_on.wait()

    async def endless(argument: Any) -> None:
        await asyncio.Event().wait()

    async with working(way, server, {"short": short, "endless": endless}, drain_timeout_s=0.5) as one:
        quick = await enqueue(own, "short")
        slow = await enqueue(own, "endless")
        await until(own, slow, "running")
        await asyncio.wait_for(began.wait(), SOON_S)
        one.stop.set()
        go_on.set()
        await asyncio.wait_for(one.task, SOON_S)
        assert await status(own, quick) == "done"
        [document] = await own.get([slow])
        assert document is not None
        assert (document["status"], document["retry_count"]) == ("scheduled", 0)
        assert not (await own.workers()).documents


async def test_an_idle_puller_that_stops_strands_no_job(server: Server, own: Engine) -> None:
    for number in range(10):
        async with working("http" if number % 2 else "redis", server, {"double": double}) as one:
            await eventually(lambda: _sleeping(own))
            made = asyncio.create_task(enqueue(own, "double", number))
            one.stop.set()
            job = await made
        assert await status(own, job) in ("queued", "done")


async def _sleeping(engine: Engine) -> bool:
    return int(await engine.redis.hlen(f"{engine.namespace}:sleepers")) > 0


async def test_a_dropped_push_worker_registers_again(
    server: Server, own: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "ALIVE_EVERY_S", 0.1)
    async with working("push", server, {"double": double}):
        [document] = await eventually(lambda: _workers(own))
        await own.unregister(document["id"])
        # Its heartbeat finds out; the job that waits is then delivered.
        job = await enqueue(own, "double", 1)
        await eventually(lambda: _is(own, job, "done"))


async def test_a_dropped_push_worker_goes_on_asking_until_it_may_register(
    fresh_server: RedisServer, namespace: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(attempts, "ALIVE_EVERY_S", 0.1)
    async with (
        Server(ServeOptions(redis_url=fresh_server.url, namespace=namespace, port=0)) as server,
        connect(fresh_server.url) as redis,
        working("push", server, {"double": double}),
    ):
        own = Engine(redis, namespace)
        [document] = await eventually(lambda: _workers(own))
        await redis.config_set("maxmemory", 1)  # a worker is dropped then, but none is registered
        await own.unregister(document["id"])
        await eventually(lambda: "cannot register again" in caplog.text)
        await redis.config_set("maxmemory", 0)
        job = await enqueue(own, "double", 1)
        await eventually(lambda: _is(own, job, "done"))


async def _workers(engine: Engine) -> list[dict[str, Any]]:
    return (await engine.workers()).documents


async def _is(engine: Engine, job: str, state: str) -> bool:
    return await status(engine, job) == state


async def test_a_delivery_that_comes_twice_starts_once(server: Server, own: Engine) -> None:
    calls = 0
    go_on = asyncio.Event()

    async def count(argument: Any) -> None:
        nonlocal calls
        calls += 1
        await go_on.wait()

    numbers = itertools.count()
    async with working("push", server, {"count": count}, concurrency=2, push_secrets=[SECRET]):
        [document] = await eventually(lambda: _workers(own))
        body = {"id": "00000000000001", "name": "count", "queue": "count", "argument": None, "timeout": 30,
                "token": "1-", "attempt": 1, "priority": 0, "retry_count": 0}  # fmt: skip
        async with aiohttp.ClientSession() as session:

            async def post(job: Any) -> int:
                data = job if isinstance(job, bytes) else msgpack.packb(job)
                headers = {"content-type": MSGPACK, **signing.signed([SECRET], f"push-{next(numbers)}", data)}
                async with session.post(f"{document['url']}/worker-job", data=data, headers=headers) as response:
                    return response.status

            async def is_free() -> bool:
                return await post({**body, "id": f"{next(numbers):014x}"}) == 202

            assert [await post(body), await post(body)] == [202, 202]
            assert await post({**body, "id": "00000000000002"}) == 202
            assert await post({**body, "id": "00000000000003"}) == 503
            assert await post({**body, "name": "other"}) == 404
            assert await post({"id": "1"}) == 400
            assert await post(b"\x81") == 400
            assert await post(b"") == 400
            assert await post(msgpack.packb([1])) == 400
            assert calls == 2
            go_on.set()
            await eventually(is_free)
            assert await post({**body, "id": "00000000000003"}) == 202  # once refused, it is not run
            await asyncio.sleep(0.1)
        assert calls == 3
