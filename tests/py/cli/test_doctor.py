"""`doctor`: each thing that may be wrong, as a finding that says what to do."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from cli_support import Cli, call, straight  # noqa: F401 (fixtures)
from jqmaster.doctor import doctor, redis_side
from jqmaster.doctor.redis_side import Server
from jqmaster.engine.engine import Engine
from settable import SettableEngine

NIL = b"\xc0"


async def test_alerts_of_the_namespace_are_findings(settable: SettableEngine) -> None:
    [well] = [one for one in await doctor.look(settable) if one["kind"] == "alerts"]
    assert well["level"] == "ok"
    await settable.enqueue([({"name": "mail"}, NIL)] * 3)
    await settable.advance(60)
    [first, *_] = await doctor.look(settable)
    assert (first["kind"], first["level"], first["queue"]) == ("unserved", "problem", "mail")
    assert first["since_ms"] == settable.now_ms - 60_000
    assert "3 jobs" in first["text"] and "Start a worker" in first["advice"]


WELL = Server(
    0, 5.0, own="1", current="1", config={"save": "3600 1"},
    info={"redis_version": "7.2.4", "maxmemory_policy": "noeviction", "used_memory": 10, "maxmemory": 100,
          "aof_enabled": 1, "role": "master"},
)  # fmt: skip


def test_a_redis_that_is_well() -> None:
    assert {one["level"] for one in redis_side.findings(WELL)} == {"ok"}


@pytest.mark.parametrize(
    ("changes", "check", "level"),
    [
        ({"info": {"redis_version": "6.2.0"}}, "redis", "problem"),
        ({"info": {"maxmemory_policy": "allkeys-lru"}}, "eviction", "problem"),
        ({"info": {"used_memory": 85}}, "memory", "warning"),
        ({"info": {"used_memory": 99}}, "memory", "problem"),
        ({"info": {"aof_last_write_status": "err"}}, "persistence", "problem"),
        ({"info": {"aof_enabled": 0}}, "persistence", "note"),
        ({"info": {"aof_enabled": 0}, "config": {"save": ""}}, "persistence", "warning"),
        ({"info": {"role": "slave"}}, "role", "problem"),
        ({"ahead_ms": -2000.0}, "clock", "warning"),
        ({"ahead_ms": 60_000.0}, "clock", "problem"),
        ({"trouble": "VERSION older"}, "scripts", "problem"),
        ({"current": "0"}, "scripts", "note"),
        ({"current": None}, "scripts", "warning"),
        ({"form": "scripts"}, "form", "note"),
        ({"form": "scripts", "wants": "functions"}, "form", "problem"),
        ({"slow": [(0, 150.0, "EVALSHA")]}, "slow", "warning"),
    ],
)
def test_a_redis_that_is_not(changes: dict, check: str, level: str) -> None:
    info = {**WELL.info, **changes.pop("info", {})}
    [finding] = [one for one in redis_side.findings(replace(WELL, info=info, **changes)) if one["level"] != "ok"]
    assert (finding["kind"], finding["level"]) == (check, level)
    assert finding["advice"] and finding["means"]


async def test_a_key_that_is_named_as_the_namespace(engine: Engine) -> None:
    await engine.redis.set(engine.namespace, "x")
    try:
        [finding] = [one for one in await doctor.look(engine) if one["kind"] == "namespace"]
    finally:
        await engine.redis.unlink(engine.namespace)
    assert finding["level"] == "problem"
    assert finding["text"] == f"there is a key named {engine.namespace}, which no namespace may have"


async def test_looking_at_a_real_redis(engine: Engine) -> None:
    server = await redis_side.look(engine)
    assert abs(server.now_ms - time.time() * 1000) < 60_000 and server.current == server.own
    findings = await doctor.look(engine)
    assert [one["kind"] for one in findings if one["level"] in ("problem", "warning")] == ["persistence"]


async def test_redis_forbids_to_be_looked_at(engine: Engine, redis_server: object) -> None:
    from jqmaster.engine.engine import connect

    rules = ("on", ">pw", "~*", "&*", "+@all", "-config", "-info", "-slowlog")
    await engine.redis.execute_command("ACL", "SETUSER", "blind", *rules)
    async with connect(f"unix://blind:pw@{redis_server.socket}") as client:  # type: ignore[attr-defined]
        server = await redis_side.look(Engine(client, engine.namespace))
    assert {one["level"] for one in redis_side.findings(server)} <= {"note", "ok"}


def test_the_command(straight: Cli) -> None:
    said = straight.run("doctor")
    assert said.code == 1 and "! nothing is written to disk" in said.out
    assert "→ CONFIG SET appendonly yes" in said.out and said.out.endswith("1 warning\n")
    assert {one["kind"] for one in straight.run("doctor", "--json", "--quiet").documents} == {"persistence"}
    by_master = straight.call("doctor", "--url", straight.url)
    assert by_master.code == 0 and by_master.out.endswith("all well\n")
    assert straight.call("doctor", "--url", "http://127.0.0.1:1").code == 4


async def test_the_command_says_once_what_is_alike(straight: Cli, engine: Engine) -> None:
    names = [f"q{n}" for n in range(11)]
    for count, name in enumerate(names, 1):
        await engine.enqueue([({"name": name}, NIL)] * count)
        await engine.queue(name, paused=True)
    said = await asyncio.to_thread(straight.run, "doctor")
    titles = [line for line in said.out.splitlines() if "is paused" in line]
    assert len(titles) == 11 and said.out.count("Resume it") == 1 and said.out.endswith("12 warnings\n")
    documents = (await asyncio.to_thread(straight.run, "doctor", "--json", "--quiet")).documents
    assert sorted(one["queue"] for one in documents if one["kind"] == "paused") == sorted(names)
