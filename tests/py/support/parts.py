"""Parts for tests of dispatch, waiting and workers: a worker that answers as it is told, and waiting for a
fact."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgpack
import pytest
from aiohttp import web
from redis.asyncio import Redis

from jqmaster.engine.engine import Engine, Operations
from jqmaster.server.dispatch import Dispatch
from jqmaster.server.egress import Egress
from jqmaster.server.keyring import Keyring
from jqmaster.server.meters import Meters

FINISHED, REFUSED = ("success", "failure"), ("unknown", "busy", "unreachable")
# For what comes soon, unless the machine stands still meanwhile. Who looks for faults is not so patient.
LONG_S = float(os.environ.get("JQ_WAIT", "60"))
_numbers = itertools.count()


async def eventually(fact: Callable[[], Any], timeout_s: float = LONG_S) -> Any:
    """The value of `fact` (plain or awaitable) as soon as it is true."""
    pause_s = 0.003
    async with asyncio.timeout(timeout_s):
        while True:
            value = fact()
            if isinstance(value, Awaitable):
                value = await value
            if value:
                return value
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.3, 0.05)  # what takes long needs the processor itself


def came_to(dispatch: Dispatch, *outcomes: str) -> int:
    """How many of its deliveries did."""
    told, name = dispatch.meters.registry.get_sample_value, "jq_delivery_seconds_count"
    return int(sum(told(name, {"to": "worker", "outcome": outcome}) or 0 for outcome in outcomes))


async def enqueue(engine: Engine, name: str = "mail", argument: Any = None, **fields: Any) -> str:
    [job] = await engine.enqueue([({"name": name, **fields}, msgpack.packb(argument))])
    return job.id


async def status(engine: Engine, job_id: str) -> str:
    [document] = await engine.get([job_id])
    assert document is not None
    return str(document["status"])


async def until(engine: Engine, job_id: str, *states: str, timeout_s: float = LONG_S) -> dict[str, Any]:
    """The job's document once it is in one of `states`."""
    await eventually(lambda: _is_in(engine, job_id, states), timeout_s)
    [document] = await engine.get([job_id])
    assert document is not None
    return document


async def _is_in(engine: Engine, job_id: str, states: Sequence[str]) -> bool:
    return await status(engine, job_id) in states


async def asleep(engine: Engine, count: int = 1) -> None:
    """Wait until so many clients of this Redis are blocked on wake markers."""
    await eventually(lambda: _blocked(engine.redis, count))


async def _blocked(redis: Redis, count: int) -> bool:
    info = await redis.info("clients")
    return int(info["blocked_clients"]) >= count


async def commands(redis: Redis) -> int:
    """How many commands the server has carried out since it started."""
    return int((await redis.info("stats"))["total_commands_processed"])


Handler = Callable[[dict[str, Any]], Awaitable[web.Response]]


class StubWorker:
    """A worker's HTTP API, or a receiver of notifications (at `/hook`, JSON). `answer` makes the response from the
    job; what was delivered is in `jobs` and `raw`."""

    def __init__(self, answer: Handler) -> None:
        self.answer = answer
        self.jobs: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.headers: list[list[tuple[bytes, bytes]]] = []
        self.came = asyncio.Event()
        self.under_way = 0
        self.most_under_way = 0
        self.url = ""
        self.id = ""

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.raw.append(body)
        self.headers.append([(name.lower(), value) for name, value in request.raw_headers])
        job = json.loads(body) if request.content_type == "application/json" else msgpack.unpackb(body)
        self.jobs.append(job)
        self.came.set()
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        try:
            return await self.answer(job)
        finally:
            self.under_way -= 1

    async def delivered(self, count: int = 1, timeout_s: float = LONG_S) -> list[dict[str, Any]]:
        """All jobs delivered, once there are at least `count`."""
        await eventually(lambda: len(self.jobs) >= count, timeout_s)
        return self.jobs


def answers(status: int, body: Any = b"", **headers: str) -> Handler:
    """Always the same answer; `body` is packed unless it is bytes."""
    packed = body if isinstance(body, bytes) else msgpack.packb(body)

    async def answer(_job: dict[str, Any]) -> web.Response:
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=packed, headers={"content-type": "application/msgpack", **shown})

    return answer


ACCEPTED = answers(202)


async def hang(_job: dict[str, Any]) -> web.Response:
    """Answers nothing."""
    await asyncio.Event().wait()
    raise AssertionError


@asynccontextmanager
async def listening(answer: Handler) -> AsyncIterator[StubWorker]:
    """A stub that listens and is not registered."""
    stub = StubWorker(answer)
    app = web.Application()
    app.router.add_post("/worker-job", stub.take)
    app.router.add_post("/hook", stub.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    stub.url = f"http://127.0.0.1:{port}"
    try:
        yield stub
    finally:
        await runner.cleanup()


@asynccontextmanager
async def worker(
    engine: Engine, answer: Handler, *, queues: str | list[str] = "*", max_jobs: int = 10
) -> AsyncIterator[StubWorker]:
    """A registered stub."""
    async with listening(answer) as stub:
        stub.id = await engine.register(f"stub-{next(_numbers)}", queues, url=stub.url, max_jobs=max_jobs)
        yield stub


@asynccontextmanager
async def dispatching(engine: Engine, **options: Any) -> AsyncIterator[Dispatch]:
    """A server's dispatch."""
    parts = {"meters": Meters(), "egress": Egress(), "keyring": Keyring(engine)}
    dispatch = Dispatch(engine, "test", **{**parts, **options})
    dispatch.start()
    yield dispatch
    await dispatch.stop(0.5)


@pytest.fixture
async def dispatch(engine: Engine) -> AsyncIterator[Dispatch]:
    async with dispatching(engine) as dispatch:
        yield dispatch


async def audit_all(engine: Operations) -> list[str]:
    """Every problem that the audit finds, from start to end."""
    found: list[str] = []
    cursor: str | None = None
    while cursor != "":
        cursor, problems, _ = await engine.audit(cursor=cursor)
        found += problems
    return found


async def export_records(engine: Operations, count: int = 200) -> AsyncIterator[bytes]:
    """Every record of the namespace, `count` keys or so with each call."""
    cursor: str | None = None
    while cursor != "":
        cursor, records, _ = await engine.export(cursor, count)
        for record in records:
            yield record
