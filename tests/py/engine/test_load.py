"""Loading scripts: manifest, another version, checks of the server, and the loader without Python."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import pytest
from redis.asyncio import Redis

from fetching import fetch
from jqmaster.bundle.build import Bundle, builtin, make_script
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import check_server, load
from jqmaster.errors import UnsuitableServer
from servers import RedisServer

ROOT = Path(__file__).resolve().parents[3]
NIL = b"\xc0"


async def manifest_of(redis: Redis, namespace: str) -> dict[str, str]:
    raw = await redis.hgetall(f"{namespace}:manifest")
    return {field.decode(): value.decode() for field, value in raw.items()}


def other_version(*gone: str) -> Bundle:
    """Scripts as a later version could have them: one changed, some gone, one new."""
    scripts = Bundle({name: script for name, script in builtin().items() if name not in gone})
    scripts["queue"] = make_script("queue", scripts["queue"].source + "-- changed\n", "write")
    scripts["brand_new"] = make_script("brand_new", "#!lua flags=no-writes\nreturn 1\n", "read")
    return scripts


class TestManifest:
    async def test_it_names_every_script_with_its_sha_and_where_its_source_is(
        self, redis: Redis, namespace: str
    ) -> None:
        version = await load(redis, namespace)
        manifest = await manifest_of(redis, namespace)
        assert manifest["version"] == version
        assert manifest.keys() == {"version", "sources", "operations", "library", "functions", *builtin()}
        for name, script in builtin().items():
            assert manifest[name] == script.sha
            assert gzip.decompress(await redis.hget(manifest["sources"], script.sha)).decode() == script.source

    async def test_loading_again_changes_nothing(self, redis: Redis, namespace: str) -> None:
        version = await load(redis, namespace)
        before = await manifest_of(redis, namespace), await redis.dump(f"{namespace}:meta")
        assert await load(redis, namespace) == version
        assert (await manifest_of(redis, namespace), await redis.dump(f"{namespace}:meta")) == before

    async def test_another_version_takes_its_place_and_who_has_the_one_before_goes_on(
        self, redis: Redis, namespace: str
    ) -> None:
        old = await load(redis, namespace)
        new = await load(redis, namespace, other_version("audit"))
        manifest = await manifest_of(redis, namespace)
        assert manifest["version"] == new != old
        assert manifest["queue"] == other_version()["queue"].sha != builtin()["queue"].sha
        assert "audit" not in manifest
        for scripts in (builtin(), await fetch(redis, namespace)):
            engine = Engine(redis, namespace, scripts=scripts)
            assert (await engine.queue("mail"))["name"] == "mail"


class FakeInfo:
    """Stands for a server that this machine does not have."""

    def __init__(self, **info: str) -> None:
        self.answer = info

    async def info(self) -> dict[str, str]:
        return self.answer


class TestServerCheck:
    async def test_eviction_is_refused_also_without_a_limit(self) -> None:
        with RedisServer("--maxmemory-policy", "volatile-ttl") as server:
            async with connect(server.url) as client:
                with pytest.raises(UnsuitableServer, match=r"maxmemory-policy is volatile-ttl.*noeviction"):
                    await load(client, "{jq}")
                assert await client.dbsize() == 0

    @pytest.mark.parametrize("version", ["6.2.14", "5.0.0", "6.9"])
    async def test_an_old_server_is_refused(self, version: str) -> None:
        fake = FakeInfo(redis_version=version, maxmemory_policy="noeviction")
        with pytest.raises(UnsuitableServer, match=f"this is Redis {version}"):
            await check_server(fake)  # type: ignore[arg-type]

    async def test_what_the_server_does_not_tell_is_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            await check_server(FakeInfo(redis_version="7.2.4"))  # type: ignore[arg-type]
        assert "noeviction" in caplog.text
