"""What scripts cost in memory: sources are kept once for all namespaces, compressed, and go with their version."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from redis.asyncio import Redis

from fetching import fetch
from jqmaster.bundle.build import Bundle, builtin, make_script
from jqmaster.engine import manifest
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.manifest.manifest import written
from servers import RedisServer
from topologies import cluster

ROOT = Path(__file__).resolve().parents[3]
SHARED = "jq:scripts"
HEADS = hashlib.sha1(written().encode()).hexdigest()


@pytest.fixture(scope="module", autouse=True)
def packed_once() -> Iterator[None]:
    """Compressing takes most of the time, and all tests have the same versions: more than a process keeps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "packed", cache(manifest.packed))
        yield


@cache
def changed(number: int) -> Bundle:
    """Another version: each of its scripts is another one."""
    pairs = ((name, make_script(name, f"{one.source}-- {number}\n", one.flags)) for name, one in builtin().items())
    return Bundle(pairs)


async def used(client: Redis) -> int:
    return int((await client.info("memory"))["used_memory"])


async def text(client: Redis, key: str, field: str) -> str:
    return (await client.hget(key, field) or b"").decode()


@pytest.mark.parametrize(("scripts", "most"), [(builtin(), 2_100_000), (Bundle(builtin()), 1_300_000)])
async def test_what_is_loaded_is_small_and_shared(scripts: Bundle, most: int) -> None:
    # Without the 25 KB of statistics that each Redis command takes when it is first called.
    with RedisServer("--latency-tracking", "no") as server:
        async with connect(server.url) as client:
            empty = await used(client)
            await load(client, "{one}", scripts)
            one = await used(client)
            assert one - empty < most
            for number in range(10):
                await load(client, f"{{more-{number}}}", scripts)
            assert (await used(client) - one) / 10 < 60_000


async def kept(client: Redis, key: str = SHARED) -> set[str]:
    """The shas whose sources are kept, but for that of the heads."""
    return {field.decode() for field in await client.hkeys(key) if b":" not in field} - {HEADS}


async def test_the_heads_are_there_as_json(fresh_server: RedisServer) -> None:
    async with connect(fresh_server.url) as client:
        await load(client, "{jq}")
        assert await client.hget("{jq}:manifest", "operations") == HEADS.encode()
        heads = gzip.decompress(await client.hget(SHARED, HEADS))
    assert heads == (ROOT / "docs/operations.json").read_bytes()


def shas(*numbers: int) -> set[str]:
    return {one.sha for number in numbers for one in changed(number).values()}


async def test_sources_go_with_their_version(fresh_server: RedisServer) -> None:
    async with connect(fresh_server.url) as client:
        for number in (0, 1):
            await load(client, "{jq}", changed(number))
        assert await kept(client) == shas(1)
        await client.script_flush()
        for number in (0, 1):  # an older one heals itself
            assert await Engine(client, scripts=changed(number)).config()


async def test_what_another_namespace_needs_stays_until_that_is_gone(fresh_server: RedisServer) -> None:
    async with connect(fresh_server.url) as client:
        await load(client, "{other}", changed(0))
        for number in (1, 2):
            await load(client, "{jq}", changed(number))
        assert await fetch(client, "{other}") == changed(0)
        assert await kept(client) == shas(0, 2)
        await client.unlink("{other}:manifest", "{other}:meta")
        await load(client, "{jq}", changed(3))
        assert await kept(client) == shas(3)
        assert not await client.hexists(SHARED, "used:{other}")


async def test_who_may_not_share_has_its_own(fresh_server: RedisServer) -> None:
    async with connect(fresh_server.url) as admin:
        await admin.execute_command("ACL", "SETUSER", "own", "on", ">pw", "~{jq}*", "+@all")
        async with connect(f"unix://own:pw@{fresh_server.socket}") as client:
            for number in range(2):
                await load(client, "{jq}", changed(number))
            assert await text(client, "{jq}:manifest", "sources") == "{jq}:scripts"
            assert await fetch(client, "{jq}") == changed(1)
        assert not await admin.exists(SHARED)
        assert await kept(admin, "{jq}:scripts") == shas(1)


async def test_in_a_cluster_a_namespace_has_its_own() -> None:
    with cluster(1) as nodes:
        async with connect(nodes.url) as client:
            await load(client, "{jq}")
            assert await text(client, "{jq}:manifest", "sources") == "{jq}:scripts"
            assert await fetch(client, "{jq}") == builtin()
