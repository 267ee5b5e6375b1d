"""What a client makes of a Redis that is loading, of a cluster it was not told of, of a stream that went back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Iterator

import pytest

from failovers import NAMESPACE, Client, connections, move
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Unavailable
from jqmaster.server.events import EventFeed
from parts import enqueue, eventually
from servers import RedisServer
from topologies import Cluster, Node, Proxy, cluster, until

pytestmark = pytest.mark.faults


@pytest.fixture
def two_nodes() -> Iterator[Cluster]:
    with cluster(2) as servers:
        yield servers


async def test_a_node_named_alone_leads_to_the_cluster(two_nodes: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    owner = two_nodes.owner(NAMESPACE)
    [other] = [one for one in two_nodes.servers if one is not owner]
    with caplog.at_level(logging.WARNING, "jqmaster.connection"):
        async with Client(f"redis://127.0.0.1:{other.port}") as client:
            await client.goes_on(lambda: move(two_nodes), 2)
            owner.kill()
            assert (await client.engine.get([await enqueue(client.engine)]))[0] is not None
    assert "redis+cluster://" in caplog.text


async def test_namespaces_of_two_slots_are_not_followed_to_and_fro(two_nodes: Cluster) -> None:
    owner = two_nodes.owner(NAMESPACE)
    while two_nodes.owner(far := "{" + secrets.token_hex(4) + "}") is owner:
        pass
    async with connect(f"redis://127.0.0.1:{owner.port}") as redis:
        near, away = Engine(redis, NAMESPACE), Engine(redis, far)
        await enqueue(near)
        with pytest.raises(Unavailable, match="MOVED"):
            await enqueue(away)
        await enqueue(near)


async def test_loading_is_waited_out_by_pipelines() -> None:
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
            said: list[object] = []
            while not (said and starting.done()):
                try:
                    said += await engine.pipeline([("get", [job])] * 2)
                except Unavailable as problem:  # nobody listens yet
                    assert "loading" not in str(problem).lower()
                    await asyncio.sleep(0.001)
            await starting
            assert not [one for one in said if isinstance(one, Exception)], said[:3]


@pytest.mark.parametrize("what", ["ALL", "WRITE"])
async def test_a_pause_longer_than_a_sleep_is_slept_through(fresh_server: RedisServer, what: str) -> None:
    async with Client(fresh_server.url) as client:
        poll = asyncio.create_task(client.waiting.pick({"worker": "w", "queues": "mail"}, 60))
        await eventually(lambda: client.waiting._channels)
        await asyncio.sleep(0.3)
        ids = {line.split()[0] for line in await connections(fresh_server)}
        with fresh_server.client() as pausing:
            pausing.execute_command("CLIENT", "PAUSE", 9000, what)
        job = await enqueue(client.engine, "other")
        assert (await client.engine.get([job]))[0] is not None
        await asyncio.sleep(1)
        assert ids <= {line.split()[0] for line in await connections(fresh_server)}
        await enqueue(client.engine)
        assert len(await poll) > 1


async def test_events_go_on_behind_a_primary_whose_clock_was_ahead(pair: list[Node]) -> None:
    """Ids in a stream are moments of its server's clock. The replica did not get the last one."""
    async with Proxy(pair[0]) as proxy, connect(proxy.url) as redis:
        engine = Engine(redis, NAMESPACE)
        await engine.config({"events_max": 1000})
        await enqueue(engine)
        feed = EventFeed(engine, redis)
        pages: list[list[tuple[str, bytes]]] = []

        async def follow() -> None:
            async for page in feed.after(await feed.last_id(), 60):
                if page is not None:
                    pages.append(page)

        following = asyncio.create_task(follow())
        await eventually(lambda: feed._followers)
        await asyncio.to_thread(until, lambda: pair[0].offset() == pair[1].offset())
        await asyncio.to_thread(pair[1].follow, None)
        ahead = f"{round(time.time() * 1000) + 3_600_000}-0"
        pair[0].do("XADD", f"{NAMESPACE}:events", ahead, "e", b"\xc0")
        await eventually(lambda: pages)
        proxy.target = pair[1]
        await asyncio.to_thread(pair[0].follow, pair[1])
        await eventually(lambda: len(pages) == 2)
        assert pages[0][0][0] == ahead and pages[1] == []
        await enqueue(engine)
        await eventually(lambda: len(pages) == 3)
        assert (await feed.resume(ahead)) == (await feed.last_id(), True)
        assert (await feed.resume(pages[2][0][0])) == (pages[2][0][0], False)
        following.cancel()
        await feed.stop()
