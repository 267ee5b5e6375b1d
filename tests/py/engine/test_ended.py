"""Waiting for the end of a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from parts import LONG_S, enqueue, eventually
from servers import RedisServer


@pytest.fixture
async def ended(engine: Engine, redis: Redis) -> AsyncIterator[Ended]:
    ended = Ended(engine)
    yield ended
    await ended.stop()


async def finish(engine: Engine, kind: str = "success", **more: object) -> None:
    [job] = (await engine.pick("w", "mail")).jobs
    await engine.finish("w", [({"id": job.id, "token": job.token, "type": kind, **more}, b"\xc0")])


async def waiting(ended: Ended, job: str, timeout_s: float = 30) -> asyncio.Task[str | None]:
    """A wait that has come as far as sleeping."""
    looks, look = 0, ended._look

    async def counted(job_id: bytes) -> str | None:
        nonlocal looks
        state = await look(job_id)
        looks += 1
        return state

    ended._look = counted  # type: ignore[method-assign]
    task = asyncio.create_task(ended.wait(job.encode(), timeout_s))

    def sleeps() -> bool:
        queues = [told for waiters in ended._waiters.values() for told in waiters]
        return looks > 0 and ended.is_subscribed and all(told.empty() for told in queues)

    await eventually(sleeps)
    await asyncio.sleep(0.05)  # a second look, for what the subscription may have missed, is over then
    ended._look = look  # type: ignore[method-assign]
    return task


async def test_the_end_is_told_to_all_who_wait(engine: Engine, ended: Ended) -> None:
    job = await enqueue(engine)
    waits = [await waiting(ended, job) for _ in range(5)]
    await finish(engine)
    assert await asyncio.wait_for(asyncio.gather(*waits), LONG_S) == ["done"] * 5


async def test_what_has_ended_is_told_at_once(engine: Engine, ended: Ended) -> None:
    job = await enqueue(engine)
    await finish(engine)
    assert await asyncio.wait_for(ended.wait(job.encode(), 30), LONG_S) == "done"


async def test_when_the_time_is_up_the_state_is_told(engine: Engine, ended: Ended) -> None:
    job = await enqueue(engine)
    assert await asyncio.wait_for(ended.wait(job.encode(), 0.05), LONG_S) == "queued"
    assert await ended.wait(job.encode(), 0) == "queued"


async def test_an_unknown_job_is_none(ended: Ended) -> None:
    assert await ended.wait(b"00000000000001", 30) is None


async def test_those_who_leave_leave_nothing(engine: Engine, ended: Ended) -> None:
    job = await enqueue(engine)
    wait = await waiting(ended, job)
    wait.cancel()
    await asyncio.wait({wait})
    assert not ended._waiters


async def test_an_end_while_redis_was_away_is_found() -> None:
    with RedisServer("--appendonly", "yes", "--appendfsync", "always") as server:
        async with connect(server.url) as redis:
            await load(redis, "{t}")
            engine = Engine(redis, "{t}")
            ended = Ended(engine)
            job = await enqueue(engine)
            wait = await waiting(ended, job)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await finish(engine)  # perhaps before the subscription is back
            assert await asyncio.wait_for(wait, LONG_S) == "done"
            await ended.stop()


async def test_who_heard_nothing_looks_at_the_end_of_his_time(engine: Engine, ended: Ended) -> None:
    wait = await waiting(ended, await enqueue(engine), timeout_s=0.7)
    ended._listeners[engine].cancel()
    await finish(engine)
    assert await asyncio.wait_for(wait, LONG_S) == "done"
