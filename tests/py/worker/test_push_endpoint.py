"""Who can have a worker that is pushed to run a job: a master that knows its secret, and nobody else."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgpack
import pytest

from bare import program
from jqmaster.engine.engine import Engine
from jqmaster.server import signing
from jqmaster.worker import push
from jqmaster.worker.attempts import now
from parts import eventually

SECRET, OTHER = signing.new_secret(), signing.new_secret()
MSGPACK = {"content-type": "application/msgpack"}
numbers = itertools.count()


class Pushed:
    """A worker in this process that is pushed to, and what it ran."""

    def __init__(self, url: str, ran: list[Any]) -> None:
        self.url = url
        self.ran = ran

    async def post(self, headers: dict[str, str], body: bytes) -> int:
        async with (
            aiohttp.ClientSession(skip_auto_headers=["content-type"]) as session,
            session.post(f"{self.url}/worker-job", data=body, headers=headers) as response,
        ):
            return response.status


def job() -> bytes:
    told = {"id": f"{next(numbers):014x}", "token": "1-", "name": "note", "queue": "note", "priority": 0, "attempt": 1}
    packed: bytes = msgpack.packb({**told, "retry_count": 0, "timeout": 30, "argument": "ran"})
    return packed


def signed(body: bytes, secret: str = SECRET, late_s: float = 0) -> dict[str, str]:
    return signing.signed([secret], f"push-{next(numbers)}", body, time.time() - late_s)


@pytest.fixture
async def pushed(engine: Engine, redis_url: str) -> AsyncIterator[Pushed]:
    ran: list[Any] = []
    stop = asyncio.Event()
    worker = program({"note": ran.append}, redis_url, namespace=engine.namespace).worker(
        push=True, push_secrets=[SECRET]
    )
    task = asyncio.create_task(worker.serve(stop))
    [document] = await eventually(lambda: registered(engine))
    yield Pushed(document["url"], ran)
    stop.set()
    await asyncio.wait_for(task, 60)


async def registered(engine: Engine) -> list[dict[str, Any]]:
    return (await engine.workers()).documents


async def test_what_no_master_signed_is_not_run(pushed: Pushed) -> None:
    body, other = job(), job()
    for headers in ({}, signed(body, OTHER), signed(body, late_s=301), signed(body, late_s=-310), signed(other)):
        assert await pushed.post({**MSGPACK, **headers}, body) == 401
    assert pushed.ran == []


async def test_what_a_master_signed_is_run_once(pushed: Pushed, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often it is sent, as long as its timestamp is good: of a clock that is ahead it is for ten minutes."""
    body = job()
    headers = {**MSGPACK, **signed(body, late_s=-290)}
    for passed_s in (0, 0, 590):
        began_s = now()
        monkeypatch.setattr(push, "now", lambda began_s=began_s, passed_s=passed_s: began_s + passed_s)
        assert await pushed.post(headers, body) == 202
    await eventually(lambda: pushed.ran)
    await asyncio.sleep(0.1)
    assert pushed.ran == ["ran"]


async def test_another_address_is_registered_than_it_listens_at(engine: Engine, redis_url: str) -> None:
    stop = asyncio.Event()
    worker = program({"note": print}, redis_url, namespace=engine.namespace).worker(
        push=True, host="0.0.0.0", advertise="https://jobs.example/mine"
    )
    task = asyncio.create_task(worker.serve(stop))
    [document] = await eventually(lambda: registered(engine))
    assert document["url"] == "https://jobs.example/mine"
    stop.set()
    await asyncio.wait_for(task, 60)


def test_no_address_is_registered_that_is_none() -> None:
    with pytest.raises(ValueError, match="--advertise"):
        program({"note": print}).worker(push=True, host="0.0.0.0")
