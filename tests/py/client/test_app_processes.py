"""One object in many threads, event loops and processes."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from app_support import transport, working
from jqmaster import JQ
from parts import eventually
from servers import RedisServer


def test_waiting_threads_have_a_connection_each_as_long_as_they_wait(fresh_server: RedisServer, namespace: str) -> None:
    with transport("redis", fresh_server.url, namespace) as jq, fresh_server.client() as redis:

        @jq.job
        def double(a: int) -> int:
            return 2 * a

        def subscribed() -> int:
            return sum(int(client["ssub"]) for client in redis.client_list())

        handles = double.map(range(20))
        with ThreadPoolExecutor(20) as threads:
            results = [threads.submit(handle.result, 30) for handle in handles]
            while subscribed() < 20:
                assert not any(result.done() for result in results)
            with working(jq):
                assert [result.result() for result in results] == [2 * number for number in range(20)]
        assert subscribed() == 0


async def test_waiting_tasks_share_one_connection(fresh_server: RedisServer, namespace: str) -> None:
    jq = JQ(fresh_server.url, namespace=namespace)
    handles = [await jq.aenqueue("nobody") for _ in range(20)]
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(handle.ajoin(timeout=30)) for handle in handles]
        with fresh_server.client() as redis:
            await eventually(lambda: bool(redis.execute_command("PUBSUB", "SHARDCHANNELS")))
            assert sum(int(client["ssub"]) for client in redis.client_list()) == 1
        assert await jq.acall("cancel", [handle.id for handle in handles]) == ["queued"] * 20
    assert {task.result() for task in waiting} == {"cancelled"}


def test_an_object_that_is_dropped_leaves_no_connection(fresh_server: RedisServer, namespace: str) -> None:
    def use() -> None:
        jq = JQ(fresh_server.url, namespace=namespace)
        with pytest.raises(TimeoutError):
            jq.enqueue("nobody").join(timeout=0.1)

        async def main() -> None:
            with pytest.raises(TimeoutError):
                await (await jq.aenqueue("nobody")).ajoin(timeout=0.1)

        asyncio.run(main())

    use()
    gc.collect()
    with fresh_server.client() as redis:
        while len(redis.client_list()) > 1:
            assert len(redis.client_list()) < 10


def test_a_forked_process_makes_connections_of_its_own(jq: JQ) -> None:
    with pytest.raises(TimeoutError):
        jq.enqueue("parent").join(timeout=0.1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            handle = jq.enqueue("child")
            try:
                handle.join(timeout=0.1)
            except TimeoutError:
                os.write(writing, handle.id.encode())
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    child_id = os.read(reading, 100).decode()
    os.close(reading)
    os.close(writing)
    assert jq.handle(child_id).document()["name"] == "child"
    assert jq.enqueue("parent").status() == "queued"


def module_job() -> None: ...


module_job = JQ().job(module_job)  # type: ignore[assignment]


def test_tasks_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(module_job)) is module_job
