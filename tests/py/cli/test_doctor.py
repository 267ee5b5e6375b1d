"""`doctor`: each thing that may be wrong, as a finding that says what to do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cli_support import Cli, call, straight  # noqa: F401 (fixtures)
from jqmaster.cli.doctor import asked, of_redis
from jqmaster.engine.engine import Engine, connect

NIL = b"\xc0"
WELL = {"maxmemory_policy": "noeviction", "used_memory": 10, "maxmemory": 100, "aof_enabled": 1, "role": "master"}


def test_a_redis_that_is_well() -> None:
    assert list(of_redis(WELL, "3600 1", 0.005)) == []


@pytest.mark.parametrize(
    ("info", "save", "ahead_s", "kind", "level"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, "", 0, "eviction", "problem"),
        ({"used_memory": 85}, "", 0, "memory", "warning"),
        ({"used_memory": 99}, "", 0, "memory", "problem"),
        ({"aof_last_write_status": "err"}, "", 0, "persistence", "problem"),
        ({"aof_enabled": 0}, "3600 1", 0, "persistence", "note"),
        ({"aof_enabled": 0}, "", 0, "persistence", "warning"),
        ({"role": "slave"}, "", 0, "role", "problem"),
        ({}, "", -2, "clock", "warning"),
        ({}, "", 60, "clock", "problem"),
    ],
)
def test_a_redis_that_is_not(info: dict[str, Any], save: str, ahead_s: float, kind: str, level: str) -> None:
    [finding] = of_redis(WELL | info, save, ahead_s)
    assert (finding["kind"], finding["level"]) == (kind, level) and finding["advice"]


async def test_redis_forbids_to_be_looked_at(engine: Engine, redis_server: object) -> None:
    rules = ("on", ">pw", "~*", "&*", "+@all", "-config", "-info")
    await engine.redis.execute_command("ACL", "SETUSER", "blind", *rules)
    async with connect(f"unix://blind:pw@{redis_server.socket}") as client:  # type: ignore[attr-defined]
        info, save, ahead_s = await asked(Engine(client, engine.namespace))
    assert (info, save) == ({}, None) and abs(ahead_s) < 60 and list(of_redis(info, save, 0)) == []


def test_the_command(straight: Cli) -> None:
    said = straight.run("doctor")
    assert said.code == 1 and "! nothing is written to disk" in said.out
    assert "→ CONFIG SET appendonly yes" in said.out and said.out.endswith("1 warning\n")
    assert {one["kind"] for one in straight.run("doctor", "--json", "--quiet").documents} == {"persistence"}
    by_master = straight.call("doctor", "--url", straight.url)
    assert by_master.code == 0 and by_master.out.endswith("all well\n")
    assert straight.call("doctor", "--url", "http://127.0.0.1:1").code == 4


async def test_alerts_are_told_and_what_is_alike_once(straight: Cli, engine: Engine) -> None:
    names = [f"q{n}" for n in range(11)]
    for count, name in enumerate(names, 1):
        await engine.enqueue([({"name": name}, NIL)] * count)
        await engine.queue(name, paused=True)
    said = await asyncio.to_thread(straight.run, "doctor")
    titles = [line for line in said.out.splitlines() if "is paused" in line]
    assert len(titles) == 11 and said.out.count("Resume it") == 1 and said.out.endswith("12 warnings\n")
    documents = (await asyncio.to_thread(straight.run, "doctor", "--json", "--quiet")).documents
    assert sorted(one["queue"] for one in documents if one["kind"] == "paused") == sorted(names)
