"""`JQ` in coroutines."""

from __future__ import annotations

import asyncio
import threading

from app_support import jq, transport, working
from jqmaster import JQ
from processes import MasterProcess
from servers import RedisServer

__all__ = ["jq"]


async def test_async_twins(jq: JQ) -> None:
    @jq.job
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    assert await add(1, 2) == 3
    with working(jq):
        handle = await add.aenqueue(40, 2)
        assert await handle.aresult(timeout=60) == 42
        assert await handle == 42
        assert await handle.ajoin() == "done"
        assert await jq.agather(await add.amap([(1, 2), (3, 4)]), timeout=60) == [3, 7]
        assert (await handle.adocument())["argument"] == {"a": 40, "b": 2}
        events = (await jq.aoperations.history(handle.id))["events"]
        assert [event["event"] for event in events] == ["enqueued", "started", "done"]
        assert await jq.aoperations.cancel([handle.id]) == ["done"]
    waiting = await add.options(delay=60).aenqueue(1, 2)
    assert await waiting.astatus() == "scheduled"
    assert (await jq.aoperations.explain(waiting.id))["status"] == "scheduled"
    assert await waiting.acancel()
    await waiting.aretry()
    assert (await jq.handle(waiting.id).adocument())["status"] == "queued"
    assert [one and one["id"] for one in await jq.aoperations.get([waiting.id, "0687f92dba3c00"])] == [
        waiting.id,
        None,
    ]
    assert (await jq.aenqueue("add", [1, 2])).created


def test_several_loops_share_one_object(jq: JQ) -> None:
    @jq.job
    def double(a: int) -> int:
        return 2 * a

    async def main(number: int) -> int:
        return await (await double.aenqueue(number)).aresult(timeout=60)

    results: list[int] = []
    with working(jq):
        threads = [threading.Thread(target=lambda n=n: results.append(asyncio.run(main(n)))) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert asyncio.run(main(7)) == 14
    assert sorted(results) == [0, 2, 4, 6, 8]


async def test_waiters_outlive_a_restart_of_redis(fresh_server: RedisServer, namespace: str) -> None:
    fresh_server.arguments = ("--appendonly", "yes", "--appendfsync", "always")
    fresh_server.kill()
    fresh_server.start()
    with transport("redis", fresh_server.url, namespace) as jq:

        @jq.job
        def double(a: int) -> int:
            return 2 * a

        handle = await double.aenqueue(4)
        waiting = asyncio.create_task(handle.aresult(timeout=60))
        with fresh_server.client() as redis:
            while not redis.execute_command("PUBSUB", "SHARDCHANNELS"):  # noqa: ASYNC110 (nothing tells when)
                await asyncio.sleep(0.01)
        await asyncio.to_thread(fresh_server.kill)
        await asyncio.to_thread(fresh_server.start)
        with working(jq):
            assert await waiting == 8


async def test_waiters_outlive_a_restart_of_the_master(redis_url: str, namespace: str) -> None:
    options = ("--redis", redis_url, "--namespace", namespace)
    with MasterProcess(*options) as first:
        jq = JQ(first.url)

        @jq.job
        def double(a: int) -> int:
            return 2 * a

        handle = await double.aenqueue(4)
        waiting = asyncio.create_task(handle.aresult(timeout=60))
        other = asyncio.create_task(handle.ajoin(timeout=60))
        assert await handle.astatus() == "queued"
        await asyncio.to_thread(first.kill)
    # In a thread: who waits is to meet a master that is away.
    with await asyncio.to_thread(MasterProcess, *options, port=first.port):
        with working(jq):
            assert (await waiting, await other) == (8, "done")
        jq.close()


async def test_the_next_master_is_asked_when_one_is_away(redis_url: str, namespace: str) -> None:
    with MasterProcess("--redis", redis_url, "--namespace", namespace) as master:
        jq = JQ(f"http://127.0.0.1:9,{master.url}")
        assert (await (await jq.aenqueue("mail")).adocument())["name"] == "mail"
        jq.close()
