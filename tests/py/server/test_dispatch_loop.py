"""The loop that looks for jobs to push: bounds, restarts, stopping."""

from __future__ import annotations

import asyncio
import email.utils
import time
from contextlib import AsyncExitStack
from typing import Any

import msgpack
import pytest
from aiohttp import web

from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.server.answers import retry_after_s
from jqmaster.server.dispatch import Dispatch
from parts import (
    FINISHED,
    LONG_S,
    came_to,
    dispatch,  # noqa: F401
    dispatching,
    enqueue,
    eventually,
    hang,
    status,
    until,
    worker,
)
from servers import RedisServer


async def test_deliveries_to_several_workers_are_bounded_together(engine: Engine) -> None:
    under_way = most = 0

    async def slow(_job: dict[str, Any]) -> web.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1
        return web.Response(status=202)

    async with AsyncExitStack() as workers:
        for _ in range(6):  # each that does nothing would be given a job
            await workers.enter_async_context(worker(engine, slow))
        jobs = await engine.enqueue([({"name": "mail"}, b"\xc0")] * 30)
        dispatch = await workers.enter_async_context(dispatching(engine, max_deliveries=3))
        await eventually(lambda: came_to(dispatch, "accepted") == len(jobs))
    assert 1 < most <= 3


async def test_an_outcome_outlives_a_restart_of_redis() -> None:
    with RedisServer("--appendonly", "yes", "--appendfsync", "always") as server:
        async with connect(server.url) as redis:
            await load(redis, "{t}")
            engine = Engine(redis, "{t}")
            go_on = asyncio.Event()

            async def slow(_job: dict[str, Any]) -> web.Response:
                await go_on.wait()
                return web.Response(body=msgpack.packb({"type": "success"}))

            async with worker(engine, slow) as stub, dispatching(engine) as dispatch:
                job = await enqueue(engine)
                await stub.delivered()
                await asyncio.to_thread(server.kill)
                go_on.set()
                await eventually(lambda: came_to(dispatch, *FINISHED) == 1)
                await asyncio.to_thread(server.start)
                await until(engine, job, "done")


async def test_stopping_finishes_deliveries_and_starts_none(engine: Engine, dispatch: Dispatch) -> None:
    go_on = asyncio.Event()

    async def slow(_job: dict[str, Any]) -> web.Response:
        await go_on.wait()
        return web.Response(body=msgpack.packb({"type": "success"}))

    async with worker(engine, slow, max_jobs=1) as stub:
        job = await enqueue(engine)
        waiting = await enqueue(engine)
        await stub.delivered()
        stopping = asyncio.create_task(dispatch.stop(LONG_S))
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait_for(stopping, LONG_S)
        assert await status(engine, job) == "done"
        assert await status(engine, waiting) == "queued"


async def test_stopping_is_bounded_when_a_worker_hangs(engine: Engine, dispatch: Dispatch) -> None:
    async with worker(engine, hang) as stub:
        await enqueue(engine)
        await stub.delivered()
        await asyncio.wait_for(dispatch.stop(0.2), LONG_S)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0", 1.0),
        ("-3", 1.0),
        ("99999", 3600.0),
        ("9" * 5000, 3600.0),
        ("soon", None),
        ("nan", None),
        ("Thu, 01 Jan 2026 00:00:00 +9999999999999999", None),
        ("Thu, 01 Jan 99999 00:00:00 GMT", None),
    ],
)
def test_retry_after_in_seconds(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header) == seconds


def test_retry_after_as_a_date() -> None:
    header = email.utils.formatdate(time.time() + 30, usegmt=True)
    seconds = retry_after_s(header)
    assert seconds is not None and 28 <= seconds <= 30.5
    assert retry_after_s("Thu, 01 Jan 1970 00:00:00 GMT") == 1
