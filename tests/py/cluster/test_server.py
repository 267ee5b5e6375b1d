"""A server of a cluster: what it pushes, what is asked of it over HTTP, and its streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from jqmaster.cluster.cluster import Cluster
from jqmaster.cluster.names import home_of
from jqmaster.server.server import ServeOptions, Server
from parts import answers, until, worker
from test_jobs import add, places
from topologies import Cluster as RedisCluster

KEYS = {home_of(f"k{number}", 6): f"k{number}" for number in range(200)}


@pytest.fixture
async def server(nodes: RedisCluster, name: str) -> AsyncIterator[Server]:
    async with Server(ServeOptions(redis_url=nodes.url, namespace=name, port=0)) as server:
        yield server


@pytest.fixture
async def http(server: Server) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.url, headers={"content-type": "application/json"}) as session:
        yield session


async def send(http: aiohttp.ClientSession, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """What is answered."""
    async with http.request(method, path, json=body, headers=headers) as response:
        content = await response.read()
        assert response.status < 300, (response.status, content)
        return json.loads(content) if content else None


async def test_a_worker_gets_the_jobs_of_all_partitions_and_has_its_slots_divided(server: Server, jq: Cluster) -> None:
    async with worker(jq, answers(200, {"type": "success"}), max_jobs=8) as stub:
        [document] = (await jq.workers()).documents
        assert (document["id"], document["max_jobs"]) == (stub.id, 8)
        slots = [(await engine.workers()).documents[0]["max_jobs"] for engine in jq.engines]
        assert slots == [2, 2, 1, 1, 1, 1]
        ids = [job for key in KEYS.values() for job in await add(jq, {"unique": key})]
        for job in ids:
            await until(jq, job, "done")
        assert places(ids) == set(range(6))
        assert await jq.heartbeat(stub.id, []) == []
        assert await jq.unregister(stub.id) == 0
        assert (await jq.workers()).documents == []


async def test_jobs_over_http(http: aiohttp.ClientSession, jq: Cluster) -> None:
    ids = [(await send(http, "POST", "/job", {"name": "a", "unique": key}))["job_id"] for key in KEYS.values()]
    assert places(ids) == set(range(6))
    many = await send(http, "POST", "/jobs", {"jobs": [{"name": "a", "argument": number} for number in range(5)]})
    assert len(many["job_ids"]) == 5
    assert (await send(http, "GET", f"/job/{ids[2]}"))["status"] == "queued"
    assert (await send(http, "GET", "/queues?names=a"))["queues"][0]["queued"] == 11
    listed = await send(http, "GET", "/jobs?queue=a&count=4")
    assert len(listed["jobs"]) == 4
    more = await send(http, "GET", f"/jobs?queue=a&cursor={listed['cursor']}")
    assert len(more["jobs"]) == 7
    async with http.get("/metrics", headers={"accept": "text/plain"}) as response:
        assert response.status == 200
    async with http.get("/health") as response:
        assert response.status == 200


async def test_a_job_that_is_refused_touches_none_that_comes_with_it(http: aiohttp.ClientSession) -> None:
    posts = [{"name": "a", **({"unique": f"u{n}"} if n % 5 else {"priority": "high"})} for n in range(30)]
    answers = await asyncio.gather(*(send(http, "POST", "/job", post) for post in posts), return_exceptions=True)
    assert [isinstance(answer, AssertionError) for answer in answers] == [n % 5 == 0 for n in range(30)]
    assert (await send(http, "GET", "/queues?names=a"))["queues"][0]["queued"] == 24


async def test_long_polls_and_ends(http: aiohttp.ClientSession, jq: Cluster) -> None:
    polls = [
        asyncio.create_task(send(http, "POST", "/pick", {"worker": f"w{n}", "queues": ["a"], "timeout": 30}))
        for n in range(6)
    ]
    await asyncio.sleep(0.5)
    ids = [job for key in KEYS.values() for job in await add(jq, {"unique": key, "keep_result": True})]
    picked = [(poll, job) for poll in polls for job in (await poll)["jobs"]]
    assert sorted(job["id"] for _, job in picked) == sorted(ids)
    ends = [asyncio.create_task(send(http, "GET", f"/job/{one}/polling?timeout=30")) for one in ids]
    await asyncio.sleep(0.2)
    outcomes = [{"id": job["id"], "token": job["token"], "type": "success", "result": 1} for _, job in picked]
    await send(http, "POST", "/done", {"outcomes": outcomes}, **{"worker-id": "w0"})
    await asyncio.wait_for(asyncio.gather(*ends), 20)
    assert await send(http, "GET", f"/job/{ids[4]}/result") == 1


async def test_a_partition_that_vanished_is_named(http: aiohttp.ClientSession, jq: Cluster) -> None:
    await send(http, "GET", "/queues")
    await jq.engines[2].redis.delete(f"{jq.engines[2].namespace}:meta")
    async with http.get("/queues") as response:
        assert response.status == 503
        assert f"namespace {jq.engines[2].namespace} was here and has vanished" in await response.text()
