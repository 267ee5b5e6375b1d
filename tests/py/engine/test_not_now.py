"""A worker that answers "not now", and how those who wait learn that there is room."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from bare import app_worker
from jqmaster import JQ
from jqmaster.engine.engine import Engine
from jqmaster.server.server import Server
from jqmaster.worker.ending import JobReleased
from parts import enqueue, eventually, status, until
from surface_support import own, server

__all__ = ["own", "server"]

WAYS = ("redis", "http", "push")
MATCH = {"name": "mail"}


async def last_event(engine: Engine, job: str) -> dict[str, Any]:
    """Of a job's history, how its last attempt ended."""
    events = (await engine.history(job))["events"]
    return next(event for event in reversed(events) if event["event"] == "released")


@asynccontextmanager
async def working(way: str, server: Server, functions: dict[str, Any]) -> AsyncIterator[None]:
    stop = asyncio.Event()
    urls = str(server.redis_url), server.url
    worker = app_worker(way, urls, server.options.namespace, functions, concurrency=1)
    task = asyncio.create_task(worker.serve(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 60)


@pytest.mark.parametrize("way", WAYS)
async def test_a_function_that_says_not_now_closes_its_key(way: str, server: Server, own: Engine) -> None:
    jq = JQ(server.url)
    await jq.acall("constrain", id="per-customer", match=MATCH, by="argument.who", concurrency=5)

    async def mail(argument: dict[str, Any]) -> None:
        if argument["who"] == "a":
            raise JobReleased("the server is busy", hold={"per-customer": timedelta(seconds=1000)})

    first = await enqueue(own, "mail", {"who": "a"})
    second = await enqueue(own, "mail", {"who": "a"})
    other = await enqueue(own, "mail", {"who": "b"})
    async with working(way, server, {"mail": mail}):
        await until(own, other, "done")
        [document] = [key async for key in jq.aeach("usage", "per-customer") if key["by"] == "a"]
        assert document["running"] == 0 and document["hold_ms"] == document["opens_ms"]
        assert (await last_event(own, first))["message"] == "the server is busy"
    attempts = []
    for job in (first, second):
        [shown] = await own.get([job])
        assert shown is not None and (shown["status"], shown["retry_count"]) == ("queued", 0)
        attempts.append(shown["attempt"])
    assert attempts == [1, 0]


@pytest.mark.parametrize("way", ["redis", "http"])
async def test_a_wrong_release_puts_the_job_off(way: str, server: Server, own: Engine) -> None:
    wrong: dict[str, tuple[dict[str, Any], str]] = {
        "negative": ({"hold": {"c": -1}}, "INVALID hold.c: expected seconds from 0 to 31536000, got -1"),
        "no number": ({"hold": {"c": "5s"}}, 'got "5s"'),
        "no value": ({"hold": {"c": object()}}, "put off for 10 s"),
        "bad id": ({"hold": {"\udcff": 1}}, "put off for 10 s"),
        "delay": ({"delay": "soon", "hold": {"c": 1}}, "put off for 10 s: INVALID delay: expected seconds"),
        "both": ({"delay": -1, "hold": {"c": math.nan}}, "put off for 10 s"),
        "too many": ({"hold": {str(number): 1 for number in range(11)}}, "expected 1 to 10 constraints"),
    }

    def mail(argument: str) -> None:
        raise JobReleased("429 \udcff", **wrong[argument][0])

    jq = JQ(server.url)
    async with working(way, server, {"mail": mail}):
        await jq.acall("constrain", id="c", match={"name": "other"}, concurrency=5)
        for kind, (_, says) in wrong.items():
            job = await enqueue(own, "mail", kind, max_retry=0)
            shown = await until(own, job, "scheduled")
            assert 900 <= shown["due_ms"] - shown["started_ms"] <= 20_000
            said = (await last_event(own, job))["message"]
            assert said.startswith("429 \\udcff") and says in said, kind


@pytest.mark.parametrize("way", ["redis", "http"])
async def test_a_full_worker_goes_on_after_not_now(way: str, server: Server, own: Engine) -> None:
    async def mail(argument: int) -> None:
        if argument % 2:
            raise JobReleased(delay=1000)

    jobs = [await enqueue(own, "mail", number) for number in range(30)]
    async with working(way, server, {"mail": mail}):
        await eventually(lambda: _are(own, jobs[0::2], "done"))
        await eventually(lambda: _are(own, jobs[1::2], "scheduled"))


async def _are(engine: Engine, jobs: list[str], state: str) -> bool:
    return {await status(engine, job) for job in jobs} == {state}
