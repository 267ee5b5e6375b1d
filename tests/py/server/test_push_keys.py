"""A worker that is pushed to has what the key may with which it was registered, for as long as that is good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from http_support import api, master  # noqa: F401
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.http import HttpEngine
from jqmaster.server.keyring import KNOWN_S
from jqmaster.server.server import ServeOptions, Server
from keys_support import SOON_S, Keyed, keyed  # noqa: F401
from parts import StubWorker, answers, enqueue, eventually, listening, status, until

DONE = {"type": "success", "result": None}


@pytest.fixture
async def two(redis_url: str, namespace: str) -> AsyncIterator[list[Server]]:
    """Masters of one namespace: either may push."""
    options = [ServeOptions(redis_url=redis_url, namespace=namespace, port=0) for _ in range(2)]
    async with Server(options[0]) as one, Server(options[1]) as other:
        yield [one, other]


@pytest.fixture
async def own(redis_url: str, namespace: str) -> AsyncIterator[Engine]:
    async with connect(redis_url) as redis:
        yield Engine(redis, namespace)


async def register(own: Engine, servers: list[Server], stub: StubWorker, **bounds: Any) -> str:
    """Register the worker with a key of its own; the key's id."""
    made = await own.grant("box", ["worker"], **bounds)
    await asyncio.sleep(KNOWN_S)
    via = HttpEngine([servers[0].url], made["key"])
    await via.register("box", ["mail"], url=stub.url)
    await via.close()
    return str(made["id"])


@pytest.mark.parametrize(
    ("follows", "refused"),
    [
        ({"enqueue": [{"name": "mail"}, {"name": "other"}]}, "other"),
        ({"enqueue": [{"name": "mail.x", "queue": "other"}]}, "other"),
        ({"move": {"name": "other"}}, "other"),
        ({"move": {"name": "mail", "queue": "other"}}, "other"),
    ],
)
async def test_what_an_answer_asks_for_stays_within_the_queues_of_the_key(
    two: list[Server], own: Engine, follows: dict[str, Any], refused: str
) -> None:
    async with listening(answers(200, {**DONE, **follows})) as stub:
        await register(own, two, stub, queues=["mail*"])
        job = await enqueue(own, "mail", max_retry=0)
        document = await until(own, job, "error")
    assert f"this key is bound to queues: {refused} is not among them" in document["message"]
    assert [one["id"] for one in (await own.jobs()).documents] == [job]


@pytest.mark.parametrize("bounds", [{"queues": ["mail*", "audit"]}, {}])
async def test_what_is_within_them_follows(two: list[Server], own: Engine, bounds: dict[str, Any]) -> None:
    async with listening(answers(200, {**DONE, "enqueue": [{"name": "x", "queue": "audit"}]})) as stub:
        await register(own, two, stub, **bounds)
        await until(own, await enqueue(own, "mail", keep_result=True), "done")
    assert [one["name"] for one in (await own.jobs({"queue": "audit"})).documents] == ["x"]


async def test_a_revoked_keys_worker_gets_nothing_more(two: list[Server], own: Engine) -> None:
    async with listening(answers(200, DONE)) as stub:
        key = await register(own, two, stub)
        await until(own, await enqueue(own, "mail", keep_result=True), "done")
        await own.config({"worker_ttl": 2})
        await own.revoke(key)
        jobs = [await enqueue(own, "mail", keep_result=True) for _ in range(3)]
        await asyncio.sleep(SOON_S)
        assert len(stub.jobs) == 1 and {await status(own, job) for job in jobs} == {"queued"}

        async def is_gone() -> bool:
            return [one["state"] for one in (await own.workers()).documents] == ["gone"]

        await eventually(is_gone)
        await register(own, two, stub)  # with another
        for job in jobs:
            await until(own, job, "done")


async def test_an_answer_that_comes_after_the_revocation_is_not_taken(two: list[Server], own: Engine) -> None:
    go_on = asyncio.Event()

    async def answer(job: dict[str, Any]) -> web.Response:
        await go_on.wait()
        return await answers(200, {**DONE, "enqueue": [{"name": "mail"}]})(job)

    async with listening(answer) as stub:
        key = await register(own, two, stub)
        job = await enqueue(own, "mail", max_retry=0)
        await stub.delivered()
        await own.revoke(key)
        await asyncio.sleep(KNOWN_S)
        go_on.set()
        document = await until(own, job, "queued")
    assert document["attempt"] == 1 and [one["id"] for one in (await own.jobs()).documents] == [job]
