"""A namespace that was there and has vanished, as after FLUSHALL, or with an empty Redis instead."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from redis.asyncio import Redis

from cli_support import Said, call  # noqa: F401 (fixture)
from jqmaster import JQ
from jqmaster.engine.engine import Engine, connect, pack
from jqmaster.engine.waiting import channel_of
from jqmaster.errors import Vanished
from parts import eventually
from processes import MasterProcess, Process
from servers import RedisServer

pytestmark = pytest.mark.faults

NIL = b"\xc0"
META = "{jq}:meta"
APP = """
from jqmaster import JQ
jq = JQ({url!r})

@jq.job(keep_result=True)
def double(number: int) -> int:
    return 2 * number
"""


async def one(engine: Engine) -> str:
    [job] = await engine.enqueue([({"name": "a"}, NIL)])
    return job.id


async def test_a_namespace_that_has_vanished_is_not_set_up_again(
    fresh_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(fresh_server.url) as client:
        engine = Engine(client)
        await one(engine)  # one that nobody has known is set up
        await client.flushall()
        for _ in range(2):
            with pytest.raises(Vanished, match="has vanished"):
                await one(engine)
            with pytest.raises(Vanished):
                await engine.pipeline([("enqueue", [pack({"name": "a"}), NIL])])
        assert await client.dbsize() == 0
        assert sum("has vanished" in line for line in caplog.messages) == 1  # said once
        with pytest.raises(Vanished):
            await _asks_again(JQ(fresh_server.url), client)


async def _asks_again(jq: JQ, client: Redis) -> None:
    await jq.aenqueue("a")
    await client.flushall()
    await jq.aenqueue("a")


async def test_it_goes_on_when_its_data_is_back(fresh_server: RedisServer, caplog: pytest.LogCaptureFixture) -> None:
    async with connect(fresh_server.url) as client:
        engine = Engine(client)
        job = await one(engine)
        await engine.constrain("few", {"name": "a"}, concurrency=1)
        backup = {key: await client.dump(key) for key in await client.keys()}
        await client.flushall()
        with pytest.raises(Vanished):
            await engine.pick("w", "a")
        for key, packed in backup.items():
            await client.restore(key, 0, packed)
        assert [picked.id for picked in (await engine.pick("w", "a")).jobs] == [job]
        assert (await engine.constraints()).documents[0]["id"] == "few"
        assert any("is back" in line for line in caplog.messages)


async def test_with_recreate_it_is_set_up_again_empty(
    fresh_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(fresh_server.url) as client:
        engine = Engine(client, recreate=True)
        await one(engine)
        await engine.constrain("few", {"name": "a"}, concurrency=1)
        await client.flushall()
        await one(engine)
        assert (await engine.constraints()).documents == []
        assert any("setting it up again, empty" in line for line in caplog.messages)
        jq = JQ(fresh_server.url, recreate=True)
        await _asks_again(jq, client)


async def health(master: MasterProcess) -> tuple[int, str, int]:
    """Status and what it says, and the status of the probe that asks nobody."""
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{master.url}/health", headers={"accept": "application/json"}) as ready:
            said = await ready.text()
        async with session.get(f"{master.url}/alive") as alive:
            return ready.status, said, alive.status


@pytest.mark.timeout(180)
async def test_master_and_worker_stop_until_somebody_sets_it_up(
    fresh_server: RedisServer, tmp_path: Path, call: object
) -> None:
    (tmp_path / "shop.py").write_text(APP.format(url=fresh_server.url))
    with (
        MasterProcess("--redis", fresh_server.url) as master,
        Process("jqmaster.cli", "work", "shop:jq", folder=tmp_path, ready="ready") as worker,
    ):
        jq = JQ(master.url)
        double = jq.task("double", keep_result=True)
        assert await asyncio.to_thread(double.enqueue(1).result, 60) == 2
        with fresh_server.client() as client:
            client.flushall()
            status, said, alive = await health(master)
            assert (status, alive) == (503, 200)
            assert '"VERSION"' in said and "has vanished" in said
            # The worker sleeps. It learns of it when it looks again, as who is woken does.
            client.zadd("{jq}:wake:" + channel_of(["double"]), {"1": 0})
            for process in (master, worker):
                await eventually(lambda process=process: "has vanished" in process.text, 60)
            assert not client.exists(META)
        told: Said = await asyncio.to_thread(call, "load", "--redis", fresh_server.url)  # type: ignore[arg-type]
        assert told.code == 0
        assert (await health(master))[0] == 200
        assert await asyncio.to_thread(double.enqueue(21).result, 120) == 42
        assert "is back" in master.text
        jq.close()
