"""Jobs that a pulling worker has no function for, and refusals that last."""

from __future__ import annotations

import asyncio
import logging

import pytest
import redis

from bare import worker_of
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.replies import Job
from jqmaster.server.server import Server
from jqmaster.worker.sources import RedisSource
from parts import enqueue, eventually, until
from servers import RedisServer
from surface_support import own, server
from test_worker import double, working

__all__ = ["own", "server"]


async def triple(argument: int) -> int:
    return argument * 3


@pytest.mark.parametrize("way", ["redis", "http"])
async def test_a_worker_gives_back_what_it_does_not_know_and_asks_for_it_no_more(
    way: str, server: Server, own: Engine
) -> None:
    # As in a rolling deploy: the old program is there alone, and then the new one beside it.
    async with working(way, server, {"double": double}, queues=["shared"], concurrency=2) as old:
        fresh = [await enqueue(own, "triple", number, queue="shared", max_retry=0) for number in range(30)]
        known = [await enqueue(own, "double", number, queue="shared") for number in range(30)]
        for job in known:
            await until(own, job, "done")
        assert [outcome.job.name for outcome, _ in old.outcomes] == ["double"] * 30
        async with working(way, server, {"triple": triple}, queues=["shared"], concurrency=2):
            for job in fresh:
                document = await until(own, job, "done")
                assert document["retry_count"] == 0
        events = (await own.history(fresh[0]))["events"]
        [released] = [event for event in events if event["event"] == "released"]
        assert released["message"] == "this worker has no function for jobs named triple"


async def test_a_refusal_that_lasts_is_said_once_a_minute(
    fresh_server: RedisServer, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    with redis.Redis.from_url(fresh_server.url) as admin:
        admin.acl_setuser(
            "looks", enabled=True, nopass=True, keys=["*"], categories=["+@all"], commands=["-fcall", "-evalsha"]
        )
    async with connect(fresh_server.url) as own:
        await Engine(own, namespace).config()

    tried = 0

    class Source(RedisSource):
        async def fetch(self, count: int) -> list[Job]:
            nonlocal tried
            tried += 1
            return await super().fetch(count)

    stop = asyncio.Event()
    source = Source(fresh_server.url.replace("://", "://looks:any@"), namespace, ["double"])
    worker = worker_of({"double": double}, source)
    running = asyncio.create_task(worker.run(stop))

    async def has_tried() -> bool:
        return tried > 3

    await eventually(has_tried)
    said = [record for record in caplog.records if "cannot get jobs" in record.getMessage()]
    assert [record.levelno for record in said] == [logging.ERROR]
    stop.set()
    await running
    await source.stop()
