"""What a client makes of a Redis that is loading, of a cluster it was not told of, of a stream that went back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from failovers import NAMESPACE
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Unavailable
from parts import enqueue
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
