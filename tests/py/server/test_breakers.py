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
from jqmaster.server import breakers
from jqmaster.server.breakers import FAILURES, Breakers
from jqmaster.server.meters import Meters
from parts import ACCEPTED, REFUSED, answers, came_to, dispatching, enqueue, eventually, until, worker
from processes import Process


def told(meters: Meters) -> float | None:
    """How many circuits are open."""
    return meters.registry.get_sample_value("jq_breakers_open")


async def test_one_that_fails_is_left_alone_and_tried_again(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    times: list[float] = []
    status = 401

    async def answer(_job: dict[str, Any]) -> web.Response:
        times.append(time.monotonic())
        return web.Response(status=status)

    async def keep_alive() -> None:
        """Signs of life end what the engine does about workers that cannot be reached, not what a master does."""
        while True:
            await engine.heartbeat(stub.id, [])
            await asyncio.sleep(0.05)

    async with worker(engine, answer, max_jobs=10) as stub, dispatching(engine) as dispatch:
        alive = asyncio.create_task(keep_alive())
        jobs = [await enqueue(engine, max_retry=0) for _ in range(10)]
        await eventually(lambda: f"circuit open for 2 s: worker {stub.id}" in caplog.text)
        assert "(401)" in caplog.text and told(dispatch.meters) == 1
        status = 202
        for job in jobs:
            await until(engine, job, "running")
        await eventually(lambda: not told(dispatch.meters))
        assert "recovered; pushing resumed" in caplog.text
        alive.cancel()
    pauses = [later - time for time, later in itertools.pairwise(times)]
    assert pauses[[pause > 0.5 for pause in pauses].index(True)] > 0.9 and max(pauses) > 1.9


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
        assert not told(dispatch.meters) and came_to(dispatch, *REFUSED) == 0


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
    assert "circuit open for 1 s" in caplog.text


# -- pieces ---------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(breakers.time, "monotonic", lambda: now[0])
    return now


def failed(of: Breakers, times: int) -> None:
    for _ in range(times):
        assert not of.take("w")
        of.done("w", "failing")


def test_pauses_grow_up_to_a_bound(clock: list[float]) -> None:
    of = Breakers(Meters())
    failed(of, FAILURES - 1)
    assert not of.without()
    pauses = []
    for _ in range(12):
        failed(of, 1)
        assert list(of.without()) == ["w"]
        pauses.append(round(of.without()["w"]))
        clock[0] += pauses[-1]
        assert not of.without()
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_a_trial_is_one_job_and_what_was_under_way_before_decides_nothing(clock: list[float]) -> None:
    of = Breakers(Meters())
    for _ in range(20):
        of.take("w")
    for _ in range(20):
        of.done("w", "failing")
    assert of.without() == {"w": 1} and of.take("w") == 1
    clock[0] += 1  # not twenty times as long
    assert not of.take("w") and of.take("w") and of.without()
    of.done("w", "unknown")  # a stop has ended it
    assert not of.take("w")
    of.done("w", "well")
    assert not of.without() and not of._circuits
    of.take("w")
    of.done("w", "hung")
    assert of.without() == {"w": 1}


def test_who_is_gone_is_forgotten(clock: list[float]) -> None:
    of = Breakers(Meters())
    failed(of, FAILURES)
    clock[0] += 1 + breakers.FORGET_S + 1
    of.done("v", "failing")
    assert list(of._circuits) == ["v"]
