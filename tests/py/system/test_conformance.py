"""The conformance suite over a system of four partitions, called as one namespace.

What differs from one namespace stands in `DIFFERS`, by the reason, for which docs/partitions.md has a line; all other
cases hold as they stand. Mail is carried before each call, a balancer runs.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import redis
from redis.asyncio import Redis

from jqmaster.engine.calls import connect
from jqmaster.errors import JQError
from jqmaster.system import routing
from jqmaster.system.balance import Balancer
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import new
from settable import set_up

sys.path.insert(0, str(Path(__file__).parents[2] / "protocol"))
import run as suite

COUNT = 4
DIFFERS = {
    "Keys, channels and streams are those of one partition": {
        "cancel: a running job may be protected",
        "events: a stream of what happens",
        "events: events are published as they happen",
        "events: progress of a job that is followed",
        "release: kick takes a job from its worker",
        "waiting: a finish that fetches the next may sleep, too",
        "waiting: a job that comes later tells for how long to sleep",
        "waiting: a worker asleep is woken by a job",
        "waiting: the end of a watched job is published",
    },
    "Asked of one partition, by its namespace": {
        "bulks: what is to be done to many jobs is begun, carried on and over",
        "copying: what is no cursor and no record is refused",
        "heartbeat: what is asked of a registered worker",
        "pick: what is wrong is named",
        "waiting: another queue's job does not wake it",
        "mail: a namespace that is no partition of a system has none, and takes none",
        "setup: a namespace is set up once, and again without harm",
        "setup: a namespace of the current schema needs no migration, and has no problems",
        "setup: before that, scripts refuse",
        "systems: a call that was routed by an earlier generation is refused",
        "systems: a change of settings is for one version of them, and so is a pick; outcomes are taken all the same",
        "systems: a partition tells who has a key, and which call it answered, and makes nothing",
        "systems: a schedule comes from another partition once",
        "systems: a namespace that is no partition has no record, and takes calls however they were routed",
        "workers: a worker that picks",
        "workers: one that is asked to be quiet gets nothing",
        "workers: workers that are pushed to",
        "workers: jobs of another partition have slots of a worker",
        "workers: a partition gives jobs to workers of others",
    },
    "Limits are shared out": {
        "constraints: a key on hold, and opened again",
        "constraints: a rate: two an hour",
        "constraints: a share of what partitions share",
        "constraints: for a time only",
        "constraints: matchers see numbers by value, and text is no binary data",
        "constraints: one at a time for each customer",
    },
    "No order across partitions": {
        "setup: functions vanish with FUNCTION FLUSH only; the client loads them from the manifest",
        "setup: scripts vanish with SCRIPT FLUSH; the client loads them from the manifest",
    },
    "Bounds of a queue add up": {"enqueue: a queue that is full"},
    "All or nothing within one partition": {"cancel: all or none"},
    "Nobody looks for a job elsewhere at once": {"dependencies: depend adds and takes out; a circle is refused"},
}
HELD = [
    pytest.param(name, case, id=name)
    for name, case in suite.cases()
    if not any(name in names for names in DIFFERS.values())
]


class Merged:
    """A system as one namespace: what a reader of it does, one page after the other; all mail has come."""

    def __init__(self, system: SystemEngine) -> None:
        self.system = system
        self.courier = Courier(system)

    async def call(self, operation: str, *arguments: Any) -> Any:
        await self.courier.carry_all()
        spec = _spec(arguments)
        reply = await self.system.call(operation, *arguments)
        if operation == "jobs" or "where" in spec:
            reply = await self.walked(operation, spec, reply)
        return reply

    async def walked(self, operation: str, spec: dict[str, Any], reply: Any) -> Any:
        """A page goes on where the next partition begins, as long as it has room."""
        while reply[0].endswith(":" if isinstance(reply[0], str) else b":"):
            left = spec.get("count", 100) - (len(reply) - 1 if operation == "jobs" else reply[1])
            if left <= 0 and operation == "jobs":
                break
            told = {**spec, "cursor": reply[0], **({"count": left} if operation == "jobs" else {})}
            more = await self.system.call(operation, msgpack.packb(told))
            reply = [more[0], *reply[1:], *more[1:]] if operation == "jobs" else [more[0], reply[1] + more[1]]
        return reply


def _spec(arguments: Any) -> dict[str, Any]:
    try:
        spec = msgpack.unpackb(arguments[0]) if arguments and isinstance(arguments[0], bytes) else {}
    except ValueError:
        return {}
    return spec if isinstance(spec, dict) else {}


class Client:
    """Calls of a case, over the partitions of a system that its namespace is the first of."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.pool = redis.ConnectionPool.from_url(url, socket_timeout=60, protocol=2)
        self.connection = self.pool.get_connection()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.names: list[str] = []
        self.merged: Merged | None = None
        self.balancing: asyncio.Task[None] | None = None

    def command(self, *arguments: str | bytes | int) -> Any:
        self.connection.send_command(*arguments)
        return self.connection.read_response(disable_decoding=True)

    def call(self, namespace: str, operation: str, *arguments: str | bytes) -> Any:
        try:
            return asyncio.run_coroutine_threadsafe(self._call(namespace, operation, *arguments), self.loop).result()
        except JQError as problem:
            path = f" {problem.path}" if problem.path else ""
            raise redis.ResponseError(f"{problem.code}{path}: {problem.message}") from problem

    async def _call(self, namespace: str, operation: str, *arguments: str | bytes) -> Any:
        if self.merged is None or self.merged.system.root != namespace:
            await self.end_case()
            self.names = names = [namespace, *(f"{namespace[:-1]}:{number}~0a}}" for number in range(1, COUNT))]
            async with connect(self.url) as client:
                for name in names:
                    await set_up(client, name)
                    await client.set(f"{name}:system", new(names).packed())
            self.merged = Merged(SystemEngine(self.url, namespace))
            self.balancing = asyncio.create_task(Balancer(await self.merged.system.partitions()).run())
        return await self.merged.call(operation, *arguments)

    async def end_case(self) -> None:
        if self.merged is None:
            return
        assert self.balancing is not None
        self.balancing.cancel()
        await asyncio.gather(self.balancing, return_exceptions=True)
        async with Redis.from_url(self.url) as client:
            await client.unlink(*(f"{one}:manifest" for one in self.names))
        await self.merged.system.close()
        self.merged = None

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.end_case(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        self.pool.disconnect()


@pytest.fixture(scope="module")
def client(redis_url: str) -> Iterator[Client]:
    client = Client(redis_url)
    yield client
    client.close()


@pytest.mark.parametrize(("name", "case"), HELD)
def test_a_case_holds_over_partitions(
    client: Client, name: str, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that may be anywhere go from one partition to the next, and begin behind the first."""
    turns = itertools.cycle([1, 2, 3, 0])
    chance = routing._some
    monkeypatch.setattr(routing, "_some", lambda count, token: next(turns) if token is None else chance(count, token))
    suite.Case(client, case["steps"], False).run()


def test_what_differs_is_there_and_described() -> None:
    """A case that was renamed is not left out by mistake."""
    page = (Path(__file__).parents[3] / "docs" / "partitions.md").read_text()
    assert [reason for reason in DIFFERS if f"**{reason}.**" not in page] == []
    assert {name for names in DIFFERS.values() for name in names} <= {name for name, _ in suite.cases()}
