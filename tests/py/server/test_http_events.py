"""Server-sent events on the wire: their form, what is refused, and that nothing stays when a client goes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from http_support import validate
from jqmaster.engine.engine import Engine, connect
from jqmaster.server.server import ServeOptions, Server
from parts import eventually


@pytest.fixture
async def server(redis_url: str, namespace: str) -> AsyncIterator[Server]:
    async with Server(ServeOptions(redis_url=redis_url, namespace=namespace, port=0)) as server:
        yield server


@pytest.fixture
async def own(redis_url: str, namespace: str, server: Server) -> AsyncIterator[Engine]:
    async with connect(redis_url) as redis:
        engine = Engine(redis, namespace)
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


async def test_the_form_of_a_jobs_events(server: Server, own: Engine, session: aiohttp.ClientSession) -> None:
    job_id = await enqueue(own)
    async with session.get(f"{server.url}/job/{job_id}/events") as response:
        [number, data] = await lines(response, 2)
        assert number == "id: queued-0"
        validate("/components/schemas/Event", json.loads(data.removeprefix("data: ")))
        await own.pick("w", "a")
        [number, data] = await lines(response, 2)
        event = json.loads(data.removeprefix("data: "))
        validate("/components/schemas/Event", event)
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
    async with session.get(f"{server.url}/job/{job_id}/events") as response:
        # What the job did may come between them.
        assert (await lines(response, 7)).count(":") == 5


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
    subscriptions = server.master.ended.subscriptions
    for _ in range(3):
        async with aiohttp.ClientSession() as session:
            for _ in range(5):
                response = await session.get(f"{server.url}/job/{job_id}/events")
                await response.content.readline()
        await eventually(lambda: not subscriptions._listeners)
        assert subscriptions._reader is None


async def test_a_server_that_stops_takes_no_more_followers(
    server: Server, own: Engine, session: aiohttp.ClientSession
) -> None:
    job_id = await enqueue(own)
    server.master.draining.set()
    async with session.get(f"{server.url}/job/{job_id}/events") as response:
        assert response.status == 503
