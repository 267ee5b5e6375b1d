"""A namespace that scripts of schema 2 or 3 left behind is brought up to this one, while it is in use."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from typing import Any

import msgpack
import pytest
from redis import exceptions as redis_exceptions
from redis.asyncio import Redis

from jqmaster.engine import scripts
from jqmaster.engine.engine import Engine
from jqmaster.errors import Version
from keyspace import read_keys, write_keys
from migrated import (  # noqa: F401
    NEW_SETTINGS,
    SCHEMA,
    Before,
    before,
    before3,
    check_indexes,
    documents,
    engine,
    engine3,
    is_under_way,
    migrate,
    redis,
    tick,
)
from rich import Space, pack
from servers import RedisServer
from settable import SettableEngine


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
