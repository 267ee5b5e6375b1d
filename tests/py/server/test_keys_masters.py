"""Keys on several masters, and where they are asked for."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator

import aiohttp
import pytest

from jqmaster import JQ
from jqmaster.client.handle import Handle
from jqmaster.engine import secret
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.http import HttpEngine
from jqmaster.errors import Forbidden, Unauthorized
from jqmaster.server.keyring import KNOWN_S
from jqmaster.server.server import ServeOptions, Server, StartError
from parts import eventually
from servers import RedisServer

PATIENCE_S = 60.0

Two = tuple[Server, Server]


@pytest.fixture
async def two(redis_url: str, namespace: str) -> AsyncIterator[Two]:
    """Masters of one namespace."""
    options = [ServeOptions(redis_url=redis_url, namespace=namespace, port=0) for _ in range(2)]
    async with Server(options[0]) as one, Server(options[1]) as other:
        yield one, other


@pytest.fixture
async def own(redis_url: str, namespace: str) -> AsyncIterator[Engine]:
    async with connect(redis_url) as redis:
        yield Engine(redis, namespace)


async def status(url: str, path: str = "/queues", key: str | None = None) -> int:
    """What a request is answered with."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession() as session, session.get(url + path, headers=headers) as answer:
        return answer.status


async def all_answer(expected: int, servers: Two, key: str) -> None:
    """Wait until they do."""
    async with asyncio.timeout(PATIENCE_S):
        while {await status(server.url, key=key) for server in servers} != {expected}:  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0.01)


async def _asks(url: str) -> bool:
    return await status(url) == 401


async def test_a_key_is_good_and_no_longer_good_on_every_master(two: Two, own: Engine) -> None:
    made = await own.grant("ann", ["admin"])
    await all_answer(200, two, made["key"])
    via = HttpEngine([two[0].url], made["key"])
    other = await via.grant("bob", ["viewer"])
    assert await status(two[0].url, key=other["key"]) == 200, "at once where it was made"
    await all_answer(200, two, other["key"])
    await via.revoke(other["id"])
    assert await status(two[0].url, key=other["key"]) == 401
    await all_answer(401, two, other["key"])
    await via.close()


async def test_the_last_known_keys_hold_while_redis_is_away(caplog: pytest.LogCaptureFixture) -> None:
    with RedisServer("--appendonly", "yes", "--appendfsync", "always") as redis:
        async with Server(ServeOptions(redis_url=redis.url, port=0)) as server:
            async with connect(redis.url) as client:
                made = await Engine(client).grant("ann", ["viewer"])
            await eventually(lambda: _asks(server.url))
            assert redis.process is not None
            redis.process.send_signal(signal.SIGSTOP)
            looking = asyncio.ensure_future(server.master.keyring.look())  # as of a worker whose key is not known
            async with asyncio.timeout(10):
                await asyncio.sleep(KNOWN_S)
                assert await status(server.url, key=secret.new().text) == 401
            redis.kill()
            await asyncio.gather(looking, return_exceptions=True)
            for _ in range(5):
                assert await status(server.url, "/openapi.yaml") == 200
                assert await status(server.url, "/job/00000000000001", made["key"]) == 503
                assert await status(server.url, "/job/00000000000001") == 401
                assert await status(server.url, "/job/00000000000001", secret.new().text) == 401
            redis.start()
            await all_answer(200, (server, server), made["key"])
            async with connect(redis.url) as client:
                await Engine(client).revoke(made["id"])
            await all_answer(401, (server, server), made["key"])
    secrets = made["key"].split("_", 2)[2]
    assert "the last known ones hold: it takes too long" in caplog.text
    assert secrets not in caplog.text


class TestWhereTheyAreAskedFor:
    async def test_on_loopback_while_there_are_none_they_are_not(self, redis_url: str, namespace: str) -> None:
        async with Server(ServeOptions(redis_url=redis_url, namespace=namespace, port=0)) as server:
            assert await status(server.url) == 200

    async def test_to_others_a_master_without_keys_does_not_listen(self, redis_url: str, namespace: str) -> None:
        options = ServeOptions(redis_url=redis_url, namespace=namespace, host="0.0.0.0", port=0)
        with pytest.raises(StartError, match=r"has no keys. Create one: jqmaster keys create"):
            await Server(options).__aenter__()

    async def test_to_others_it_listens_and_warns_when_told_to(
        self, redis_url: str, namespace: str, own: Engine, caplog: pytest.LogCaptureFixture
    ) -> None:
        options = ServeOptions(redis_url=redis_url, namespace=namespace, host="0.0.0.0", port=0, insecure=True)
        async with Server(options) as server:
            assert "everybody" in caplog.text or "whoever reaches" in caplog.text
            url = server.url.replace("0.0.0.0", "127.0.0.1")
            assert await status(url) == 200
            made = await own.grant("ann", ["viewer"])
            await eventually(lambda: _asks(url))
            assert await status(url, key=made["key"]) == 200

    async def test_to_others_it_listens_once_there_is_a_key(
        self, redis_url: str, namespace: str, own: Engine, caplog: pytest.LogCaptureFixture
    ) -> None:
        made = await own.grant("ann", ["viewer"])
        caplog.set_level(logging.WARNING)
        options = ServeOptions(redis_url=redis_url, namespace=namespace, host="0.0.0.0", port=0)
        async with Server(options) as server:
            url = server.url.replace("0.0.0.0", "127.0.0.1")
            assert [await status(url), await status(url, key=made["key"])] == [401, 200]
            assert [await status(url, path) for path in ("/alive", "/health", "/metrics")] == [200, 200, 401]
            assert await status(url, "/metrics", made["key"]) == 200
        assert "insecure" not in caplog.text


class TestTheLibrary:
    async def test_shows_its_key(self, two: Two, own: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        made = await own.grant("app", ["pusher"], queues=["add"])
        await all_answer(403, two, made["key"])
        jq = JQ(two[0].url, key=made["key"])
        job: Handle[object] = await jq.task("add").aenqueue(1, 2)
        assert await job.astatus() == "queued"
        with pytest.raises(Forbidden, match="bound to queues: other is not among them"):
            await jq.task("other").aenqueue()
        with pytest.raises(Forbidden, match="needs a key with the role viewer"):
            await jq.acall("queues")
        with pytest.raises(Unauthorized, match="asks for a key"):
            await JQ(two[0].url).task("add").aenqueue()
        monkeypatch.setenv("JQ_KEY", made["key"])
        await JQ(two[0].url).task("add").aenqueue()

    def test_tells_nobody_its_key(self, tmp_path: object) -> None:
        new = secret.new()
        jq = JQ("http://127.0.0.1:1", key=new.text)
        hidden = new.text.split("_", 2)[2]
        options = jq.task("x")
        shown = [repr(jq), repr(options), str(vars(HttpEngine([])))]
        assert not any(hidden in text for text in shown)
        with pytest.raises(Exception) as refused:
            jq.task("x").enqueue()
        assert hidden not in str(refused.value)
        with pytest.raises(ValueError, match="expected a key such as") as wrong:
            JQ("http://127.0.0.1:1", key="jq_wrong").task("x").enqueue()
        assert "jq_wrong" not in str(wrong.value)

    def test_takes_no_password_in_a_url(self) -> None:
        with pytest.raises(ValueError, match="the URL of a server has no user or password") as refused:
            JQ("http://ann:hidden@127.0.0.1:1").operations.queues()
        assert "hidden" not in str(refused.value)
