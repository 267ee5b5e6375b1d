"""A namespace that scripts of schema 2 or 3 left behind is brought up to this one, while it is in use."""

from __future__ import annotations

import gzip
import random
import re
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
from redis import exceptions as redis_exceptions
from redis.asyncio import Redis

from jqmaster.engine import scripts
from jqmaster.engine.copying import export_records
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import builtin
from jqmaster.errors import Version
from keyspace import read_keys, write_keys
from rich import Space, pack
from servers import RedisServer
from settable import SettableEngine

DATA = Path(__file__).parents[1] / "data"
SCHEMA = 4
NEW_SETTINGS = {"lease_grace": 0, "events_max": 0, "stats": True}


class Before:
    """The namespace as scripts of a schema left it, and what it held."""

    def __init__(self, schema: int) -> None:
        kept = msgpack.unpackb(gzip.decompress((DATA / f"schema{schema}.msgpack.gz").read_bytes()))
        self.namespace = kept["namespace"]
        self.now_ms = kept["now_ms"]
        self.keys = kept["keys"]
        self.documents = {id_: _document(raw) for id_, raw in kept["documents"].items()}
        self.queues = [msgpack.unpackb(raw) for raw in kept["queues"]]
        self.scripts = kept["scripts"]

    def ids(self, status: str) -> list[str]:
        return [id_ for id_, document in self.documents.items() if document["status"] == status]

    def tags(self) -> Counter[str]:
        return Counter(tag for document in self.documents.values() for tag in document.get("tags", ()))

    def groups(self) -> Counter[str]:
        errors = [document for document in self.documents.values() if document["status"] == "error"]
        return Counter(document["reason"] for document in errors)


