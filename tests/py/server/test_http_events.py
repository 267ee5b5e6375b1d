"""Server-sent events on the wire: their form, what is refused, and that nothing stays when a client goes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from redis.asyncio import Redis

from http_support import validator
from jqmaster.engine.engine import Engine, connect
from jqmaster.server.events import EventFeed
from jqmaster.server.server import ServeOptions, Server
from parts import LONG_S, eventually


@pytest.fixture
async def server(redis_url: str, namespace: str) -> AsyncIterator[Server]:
    async with Server(ServeOptions(redis_url=redis_url, namespace=namespace, port=0)) as server:
        yield server


@pytest.fixture
async def own(redis_url: str, namespace: str, server: Server) -> AsyncIterator[Engine]:
    async with connect(redis_url) as redis:
        engine = Engine(redis, namespace)
        await engine.config({"events_max": 1000})
        yield engine


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def lines(response: aiohttp.ClientResponse, count: int) -> list[str]:
    """So many lines that are not empty."""
    found: list[str] = []
    while len(found) < count:
        line = (await response.content.readline()).decode().rstrip("\n")
        if line:
            found.append(line)
    return found


async def enqueue(own: Engine, name: str = "a") -> str:
    [job] = await own.enqueue([({"name": name}, b"\xc0")])
    return job.id


async def test_the_form_of_events(server: Server, own: Engine, session: aiohttp.ClientSession) -> None:
    async with session.get(server.url + "/events") as response:
        assert response.status == 200
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["cache-control"] == "no-store"
        assert await lines(response, 1) == [":"]
        job_id = await enqueue(own)
        [number, data] = await lines(response, 2)
        [(stored, _)] = await own.redis.xrange(f"{own.namespace}:events")
        assert number == f"id: {stored.decode()}"
        event = json.loads(data.removeprefix("data: "))
        validator("/components/schemas/Event").validate(event)
        assert (event["id"], event["state"]) == (job_id, "queued") and "from" not in event


async def test_who_comes_back_after_long_is_told_of_a_gap(
    server: Server, own: Engine, session: aiohttp.ClientSession
) -> None:
    await enqueue(own)
    async with session.get(server.url + "/events", headers={"last-event-id": "1-0"}) as response:
        told = await lines(response, 4)
        assert "event: missed" in told, told


async def test_the_form_of_a_jobs_events(server: Server, own: Engine, session: aiohttp.ClientSession) -> None:
    job_id = await enqueue(own)
    async with session.get(f"{server.url}/job/{job_id}/events") as response:
        [number, data] = await lines(response, 2)
        assert number == "id: queued-0"
        validator("/components/schemas/Event").validate(json.loads(data.removeprefix("data: ")))
        await own.pick("w", "a")
        [number, data] = await lines(response, 2)
        event = json.loads(data.removeprefix("data: "))
        validator("/components/schemas/Event").validate(event)
        assert (number, event["from"], event["worker"]) == ("id: running-1", "queued", "w")
        await own.cancel([job_id])
        assert (await lines(response, 2))[0] == "id: cancelled-1"
        assert await response.content.read() in (b"", b"\n")
    known = {"last-event-id": "cancelled-1"}
    async with session.get(f"{server.url}/job/{job_id}/events", headers=known) as response:
        assert response.status == 204


async def test_a_quiet_stream_shows_that_it_lives(
    server: Server, own: Engine, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jqmaster.server.http.following.ALIVE_EVERY_S", 0.02)
    job_id = await enqueue(own)
    for path, first in (("/events", 0), (f"/job/{job_id}/events", 2)):
        async with session.get(server.url + path) as response:
            # What the job did may come between them.
            assert (await lines(response, first + 5)).count(":") == 5


@pytest.mark.parametrize("last", ["x", "1", "1-", "1-1-1", "-1-1", "１-1", "9" * 30 + "-1"])
async def test_an_id_that_cannot_be_one(server: Server, own: Engine, session: aiohttp.ClientSession, last: str) -> None:
    async with session.get(server.url + "/events", headers={"last-event-id": last}) as response:
        assert response.status == 400


async def test_a_job_that_is_removed_ends_its_stream(
    server: Server, own: Engine, session: aiohttp.ClientSession
) -> None:
    job_id = await enqueue(own)
    async with session.get(f"{server.url}/job/{job_id}/events") as response:
        await lines(response, 2)
        await own.discard([job_id])
        assert b"cancelled" in await response.content.read()


async def test_nothing_is_left_when_clients_go(server: Server, own: Engine) -> None:
    job_id = await enqueue(own)
    events = server.master.events
    for _ in range(3):
        async with aiohttp.ClientSession() as session:
            for path in ("/events", f"/job/{job_id}/events") * 5:
                response = await session.get(server.url + path)
                await response.content.readline()
            assert events._followers == 5
        await eventually(lambda: not events._followers and not events._subscriptions._listeners)
        assert events._reader is None and events._subscriptions._reader is None


async def test_a_server_that_stops_takes_no_more_followers(
    server: Server, own: Engine, session: aiohttp.ClientSession
) -> None:
    job_id = await enqueue(own)
    server.master.draining.set()
    for path in ("/events", f"/job/{job_id}/events"):
        async with session.get(server.url + path) as response:
            assert response.status == 503


# -- many listeners -------------------------------------------------------------------------------


async def test_events_that_come_together_go_out_together(
    server: Server, own: Engine, session: aiohttp.ClientSession
) -> None:
    await own.config({"events_max": 10_000})
    async with session.get(server.url + "/events") as response:
        for _ in range(2):
            await own.enqueue([({"name": "a"}, b"\xc0")] * 1000)
        events = pieces = 0
        async for data, is_end in response.content.iter_chunks():
            events += data.count(b"data: ")
            pieces += is_end
            if events == 2000:
                break
    assert pieces < 500


async def test_what_comes_while_the_stream_is_found_is_not_missed(
    own: Engine, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, has_read = EventFeed(own, redis), asyncio.Event()
    find = feed.last_id

    async def late() -> str:
        await has_read.wait()
        await enqueue(own)
        return await find()

    monkeypatch.setattr(feed, "last_id", late)
    try:
        async with asyncio.timeout(LONG_S), contextlib.aclosing(feed.after("0-0", 0.05)) as pages:
            assert await anext(pages) is None
            has_read.set()
            while not (page := await anext(pages)):
                pass
        assert len(page) == 1
    finally:
        await feed.stop()
