"""What a library of functions remembers is never served in place of the data: servers that have worked on one
world find themselves with the data of another, by failover, restart, reload and copies. Each world says what
is so in it, and each server is asked by the same calls that it remembers."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from jqmaster.engine import copying
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.errors import Full
from parts import eventually
from servers import RedisServer

NIL = b"\xc0"
QUEUES = ("line", "narrow", "still", "limited", "once", "life")
UNIQUE = {"name": "once", "unique": "u"}

BEFORE = {
    "line": [("first", 0, 30), ("second", 0, 30)], "full": False, "paused": False, "together": 2,
    "holder": "first", "kept": True, "events": False,
}  # fmt: skip
AFTER = {
    "line": [("second", 0, 30), ("first", 5, 77)], "full": True, "paused": True, "together": 1,
    "holder": "second", "kept": False, "events": True,
}  # fmt: skip


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Place:
    """One server with its engine, which calls functions."""

    def __init__(self, server: RedisServer, client: Redis) -> None:
        self.server, self.client = server, client
        self.engine = Engine(client, form="functions")

    async def enqueue(self, spec: dict[str, Any]) -> tuple[str, bool]:
        [job] = await self.engine.enqueue([(spec, NIL)])
        return job.id, job.created

    async def end_one(self, queue: str) -> str:
        [job] = (await self.engine.pick("w", queue)).jobs
        outcome = {"id": job.id, "token": job.token, "type": "success"}
        assert (await self.engine.finish("w", [(outcome, NIL)])).states == ["done"]
        return job.id

    async def warm(self) -> None:
        """Whatever is called here has been called before: by the bytes of its specs, records, settings."""
        for _ in range(3):
            for queue in QUEUES:
                await self.enqueue({"name": queue})
                await self.end_one(queue)

    async def look(self) -> None:
        """Works on this world and leaves it as it is."""
        for queue in QUEUES:
            job, _ = await self.enqueue({"name": queue})
            assert await self.engine.cancel([job]) == ["queued"]
        await self.enqueue({"name": "life"})
        await self.end_one("life")
        assert (await self.enqueue(UNIQUE))[1] is False

    async def begin(self) -> dict[str, str]:
        """The world `BEFORE`, and this server has worked on it. Gives ids by what they are called."""
        await load(self.client, "{jq}")
        await self.warm()
        first, second = [(await self.enqueue({"name": "line"}))[0] for _ in range(2)]
        for queue in ("narrow", "still", "limited", "limited"):
            await self.enqueue({"name": queue})
        holder, _ = await self.enqueue(UNIQUE)
        assert (await self.enqueue(UNIQUE)) == (holder, False)
        return {first: "first", second: "second", holder: "first"}

    async def change(self, names: dict[str, str]) -> None:
        """The world `AFTER`, from the other, and this server has worked on it."""
        engine = self.engine
        first = min(names)
        assert await engine.change([({"id": first, "priority": 5, "timeout": 77}, b"")]) == ["queued"]
        await engine.queue("narrow", max_waiting=1)
        await engine.queue("still", paused=True)
        await self.end_one("once")
        holder, created = await self.enqueue(UNIQUE)
        assert created
        names[holder] = "second"
        await engine.constrain("k", {"name": "limited"}, concurrency=1)
        await engine.config({"done_max": 0, "events_max": 100})
        for _ in range(3):
            await self.enqueue({"name": "life"})
            await self.end_one("life")
            with pytest.raises(Full):
                await self.enqueue({"name": "narrow"})
            assert not (await engine.pick("w", "still")).jobs
        await self.client.delete("{jq}:events")

    async def facts(self, names: dict[str, str]) -> dict[str, Any]:
        """What is so, as the functions tell."""
        engine = self.engine
        picked = (await engine.pick("w", "line", 2)).jobs
        facts: dict[str, Any] = {
            "line": [(names[job.id], job.priority, job.timeout) for job in picked],
            "full": False,
            "paused": not (await engine.pick("w", "still")).jobs,
            "together": len((await engine.pick("w", "limited", 2)).jobs),
        }
        try:
            await self.enqueue({"name": "narrow"})
        except Full:
            facts["full"] = True
        holder, created = await self.enqueue(UNIQUE)
        facts["holder"] = created or names[holder]
        await self.enqueue({"name": "life"})
        [doc] = await engine.get([await self.end_one("life")])
        facts["kept"] = doc is not None
        facts["events"] = await self.client.exists("{jq}:events") == 1
        assert await engine.audit_all() == []
        assert await engine.form_in_use() == "functions"
        return facts

    # --- as one of a pair ---

    async def follow(self, primary: Place) -> None:
        """Becomes the replica of another, and has all its data when this returns."""
        port = (await primary.client.config_get("port"))["port"]
        await self.client.replicaof("127.0.0.1", port)
        await primary.is_copied_to(self)

    async def is_copied_to(self, replica: Place) -> None:
        """Waits until a replica has every write."""

        async def is_there() -> bool:
            state = await replica.client.info("replication")
            written = (await self.client.info("replication"))["master_repl_offset"]
            return state.get("master_link_status") == "up" and state["slave_repl_offset"] == written

        await eventually(is_there, 60)

    async def lead(self) -> None:
        await self.client.execute_command("REPLICAOF", "NO", "ONE")


@contextlib.asynccontextmanager
async def serving(*arguments: str) -> AsyncIterator[Place]:
    with RedisServer(*arguments) as server:
        async with connect(server.url) as client:
            yield Place(server, client)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with serving("--enable-debug-command", "yes") as place:
        yield place


class TestOneServer:
    @pytest.mark.parametrize("persistence", ["rdb", "aof"])
    async def test_a_restart(self, persistence: str) -> None:
        arguments = {"rdb": (), "aof": ("--appendonly", "yes", "--appendfsync", "always")}
        async with serving(*arguments[persistence]) as place:
            names = await place.begin()
            if persistence == "rdb":
                await place.client.save()
            await place.change(names)
            place.server.kill()
            place.server.start()
            await place.client.connection_pool.disconnect()
            assert await place.facts(names) == (BEFORE if persistence == "rdb" else AFTER)

    @pytest.mark.parametrize("is_back", [False, True], ids=["the same data", "older data"])
    async def test_debug_reload(self, place: Place, is_back: bool) -> None:
        names = await place.begin()
        await place.client.save()
        await place.change(names)
        await place.client.execute_command("DEBUG", "RELOAD", *(["NOSAVE"] if is_back else []))
        assert await place.facts(names) == (BEFORE if is_back else AFTER)

    async def test_flushall_and_restore(self, place: Place) -> None:
        names = await place.begin()
        copy = {key: await place.client.dump(key) for key in await place.client.keys()}
        await place.change(names)
        await place.client.flushall()
        for key, value in copy.items():
            await place.client.restore(key, 0, value)
        assert await place.facts(names) == BEFORE

    async def test_flushall_and_import(self, place: Place) -> None:
        names = await place.begin()
        records = [record async for record in copying.export_records(place.engine)]
        await place.change(names)
        await place.client.flushall()
        await place.engine.raw("import", *records)
        assert await place.facts(names) == BEFORE

    async def test_two_databases_that_take_turns(self, place: Place) -> None:
        names = await place.begin()
        async with connect(place.server.url) as client:
            client.connection_pool.connection_kwargs["db"] = 1  # which no URL may say
            other = Place(place.server, client)
            others = await other.begin()
            await other.change(others)
            await place.client.execute_command("SWAPDB", 0, 1)
            assert await place.facts(others) == AFTER
            assert await other.facts(names) == BEFORE


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Place, Place]]:
    """A primary, and a replica that nobody has called. They find each other by ports."""
    first, second = [("--bind", "127.0.0.1", "--port", str(free_port())) for _ in range(2)]
    async with serving(*first) as one, serving(*second) as other:
        await other.follow(one)
        yield one, other


@pytest.mark.faults
class TestFailover:
    """The first server is `one`, the other its replica; `begin` and `change` say which of them worked."""

    async def test_to_a_replica_that_never_worked(self, pair: tuple[Place, Place]) -> None:
        one, other = pair
        names = await one.begin()
        await one.change(names)
        await one.is_copied_to(other)
        one.server.kill()
        await other.lead()
        assert await other.facts(names) == AFTER

    async def test_back_to_who_worked_on_what_was_before(self, pair: tuple[Place, Place]) -> None:
        one, other = pair
        names = await one.begin()
        await one.is_copied_to(other)
        await other.lead()
        await one.follow(other)
        # It goes on with what it has, its library and what that remembers too.
        assert (await other.client.info("stats"))["sync_partial_ok"] == 1
        await other.change(names)
        await other.is_copied_to(one)
        await one.lead()
        assert await one.facts(names) == AFTER

    async def test_back_to_who_worked_on_what_was_lost(self, pair: tuple[Place, Place]) -> None:
        """The replica was behind when it took over: what `one` remembers has never been, for the others."""
        one, other = pair
        names = await one.begin()
        await one.is_copied_to(other)
        await other.lead()
        await one.change(names)
        await one.follow(other)
        await one.lead()
        assert await one.facts(names) == BEFORE

    async def test_to_and_fro(self, pair: tuple[Place, Place]) -> None:
        """Both have worked on both, and were replicas between."""
        one, other = pair
        names = await one.begin()
        await one.is_copied_to(other)
        await other.lead()
        await one.follow(other)
        await other.look()
        await other.is_copied_to(one)
        await one.lead()
        await other.follow(one)
        await one.change(names)
        await one.is_copied_to(other)
        await other.lead()
        assert await other.facts(names) == AFTER

    async def test_a_token_of_what_was_lost(self, pair: tuple[Place, Place]) -> None:
        one, other = pair
        await one.begin()
        await one.is_copied_to(other)
        await other.lead()
        [lost] = (await one.engine.pick("w", "line")).jobs
        await one.follow(other)
        await one.lead()
        [job] = (await one.engine.pick("w", "line")).jobs
        assert (job.id, job.attempt) == (lost.id, lost.attempt) and job.token != lost.token
        outcomes = [({"id": job.id, "token": token, "type": "success"}, NIL) for token in (lost.token, job.token)]
        assert (await one.engine.finish("w", outcomes)).states == ["LOST", "done"]