def _document(raw: bytes) -> dict[str, Any]:
    return {
        name.decode(): _plain(value) for name, value in msgpack.unpackb(raw, raw=True, strict_map_key=False).items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    return [_plain(one) for one in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def before() -> Before:
    return Before(2)


@pytest.fixture(scope="module")
def before3() -> Before:
    return Before(3)


@pytest.fixture
async def redis(fresh_server: RedisServer) -> AsyncIterator[Redis]:
    async with connect(fresh_server.url) as client:
        yield client


@pytest.fixture
async def engine(redis: Redis, before: Before) -> SettableEngine:
    """The scripts of this schema on a namespace of schema 2."""
    return await engine_on(redis, before)


@pytest.fixture
async def engine3(redis: Redis, before3: Before) -> SettableEngine:
    """And on one of schema 3."""
    return await engine_on(redis, before3)


async def engine_on(redis: Redis, before: Before) -> SettableEngine:
    await write_keys(redis, before.namespace, before.keys)
    engine = SettableEngine(redis, before.namespace, scripts=builtin("settable"))
    await engine.set_clock(before.now_ms)
    return engine


async def documents(engine: Engine, ids: list[str]) -> dict[str, dict[str, Any]]:
    return dict(zip(ids, map(_document, await engine.call("get", *ids)), strict=True))


async def tick(engine: SettableEngine, limit: int) -> None:
    await engine.tick(limit)
    await engine.advance(0.005)


async def is_under_way(engine: Engine) -> bool:
    return bool(await engine.redis.exists(f"{engine.namespace}:migration"))


async def migrate(engine: SettableEngine, limit: int = 100) -> None:
    assert await engine.call("migrate") == SCHEMA
    for _ in range(200):
        await tick(engine, limit)
        if not await is_under_way(engine):
            return
    raise AssertionError("the migration does not come to an end")


async def index(engine: Engine, kind: str) -> Counter[str]:
    """What stands in an index of jobs, by name."""
    prefix = f"{engine.namespace}:{kind}:".encode()
    found = Counter()
    async for key in engine.redis.scan_iter(match=f"{engine.namespace}:{kind}:*"):
        found[key.removeprefix(prefix).decode()] = await engine.redis.zcard(key)
    return found


async def check_indexes(engine: Engine, before: Before) -> None:
    assert await index(engine, "tagged") == before.tags()
    assert dict(await engine.redis.zrange(f"{engine.namespace}:tags", 0, -1, withscores=True)) == {
        tag.encode(): count for tag, count in before.tags().items()
    }
    assert await index(engine, "failed") == before.groups()


async def check_indexes_now(engine: Engine) -> None:
    """The indexes hold what the jobs there are now make them."""
    ids = [key.decode()[-14:] async for key in engine.redis.scan_iter(match=f"{engine.namespace}:j:*")]
    now = list((await documents(engine, ids)).values())
    assert await index(engine, "tagged") == Counter(tag for one in now for tag in one.get("tags", ()))
    failed = [one for one in now if one["status"] == "error"]
    assert await index(engine, "failed") == Counter(one.get("group", one["reason"]) for one in failed)
    assert await engine.audit_all() == []


async def one_move(space: Space, rng: random.Random, ids: list[str], queues: list[str]) -> None:
    """Something that takes a job, that has tags more often than not, to another set or another place."""
    id_ = rng.choice(ids)
    [document] = await space.engine.get(id_)
    move = rng.choice(["add", "pick", "end", "end", "cancel", "retry", "priority", "time", "tags", "discard"])
    if move == "add":
        ids.append(await space.add("new", name="mail", tags=["bulk", "new"], delay=rng.choice([0, 10])))
    elif move == "pick":
        await space.pick(rng.choice(queues), count=2)
    elif document is None:
        pass
    elif move == "end" and document["status"] == "running":
        end = rng.choice([space.finish, space.fail])
        await end(id_, document["attempt"])
    elif move == "priority":
        await space.engine.call("change", pack({"id": id_, "priority": rng.randint(-5, 5)}), b"")
    elif move == "time":
        await space.engine.call("change", pack({"id": id_, "delay": rng.choice([0, 1, 9000])}), b"")
    elif move == "tags":
        await space.engine.call("change", pack({"id": id_, "tags": rng.choice([[], ["bulk"], ["x", "y"]])}), b"")
    elif move in ("cancel", "retry", "discard"):
        await space.call(move, ids=[id_])


class TestBefore:
    async def test_every_script_refuses_and_says_what_to_do(self, engine: SettableEngine) -> None:
        with pytest.raises(Version, match=r"schema 2.*jqmaster load --migrate"):
            await engine.call("setup")
        with pytest.raises(Version, match="schema 2"):
            await engine.pick("w", "*")

    async def test_loading_leaves_it_as_it_is(self, engine: SettableEngine) -> None:
        was = await read_keys(engine.redis, engine.namespace)
        with pytest.raises(Version, match="migrate"):
            await scripts.load(engine.redis, engine.namespace)
        assert _without_ttl(await read_keys(engine.redis, engine.namespace)) == _without_ttl(was)

    async def test_a_namespace_of_a_newer_schema_is_left_alone(self, engine: SettableEngine) -> None:
        raw = await engine.redis.get(f"{engine.namespace}:meta")
        for meta in (b"\0\5" + raw[2:], b"\0\1" + raw[2:], raw[:30], b""):
            await engine.redis.set(f"{engine.namespace}:meta", meta)
            was = await read_keys(engine.redis, engine.namespace)
            with pytest.raises(Version):
                await engine.call("migrate")
            assert _without_ttl(await read_keys(engine.redis, engine.namespace)) == _without_ttl(was)


def _without_ttl(keys: list[list[Any]]) -> list[list[Any]]:
    return [[suffix, kind, ttl_ms > 0, content] for suffix, kind, ttl_ms, content in keys]


class TestAfter:
    async def test_older_scripts_refuse_from_then_on(self, engine: SettableEngine, before: Before) -> None:
        async def answer(name: str) -> str:
            arguments = {"setup": [], "tick": [msgpack.packb({})], "watch": ["00000000000001"]}[name]
            keys = (engine.namespace, f"{engine.namespace}:meta")
            try:
                return str(await engine.redis.eval(before.scripts[name], 2, *keys, *arguments))
            except redis_exceptions.ResponseError as refused:
                return str(refused)

        assert await answer("setup") == "2"
        await engine.call("migrate")
        for name in before.scripts:
            assert (await answer(name)).startswith("VERSION namespace {before} holds data of schema 4")

    async def test_jobs_and_queues_are_what_they_were(self, engine: SettableEngine, before: Before) -> None:
        await engine.call("migrate")
        for id_, document in (await documents(engine, list(before.documents))).items():
            was = before.documents[id_]
            assert {name: document.get(name) for name in was} == was
        queues = (await engine.queues(count=1000)).documents
        assert [{name: queue[name] for name in was} for queue, was in zip(queues, before.queues, strict=True)] == (
            before.queues
        )

    async def test_settings_are_kept_and_the_new_ones_have_their_defaults(self, engine: SettableEngine) -> None:
        await engine.call("migrate")
        settings = await engine.config()
        assert settings["retry_base"] == 10 and settings["done_max"] == 5000
        assert {name: settings[name] for name in NEW_SETTINGS} == NEW_SETTINGS

    async def test_everything_stored_comes_into_the_indexes(self, engine: SettableEngine, before: Before) -> None:
        await migrate(engine)
        await check_indexes(engine, before)
        assert await engine.audit_all() == []

    async def test_no_step_leaves_anything_wrong_behind(self, engine: SettableEngine, before: Before) -> None:
        await engine.call("migrate")
        assert await engine.audit_all() == []
        steps = 0
        while await is_under_way(engine):
            await tick(engine, 3)
            assert await engine.audit_all() == []
            steps += 1
        assert steps > 10
        await check_indexes(engine, before)

    async def test_migrating_again_changes_nothing(self, engine: SettableEngine) -> None:
        await engine.call("migrate")
        for _ in range(3):
            await tick(engine, 2)
            was = await read_keys(engine.redis, engine.namespace)
            assert await engine.call("migrate") == SCHEMA
            assert _without_ttl(await read_keys(engine.redis, engine.namespace)) == _without_ttl(was)
        await migrate(engine)
        was = await read_keys(engine.redis, engine.namespace)
        assert await engine.call("migrate") == SCHEMA
        assert _without_ttl(await read_keys(engine.redis, engine.namespace)) == _without_ttl(was)

    async def test_a_new_namespace_has_nothing_to_migrate(self, redis: Redis) -> None:
        engine = Engine(redis, "{new}")
        await scripts.load(redis, "{new}", migrate=True)
        was = await read_keys(redis, "{new}")
        assert await engine.call("migrate") == SCHEMA
        assert await read_keys(redis, "{new}") == was


class TestWorkGoesOn:
    async def test_running_jobs_are_finished_and_failed_ones_retried(
        self, engine: SettableEngine, before: Before
    ) -> None:
        await migrate(engine)
        space = Space(engine)
        for id_ in before.ids("running"):
            document = before.documents[id_]
            assert await space.finish(id_, document["attempt"]) == "done"
        [retrying] = before.ids("retrying")
        await engine.advance(20)
        await engine.tick()
        [document] = (await documents(engine, [retrying])).values()
        assert document["status"] == "queued"
        assert await engine.audit_all() == []

    async def test_constraints_hold(self, engine: SettableEngine) -> None:
        await migrate(engine)
        space = Space(engine)
        await space.add("one more", {"customer": "a"}, name="limited")
        page = msgpack.unpackb((await space.call("constraints", ids=["per customer"]))[1])
        assert page["running"] == 2
        assert await space.pick("limited", count=1000) == []
        assert await space.pick("strict", count=1000) == []

    async def test_everything_can_be_worked_off(self, engine: SettableEngine, before: Before) -> None:
        await migrate(engine)
        space = Space(engine)
        await space.call("queue", name="paused", paused=False)
        for constraint in ("rate", "smooth"):
            await space.call("unconstrain", id=constraint)
        await space.call("hold", id="per customer", by="c", seconds=0)
        await engine.set_clock(2_000_000_001_000)
        left = set(before.documents) - set(before.ids("done") + before.ids("error") + before.ids("cancelled"))
        for _ in range(60):
            await engine.tick(1000)
            for job in await space.pick("*", worker="w", count=100):
                assert await space.finish(job) == "done"
                left.discard(job)
            await engine.advance(11)
        # Those that may be tried no more, or whose time to start by was over.
        ended = await engine.get(*left) if left else []
        assert {document["status"] for document in ended if document} <= {"error"}
        assert await engine.audit_all() == []

    @pytest.mark.parametrize("limit", [1, 2, 5])
    async def test_jobs_that_move_meanwhile_come_out_right(
        self, engine: SettableEngine, before: Before, limit: int
    ) -> None:
        await engine.call("migrate")
        space = Space(engine)
        [retrying] = before.ids("retrying")
        running = [id_ for id_ in before.ids("running") if "tags" in before.documents[id_]]
        queued = [id_ for id_ in before.ids("queued") if "tags" in before.documents[id_]]
        moves = [
            space.add("new", name="mail", tags=["bulk", "new"]),
            space.pick("mail", count=2),
            space.finish(running[0], before.documents[running[0]]["attempt"]),
            space.fail(running[-1], before.documents[running[-1]]["attempt"], should_retry=False),
            space.call("cancel", ids=[retrying, queued[-1]]),
            space.call("tick"),
            space.pick(["limited", "mail"], count=5),
        ]
        for move in moves:
            await tick(engine, limit)
            await move
            assert await engine.audit_all() == []
        while await is_under_way(engine):
            await tick(engine, limit)
        await check_indexes_now(engine)

    @pytest.mark.parametrize("steps", range(0, 120, 10))
    async def test_jobs_that_go_back_to_where_was_looked_already_are_not_forgotten(
        self, engine: SettableEngine, before: Before, steps: int
    ) -> None:
        await engine.call("migrate")
        for _ in range(steps):
            await tick(engine, 1)
        for id_ in before.ids("running"):
            token = f"{before.documents[id_]['attempt']}-"
            await engine.call("release", pack({"worker": "w", "jobs": [[id_, token]]}))
        for id_ in before.ids("queued"):
            await engine.call("change", pack({"id": id_, "priority": -200}), b"")
        for id_ in before.ids("scheduled") + before.ids("retrying"):
            await engine.call("change", pack({"id": id_, "delay": 5}), b"")
        while await is_under_way(engine):
            await tick(engine, 1)
        await check_indexes_now(engine)

    async def test_nor_are_those_that_come_to_stand_before_that_place(
        self, engine: SettableEngine, before: Before
    ) -> None:
        sooner, later = sorted(before.ids("scheduled"), key=lambda id_: before.documents[id_]["due_ms"])
        await engine.call("migrate")
        at = {}
        while at.get(b"i") != sooner.encode():
            await tick(engine, 1)
            at = msgpack.unpackb(await engine.redis.get(f"{engine.namespace}:migration"), raw=True)
        await engine.call("change", pack({"id": later, "delay": 5}), b"")
        while await is_under_way(engine):
            await tick(engine, 1)
        await check_indexes_now(engine)

    @pytest.mark.parametrize("seed", range(3))
    async def test_whatever_happens_meanwhile(self, engine: SettableEngine, before: Before, seed: int) -> None:
        rng = random.Random(seed)
        space = Space(engine)
        ids = list(before.documents)
        queues = [queue["name"] for queue in before.queues]
        await engine.call("migrate")
        while await is_under_way(engine):
            await tick(engine, 1)
            for _ in range(rng.randrange(3)):
                await one_move(space, rng, ids, queues)
        await check_indexes_now(engine)

    async def test_a_namespace_can_be_copied_half_way(self, engine: SettableEngine) -> None:
        await engine.call("migrate")
        for _ in range(20):
            await tick(engine, 2)
        copy = SettableEngine(engine.redis, "{copy}", scripts=engine.scripts)
        async for record in export_records(engine):
            await copy.call("import", record)
        await copy.set_clock(engine.now_ms)
        while await is_under_way(copy):
            await tick(copy, 10)
        await check_indexes_now(copy)

    async def test_records_that_go_leave_the_indexes(self, engine: SettableEngine, before: Before) -> None:
        await engine.call("migrate")
        await tick(engine, 2)
        await engine.config({"done_max": 0, "error_max": 0, "cancelled_max": 0})
        await migrate(engine)
        for _ in range(10):
            await engine.tick(1000)
            await engine.advance(1)
        assert await index(engine, "failed") == Counter()
        there = [document for document in await engine.get(*before.documents) if document]
        assert len(there) < len(before.documents)
        assert await index(engine, "tagged") == Counter(tag for document in there for tag in document.get("tags", ()))
        assert await engine.audit_all() == []


class TestTokens:
    """What schema 3 started has the number of its attempt as its token, until it starts again."""

    async def test_it_is_done_at_once_and_nothing_else_changes(self, engine3: SettableEngine, before3: Before) -> None:
        was = _without_ttl(await read_keys(engine3.redis, engine3.namespace))
        assert await engine3.call("migrate") == SCHEMA
        now = _without_ttl(await read_keys(engine3.redis, engine3.namespace))
        assert [key[0] for key, old in zip(now, was, strict=True) if key != old] == [b"meta"]
        assert not await is_under_way(engine3)
        for id_, document in (await documents(engine3, list(before3.documents))).items():
            assert document == before3.documents[id_]
        assert (await engine3.config())["done_max"] == 5000
        assert await engine3.audit_all() == []
        assert await engine3.call("migrate") == SCHEMA
        assert _without_ttl(await read_keys(engine3.redis, engine3.namespace)) == now

    async def test_each_namespace_gets_a_secret_of_its_own(self, engine3: SettableEngine, before3: Before) -> None:
        secrets = set()
        for _ in range(3):
            await write_keys(engine3.redis, engine3.namespace, before3.keys)
            await engine3.call("migrate")
            secrets.add((await engine3.redis.get(f"{engine3.namespace}:meta"))[22:30])
            await engine3.advance(0.001)
        await engine3.call("setup")
        assert len(secrets) == 3

    async def test_running_jobs_go_on(self, engine3: SettableEngine, before3: Before) -> None:
        await engine3.call("migrate")
        space = Space(engine3)
        running = before3.ids("running")
        for id_ in running:
            number = before3.documents[id_]["attempt"]
            token = f"{number}-"
            held = pack({"worker": "w", "jobs": [[id_, token, {"progress": 1}], [id_, token + "0" * 12]]})
            left_ms, lost = await engine3.call("heartbeat", held)
            assert left_ms > 0 and lost == b"LOST"
            assert await space.finish(id_, number) == "done"
            assert await space.finish(id_, number) == "done"
        assert running and await engine3.audit_all() == []

    async def test_what_starts_again_has_digits(self, engine3: SettableEngine, before3: Before) -> None:
        await engine3.call("migrate")
        space = Space(engine3)
        running = {id_: before3.documents[id_]["attempt"] for id_ in before3.ids("running")}
        held = [[id_, f"{number}-"] for id_, number in running.items()]
        assert set(await space.call("release", worker="w", jobs=held)) == {b"queued"}
        for _ in range(20):
            await space.pick("*", count=1000)
        again = {id_: token for id_, token in space.tokens.items() if id_ in running}
        assert again
        for id_, token in again.items():
            assert re.fullmatch(f"{running[id_] + 1}-[0-9a-f]{{12}}", token)
            assert await space.finish(id_) == "done"
        assert await engine3.audit_all() == []

    async def test_calls_that_were_answered_before_are_answered_alike(
        self, engine3: SettableEngine, before3: Before
    ) -> None:
        await engine3.call("migrate")
        [asked] = [id_ for id_, one in before3.documents.items() if one["queue"] == "asked"]
        again = await engine3.call("enqueue", pack({"request": "token"}), pack({"name": "asked"}), pack(1))
        assert again == [asked.encode(), 1]
        reply = await engine3.call("pick", pack({"worker": "picker", "queues": "asked", "request": "pick token"}))
        assert msgpack.unpackb(reply[1])["token"] == "1-"

    async def test_a_migration_from_schema_2_that_is_under_way_goes_on(
        self, engine: SettableEngine, before: Before
    ) -> None:
        raw = await engine.redis.get(f"{engine.namespace}:meta")
        flags = bytes([raw[4] + 64])
        three = b"\0\3" + raw[2:4] + flags + raw[5:] + struct.pack(">ddd", 0, 0, 1)
        await engine.redis.set(f"{engine.namespace}:meta", three)
        await engine.redis.set(f"{engine.namespace}:migration", pack({"q": "", "l": 0}))
        await migrate(engine)
        await check_indexes(engine, before)


class TestCommands:
    async def test_loading_says_what_to_do_and_does_it_when_told(
        self, engine: SettableEngine, fresh_server: RedisServer
    ) -> None:
        refused = _run("load", fresh_server, engine.namespace)
        assert refused.returncode == 4 and "jqmaster load --migrate" in refused.stderr
        assert _run("load", fresh_server, engine.namespace, "--migrate").returncode == 0
        assert (await engine.config())["done_max"] == 5000
        assert _run("load", fresh_server, engine.namespace).returncode == 0

    async def test_serving_says_what_to_do(self, engine: SettableEngine, fresh_server: RedisServer) -> None:
        refused = _run("serve", fresh_server, engine.namespace, "--port", "0")
        assert refused.returncode == 4 and "--migrate" in refused.stderr


def _run(command: str, server: RedisServer, namespace: str, *more: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "jqmaster.cli", command, "--redis", server.url, "--namespace", namespace]
    return subprocess.run([*line, *more], capture_output=True, text=True, timeout=60)
