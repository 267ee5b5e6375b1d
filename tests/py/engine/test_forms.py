"""Functions and scripts: which of them are loaded and called, and what happens where they cannot be."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from fetching import fetch
from jqmaster import JQ
from jqmaster.bundle.build import Bundle, Library, builtin
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.errors import Forbidden
from jqmaster.server.server import ServeOptions, Server
from parts import eventually
from servers import RedisServer
from test_load import manifest_of

DOCS = Path(__file__).resolve().parents[3] / "docs"
NIL = b"\xc0"
OPERATIONS = builtin().library.functions  # type: ignore[union-attr]
FORMS = {"functions": builtin(), "scripts": Bundle(builtin())}


def version(name: str) -> Bundle:
    """Scripts and library as another version could have them."""
    scripts = Bundle(builtin())
    library = builtin().library
    assert library
    scripts.library = Library(name, library.source.replace(library.name, name), library.functions)
    return scripts


async def libraries(client: Redis) -> set[str]:
    listed = await client.execute_command("FUNCTION", "LIST")
    return {found[1].decode() for found in listed}


async def calls(client: Redis) -> dict[str, int]:
    """How often each command was called that calls an operation, since the last time."""
    stats = await client.info("commandstats")
    await client.config_resetstat()
    counts = {name: stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("fcall", "evalsha")}
    return {name: count for name, count in counts.items() if count}


async def life(engine: Engine) -> None:
    """One job from its beginning to its end."""
    [job] = await engine.enqueue([({"name": "life"}, NIL)])
    [picked] = (await engine.pick("w", "life")).jobs
    assert picked.id == job.id
    outcome = {"id": job.id, "token": picked.token, "type": "success"}
    assert (await engine.finish("w", [(outcome, NIL)])).states == ["done"]


class TestWhatIsCalled:
    async def test_operations_of_the_library_are_called_as_functions_and_all_others_as_scripts(
        self, fresh_server: RedisServer
    ) -> None:
        async with connect(fresh_server.url) as client:
            await load(client, "{jq}")
            engine = Engine(client)
            await engine.config()  # a script is loaded when it is first called
            await calls(client)
            await life(engine)
            assert await calls(client) == {"fcall": 3}
            await engine.config()
            assert await calls(client) == {"evalsha": 1}
            assert engine.form_in_use == "functions"

    async def test_scripts_without_a_library_load_none_and_calls_no_function(self, fresh_server: RedisServer) -> None:
        async with connect(fresh_server.url) as client:
            await load(client, "{jq}", FORMS["scripts"])
            manifest = await manifest_of(client, "{jq}")
            assert not {"library", "functions"} & manifest.keys()
            engine = Engine(client, scripts=FORMS["scripts"], recreate=True)
            await life(engine)
            assert engine.form_in_use == "scripts"
            await client.flushall()
            await life(engine)
            assert "fcall" not in await calls(client) and not await libraries(client)


class TestWhatIsLost:
    @pytest.mark.parametrize("flush", ["FUNCTION FLUSH", "SCRIPT FLUSH", "FLUSHALL"])
    async def test_what_a_flush_took_is_brought_back(self, fresh_server: RedisServer, flush: str) -> None:
        async with connect(fresh_server.url) as client:
            await load(client, "{jq}")
            engine = Engine(client, recreate=True)
            for _ in range(2):
                await client.execute_command(*flush.split())
                await life(engine)
                await engine.config()
            assert await libraries(client) == {(await manifest_of(client, "{jq}"))["library"]}


class TestVersions:
    async def test_a_library_goes_with_its_version_unless_another_namespace_needs_it(
        self, fresh_server: RedisServer
    ) -> None:
        async with connect(fresh_server.url) as client:
            await load(client, "{other}", version("jq_a"))
            for letter in "abcc":  # again is harmless
                await load(client, "{jq}", version(f"jq_{letter}"))
            assert await libraries(client) == {"jq_a", "jq_c"}
            manifest = await manifest_of(client, "{jq}")
            assert (manifest["library"], manifest["functions"]) == ("jq_c", " ".join(sorted(OPERATIONS)))
            assert (await fetch(client, "{jq}")).library == version("jq_c").library
            # Who misses one brings it, and it goes with the next version.
            await life(Engine(client, scripts=version("jq_b")))
            assert await libraries(client) == {"jq_a", "jq_b", "jq_c"}
            await load(client, "{jq}", version("jq_d"))
            assert await libraries(client) == {"jq_a", "jq_d"}

    async def test_a_version_without_functions_takes_them_out_of_the_manifest(
        self, redis: Redis, namespace: str
    ) -> None:
        await load(redis, namespace)
        await load(redis, namespace, FORMS["scripts"])
        assert not {"library", "functions"} & set(await manifest_of(redis, namespace))


@pytest.fixture(scope="module")
def old_server() -> Iterator[RedisServer]:
    """A server that has no functions."""
    with RedisServer("--rename-command", "FCALL", "", "--rename-command", "FUNCTION", "") as server:
        yield server


class TestWithoutFunctions:
    async def test_scripts_are_called_instead(self, old_server: RedisServer) -> None:
        async with connect(old_server.url) as client:
            await load(client, "{jq}")
            assert "library" not in await manifest_of(client, "{jq}")
            engine = Engine(client)
            await life(engine)
            assert engine.form_in_use == "scripts"
            await client.flushall()
            await life(Engine(client))

    async def test_a_server_of_a_cluster_says_so(self, old_server: RedisServer) -> None:
        async with Server(ServeOptions(redis_url=old_server.url, namespace="{jq:*/2}", port=0)) as server:
            await eventually(lambda: _is_by_scripts(server))


async def _is_by_scripts(server: Server) -> bool:
    return (await health(server))["form"] == "scripts"


class TestPermissions:
    """Users of their own on one server."""

    @staticmethod
    async def user(client: Redis, server: RedisServer, *rules: str) -> str:
        """The URL of a user with these rules."""
        await client.execute_command("ACL", "SETUSER", "jq", "reset", "on", ">secret", *rules)
        return f"unix://jq:secret@{server.socket}"

    @staticmethod
    def documented(page: str) -> list[str]:
        """The rules that a page has for its user."""
        [block] = re.findall(r"```\nACL SETUSER jq on >secret (.*?)```", (DOCS / page).read_text(), re.DOTALL)
        return block.split()

    @pytest.mark.parametrize("form", ["functions", "scripts"])
    async def test_the_documented_client(self, fresh_server: RedisServer, form: str) -> None:
        async with connect(fresh_server.url) as admin:
            await load(admin, "{jq}")
            url = await self.user(admin, fresh_server, *self.documented("protocol.md"))
            await calls(admin)
            async with connect(url) as client:
                engine = Engine(client, scripts=FORMS[form])
                await life(engine)
                assert engine.form_in_use == form
                await engine.config()
                assert set(await calls(admin)) == ({"fcall", "evalsha"} if form == "functions" else {"evalsha"})
                with pytest.raises(Forbidden, match="NOPERM"):
                    await Engine(client, "{other}", scripts=FORMS[form]).enqueue([({"name": "a"}, NIL)])

    @pytest.mark.parametrize("form", ["functions", "scripts"])
    async def test_the_documented_master(
        self, fresh_server: RedisServer, form: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JQ_FORM", form)
        async with connect(fresh_server.url) as admin:
            rules = [*self.documented("protocol.md"), *self.documented("operating.md")]
            url = await self.user(admin, fresh_server, *rules)
            async with Server(ServeOptions(redis_url=url, port=0)) as server:
                assert (await health(server)) == {"status": "ok", "form": form}
            assert bool(await libraries(admin)) == (form == "functions")

    async def test_who_may_not_call_functions_calls_scripts(self, fresh_server: RedisServer) -> None:
        async with connect(fresh_server.url) as admin:
            await load(admin, "{jq}")
            url = await self.user(admin, fresh_server, "~*", "&*", "+@all", "-fcall")
            async with connect(url) as client:
                await life(Engine(client))

    async def test_who_may_not_load_functions_calls_those_that_are_there(self, fresh_server: RedisServer) -> None:
        async with connect(fresh_server.url) as admin:
            url = await self.user(admin, fresh_server, "~*", "&*", "+@all", "-function")
            async with connect(url) as client:
                await load(client, "{jq}")
                assert "library" not in await manifest_of(client, "{jq}")
                await life(Engine(client))
            await load(admin, "{jq}")
            await calls(admin)
            async with connect(url) as client:
                await life(Engine(client))
                assert await calls(admin) == {"fcall": 3}


async def health(server: Server) -> dict:
    def ask() -> dict:
        request = urllib.request.Request(f"{server.url}/health", headers={"accept": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(json.load(answer))

    return await asyncio.to_thread(ask)


def test_the_environment_says_how_to_call(fresh_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JQ_FORM", "scripts")
    jq = JQ(fresh_server.url)
    jq.enqueue("a")
    jq.close()
    with fresh_server.client() as client:
        assert not client.function_list()
