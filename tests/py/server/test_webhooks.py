"""Notifications of ends: masters carry them, whatever receivers do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from redis.asyncio import Redis

from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.waiting import Waiting
from jqmaster.server import signing, webhooks
from jqmaster.server.egress import Egress
from jqmaster.server.meters import Meters
from jqmaster.server.webhooks import QUEUE, Webhooks
from parts import answers, enqueue, eventually, hang, listening
from processes import Process
from servers import RedisServer

SECRET, OTHER = signing.new_secret(), signing.new_secret()
DELIVERED = answers(204)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "LOOK_EVERY_S", 0.05)


@asynccontextmanager
async def carrying(engine: Engine, redis: Redis, egress: Egress | None = None) -> AsyncIterator[Webhooks]:
    waiting = Waiting(engine)
    hooks = Webhooks(engine, "test", egress or Egress(), Meters(), waiting)
    hooks.start()
    yield hooks
    waiting.drain()
    await asyncio.sleep(0.01)  # as when a server stops
    await hooks.stop(1)
    await waiting.stop()


async def end(engine: Engine, name: str = "mail", outcome: dict[str, Any] | None = None, **fields: Any) -> str:
    """A job that has ended."""
    job_id = await enqueue(engine, name, **fields)
    [job] = (await engine.pick("w", name)).jobs
    said = {"type": "success", **(outcome or {}), "id": job.id, "token": job.token}
    await engine.finish("w", [(said, b"\xc0")])
    return job_id


async def notifications(engine: Engine, status: str = "") -> list[dict[str, Any]]:
    where = {"queue": QUEUE, **({"status": status} if status else {})}
    return (await engine.jobs(where)).documents


async def ended(engine: Engine, status: str, count: int = 1) -> list[dict[str, Any]]:
    """The notifications of this state, once there are so many."""

    async def are() -> list[dict[str, Any]]:
        documents = await notifications(engine, status)
        return documents if len(documents) == count else []

    return await eventually(are)  # type: ignore[no-any-return]


# -- what is told ---------------------------------------------------------------------------------


async def test_the_end_of_a_job_is_told_once_and_signed(engine: Engine, redis: Redis) -> None:
    await engine.subscribe("notify", secrets=[SECRET, OTHER])
    async with listening(DELIVERED) as receiver, carrying(engine, redis):
        job = await end(engine, notify=f"{receiver.url}/hook?who=me")
        [told] = await receiver.delivered()
        [notification] = await ended(engine, "done")
    assert told["type"] == "job.done" and told["timestamp"].endswith("Z")
    data = told["data"]
    assert [data[field] for field in ("id", "name", "queue", "status", "attempt")] == [job, "mail", "mail", "done", 1]
    assert data["created_ms"] <= data["started_ms"] <= data["ended_ms"]
    assert not {"argument", "result", "reason"} & data.keys()
    for secret in (SECRET, OTHER):
        assert signing.refusal([secret], receiver.headers[0], receiver.raw[0]) is None
        assert signing.refusal([secret], receiver.headers[0], receiver.raw[0] + b" ")
    headers = dict(receiver.headers[0])
    assert headers[b"webhook-id"].decode() == notification["id"]
    assert headers[b"content-type"] == b"application/json"


async def test_a_look_that_fails_for_whatever_reason_is_repeated(
    engine: Engine, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, look = 0, engine.queues

    async def fails_once(*names: Any, **options: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("nobody thought of this")
        return await look(*names, **options)

    monkeypatch.setattr(engine, "queues", fails_once)
    async with listening(DELIVERED) as receiver, carrying(engine, redis):
        await end(engine, notify=f"{receiver.url}/hook")
        await receiver.delivered(timeout_s=10)  # a third of the lease


async def test_a_job_that_somebody_puts_into_the_queue_is_no_notification(engine: Engine, redis: Redis) -> None:
    await end(engine)
    async with listening(DELIVERED) as receiver, carrying(engine, redis):
        await enqueue(engine, QUEUE, {"webhook": {"url": f"{receiver.url}/hook", "event": {}}})
        [lost] = await ended(engine, "error")
        assert lost["message"] == "there is no such webhook" and not receiver.jobs


async def test_cookies_of_a_receiver_are_not_kept(engine: Engine, redis: Redis) -> None:
    async with listening(answers(204, set_cookie="known=1")) as receiver, carrying(engine, redis):
        for count in (1, 2):
            await end(engine, notify=f"{receiver.url.replace('127.0.0.1', 'localhost')}/hook")
            await ended(engine, "done", count)
    assert b"cookie" not in dict(receiver.headers[1])


# -- receivers that are not well ------------------------------------------------------------------


async def test_a_receiver_that_fails_is_told_again_until_it_answers(engine: Engine, redis: Redis) -> None:
    await engine.queue(QUEUE, set={"retry_base": 0.02, "retry_cap": 0.05})

    async def answer(_: Any) -> web.Response:
        return web.Response(status=500 if len(receiver.jobs) < 3 else 200)

    async with listening(answer) as receiver, carrying(engine, redis):
        await end(engine, notify=f"{receiver.url}/hook")
        [notification] = await ended(engine, "done")
    assert len(receiver.jobs) == 3 and notification["retry_count"] == 2
    assert len({dict(headers)[b"webhook-id"] for headers in receiver.headers}) == 1
    assert len(set(receiver.raw)) == 1
    events = (await engine.history(notification["id"]))["events"]
    assert [event["message"] for event in events if event["event"] == "failed"] == ["the receiver answered 500"] * 2


async def test_what_is_secret_in_an_address_is_in_no_log(
    engine: Engine, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.queue(QUEUE, set={"retry_base": 0.02, "retry_cap": 0.05})
    caplog.set_level(logging.INFO)
    async with carrying(engine, redis):
        await end(engine, notify="http://127.0.0.1:1/hook?token=secret")
        await ended(engine, "retrying")
    assert "127.0.0.1:1" in caplog.text and "secret" not in caplog.text


@pytest.mark.parametrize(("status", "then"), [(410, "error"), (429, "retrying"), (503, "retrying"), (307, "retrying")])
async def test_what_a_receiver_answers_decides_whether_it_is_told_again(
    engine: Engine, redis: Redis, status: int, then: str
) -> None:
    async with listening(answers(status, retry_after="120")) as receiver, carrying(engine, redis):
        await end(engine, notify=f"{receiver.url}/hook")
        [notification] = await ended(engine, then)
    assert notification["message"] == f"the receiver answered {status}"


async def test_a_receiver_that_hangs_does_not_keep_others_waiting(
    engine: Engine, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "ANSWER_S", 60)  # none of them is given up while the others come
    async with listening(hang) as hanging, listening(DELIVERED) as receiver:
        for _ in range(Webhooks.most + 20):
            await enqueue(engine, notify=f"{hanging.url}/hook")
        jobs = (await engine.pick("w", "mail", count=1000)).jobs
        async with carrying(engine, redis):
            await engine.finish("w", [({"type": "success", "id": j.id, "token": j.token}, b"\xc0") for j in jobs])
            await hanging.delivered(webhooks.MOST_EACH)
            await end(engine, "b", notify=f"{receiver.url}/hook")
            await receiver.delivered()
            assert hanging.most_under_way <= webhooks.MOST_EACH


async def test_nothing_of_an_answer_is_read_or_told(engine: Engine, redis: Redis) -> None:
    async def endless(request: Any) -> web.Response:
        return web.Response(status=400, body=b"internal secret " * 1_000_000)

    async with listening(endless) as receiver, carrying(engine, redis):
        await end(engine, notify=f"{receiver.url}/hook")
        [notification] = await ended(engine, "retrying")
        document = (await engine.get([notification["id"]]))[0]
        history = await engine.history(notification["id"])
    assert notification["message"] == "the receiver answered 400"
    assert "internal secret" not in str([document, history])


async def test_it_goes_only_where_the_master_may_push(engine: Engine, redis: Redis) -> None:
    async with listening(DELIVERED) as receiver, carrying(engine, redis, egress=Egress("")):
        await end(engine, notify=f"{receiver.url}/hook")
        [barred] = await ended(engine, "retrying")
    assert "this server may not push to 127.0.0.1" in barred["message"] and not receiver.jobs


# -- masters that die -----------------------------------------------------------------------------


@pytest.mark.faults
async def test_a_master_that_is_killed_loses_no_notification() -> None:
    """One dies between the end and the notification, one while it delivers: what it had goes to another."""

    async def answer(_: Any) -> web.Response:
        if len(receiver.jobs) == 1:
            await asyncio.sleep(60)
        return web.Response(status=204)

    with RedisServer() as server:
        serve = "jqmaster", "serve", "--redis", server.url, "--port", "0"
        async with listening(answer) as receiver:
            with Process(*serve, ready="listens on") as master:
                async with connect(server.url) as redis:
                    engine = Engine(redis)
                    await engine.queue(QUEUE)  # so that masters wait for them
                    job = await end(engine, notify=f"{receiver.url}/hook")
                    await receiver.delivered()  # until there is the queue it is asked for every 10 s
                    master.kill()
                    other = await end(engine, notify=f"{receiver.url}/hook")
                    with Process(*serve, ready="listens on"):
                        await receiver.delivered(2)
                        held, *_ = await notifications(engine, "running")  # the other is not yet answered, perhaps
                        assert await engine.kick([held["id"]]) == ["queued"]  # or its lease, of half a minute
                        await receiver.delivered(3)
                        await ended(engine, "done", 2)
    assert [told["data"]["id"] for told in receiver.jobs] == [job, other, job]
    ids = [dict(headers)[b"webhook-id"] for headers in receiver.headers]
    assert ids[0] == ids[2] != ids[1]
