"""A worker that hangs or fails is no trouble for the others, and is tried again by itself."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from jqmaster.engine.engine import Engine
from jqmaster.server.egress import Egress
from parts import ACCEPTED, REFUSED, answers, came_to, dispatching, enqueue, eventually, until, worker
from processes import Process


async def test_one_that_fails_is_left_alone_and_tried_again(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    times: list[float] = []

    async def answer(job: dict[str, Any]) -> web.Response:
        times.append(time.monotonic())
        return await answers(*((401,) if len(times) < 4 else (200, {"type": "success"})))(job)

    async with worker(engine, answer) as stub, dispatching(engine):
        await until(engine, await enqueue(engine, max_retry=0), "done")
    assert f"worker {stub.id} at {stub.url}: " in caplog.text and "(401)" in caplog.text
    pauses = [later - time for time, later in itertools.pairwise(times)]
    assert pauses[0] > 0.9 and pauses[1] > 1.9 and pauses[2] > 3.9


async def test_one_that_breaks_each_connection_is_left_alone_as_well(engine: Engine) -> None:
    times: list[float] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        times.append(time.monotonic())
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, dispatching(engine):
        await engine.register("breaks", "*", url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await until(engine, await enqueue(engine, max_retry=2, retry_base=0), "error")
    assert times[1] - times[0] > 0.9 and times[2] - times[1] > 1.9


async def test_a_server_that_may_not_push_leaves_workers_to_others(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jqmaster.server.dispatch.LOOK_EVERY_S", 0.1)  # either may be woken
    answer = answers(200, {"type": "success"})
    async with worker(engine, answer, max_jobs=10), dispatching(engine, egress=Egress("")) as barred:
        await enqueue(engine)
        await eventually(lambda: came_to(barred, *REFUSED))
        async with dispatching(engine) as able:
            for number in range(20):
                await eventually(lambda number=number: came_to(able, "success") > number)
                await enqueue(engine)
    assert came_to(barred, *REFUSED) == 1


async def test_a_server_without_files_to_open_takes_no_worker_for_ill(engine: Engine) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with worker(engine, ACCEPTED) as stub, dispatching(engine) as dispatch:
        with contextlib.ExitStack() as stack:
            stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 10, most))
            with contextlib.suppress(OSError):
                while True:
                    stack.callback(os.close, os.dup(0))
            job = await enqueue(engine, max_retry=0)
            await eventually(lambda: came_to(dispatch, "held"))
        await stub.delivered()
        await until(engine, job, "running")
        assert came_to(dispatch, *REFUSED) == 0


@asynccontextmanager
async def hanging(engine: Engine, redis_url: str, how: str) -> AsyncIterator[None]:
    """A registered worker that takes connections, and answers nothing."""
    with contextlib.ExitStack() as stack:
        if how == "accepts":
            port = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            await engine.register("hangs", "mail", url=f"http://127.0.0.1:{port}", max_jobs=100)
        else:
            where = "--redis", redis_url, "--namespace", engine.namespace, "--queues", "mail", "--concurrency", "100"
            process = Process("jqmaster.cli", "work", "raising_jobs:jobs", "--push", *where, ready=" listens on ")
            stack.enter_context(process).signal(signal.SIGSTOP)
        yield


@pytest.mark.parametrize("how", ["accepts", "stopped"])
async def test_a_worker_that_hangs_costs_one_attempt(
    engine: Engine, redis_url: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """However many servers push, and though it seems to have most room."""

    async def answer(job: dict[str, Any]) -> web.Response:
        return await (ACCEPTED if job["name"] == "long" else answers(200, {"type": "success"}))(job)

    async with hanging(engine, redis_url, how), dispatching(engine), dispatching(engine):
        first = await enqueue(engine, timeout=0.5, max_retry=1, retry_base=0)
        await until(engine, first, "running")
        async with worker(engine, answer, queues=["long", "mail"], max_jobs=2) as able:
            await enqueue(engine, "long")
            await able.delivered()
            assert (await until(engine, first, "done"))["retry_count"] == 1
            for _ in range(10):
                job = await enqueue(engine, timeout=0.5, max_retry=0)
                await until(engine, job, "done")
                await asyncio.sleep(0.2)
    assert "no answer within 0.5 s" in caplog.text
