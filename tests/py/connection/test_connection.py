"""What a client makes of a Redis that is loading, of a cluster it was not told of, of a stream that went back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest
from redis.crc import key_slot

from failovers import NAMESPACE
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Unavailable
from parts import enqueue, eventually
from servers import RedisServer
from topologies import Cluster, cluster, free_ports

pytestmark = pytest.mark.faults


@pytest.fixture
def two_nodes() -> Iterator[Cluster]:
    with cluster(2) as servers:
        yield servers


async def test_a_node_of_a_cluster_leads_to_the_others(two_nodes: Cluster) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    for server in two_nodes.servers:
        node = f"127.0.0.1:{server.port}"
        for url in (f"redis://{node}", f"redis+cluster://{nobody},{node},{nobody}"):
            async with connect(url) as redis:
                await enqueue(Engine(redis, NAMESPACE))


async def test_a_slot_that_has_moved_is_followed_however_late(
    two_nodes: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jqmaster.connection.redis_client.PASSES_S", 0.5)
    monkeypatch.setattr("jqmaster.connection.redis_client.PASSING_S", 3.0)
    async with connect(two_nodes.url) as redis:
        engine = Engine(redis, NAMESPACE)
        await enqueue(engine)
        source, slot = two_nodes.owner(NAMESPACE), key_slot(NAMESPACE.encode())
        [target] = [server for server in two_nodes.servers if server is not source]
        target.do("CLUSTER", "SETSLOT", slot, "IMPORTING", two_nodes.id_of(source))
        source.do("CLUSTER", "SETSLOT", slot, "MIGRATING", two_nodes.id_of(target))
        asking = asyncio.create_task(engine.queues())
        await eventually(lambda: "errorstat_TRYAGAIN" in source.do("INFO", "errorstats"))
        two_nodes.move(NAMESPACE, target)
        assert [queue["name"] for queue in (await asking).documents] == ["mail"]


async def test_loading_is_waited_out() -> None:
    slow = ("--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024", "--appendonly", "yes")
    with RedisServer(*slow) as server:
        async with connect(server.url) as redis:
            engine = Engine(redis, NAMESPACE)
            job = await enqueue(engine)
            with contextlib.closing(server.client()) as client:
                fillers = client.pipeline(transaction=False)  # one command each: Redis delays by command
                for number in range(2000):
                    fillers.set(f"{NAMESPACE}:filler:{number}", "x")
                fillers.execute()
            server.kill()
            starting = asyncio.create_task(asyncio.to_thread(server.start))
            found: list[object] = []
            while not (found and starting.done()):
                try:
                    found = await engine.get([job])
                except Unavailable as problem:  # nobody listens yet
                    assert "loading" not in str(problem).lower()
                    await asyncio.sleep(0.001)
            await starting
            assert found != [None]
