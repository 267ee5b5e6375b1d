"""Deliveries that do not come through for reasons that are nobody's fault cost the job nothing."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from redis.asyncio import Redis

from jqmaster.engine.engine import Engine
from jqmaster.server.dispatch import Dispatch
from parts import REFUSED, answers, came_to, dispatch_of, enqueue, eventually, until, worker

ACCEPTED = answers(202)
LONG = b"x" * 8_000_000  # more than the kernels of both sides keep


@pytest.fixture
async def dispatch(engine: Engine, redis: Redis) -> AsyncIterator[Dispatch]:
    dispatch = dispatch_of(engine)
    dispatch.start()
    yield dispatch
    await dispatch.stop(1)


@asynccontextmanager
async def breaking(engine: Engine, times: int) -> AsyncIterator[None]:
    """A worker that breaks so many connections in the middle of a job, and takes what comes then."""
    broken = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal broken
        head = await reader.readuntil(b"\r\n\r\n")
        if broken < times:
            broken += 1
            writer.transport.abort()
            return
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await engine.register("breaks", "*", url=f"http://127.0.0.1:{port}")
        yield


async def test_a_job_that_cannot_have_been_read_loses_no_try(engine: Engine, dispatch: Dispatch) -> None:
    async with breaking(engine, 1):
        job = await enqueue(engine, argument=LONG, max_retry=0)
        await eventually(lambda: came_to(dispatch, "accepted"))
    [document] = await engine.get([job])
    assert document is not None and (document["status"], document["attempt"]) == ("running", 1)


async def test_a_worker_that_always_breaks_off_does_not_keep_a_job_for_ever(engine: Engine, dispatch: Dispatch) -> None:
    async with breaking(engine, 1000):
        document = await until(engine, await enqueue(engine, argument=LONG, max_retry=0), "error")
    assert "while the job is sent" in document["message"]


@contextmanager
def no_more_files() -> Iterator[None]:
    """As many files are open as may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, hard))
    taken = []
    try:
        with pytest.raises(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for one in taken:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_master_without_files_leaves_the_job_to_others(engine: Engine, dispatch: Dispatch) -> None:
    async with worker(engine, ACCEPTED) as stub:
        await asyncio.gather(*(engine.queues() for _ in range(10)))  # all connections to Redis that will be needed
        await engine.workers()  # and what is loaded at the first call
        with no_more_files():
            job = await enqueue(engine, max_retry=0)
            await eventually(lambda: came_to(dispatch, "no_room"))
            assert [one["state"] for one in (await engine.workers()).documents] == ["ready"]
        assert [one["id"] for one in await stub.delivered()] == [job]
        await eventually(lambda: came_to(dispatch, "accepted"))
    assert came_to(dispatch, *REFUSED) == 0
    [document] = await engine.get([job])
    assert document is not None and document["status"] == "running" and not document["retry_count"]
