"""What failovers are lived through with: clients that work all the time, and what they saw."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from jqmaster.engine import replies
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.engine.waiting import Waiting
from jqmaster.errors import Unavailable
from parts import audit_all, enqueue, eventually
from topologies import Cluster

NAMESPACE = "{jq}"
LONG_S = 60.0
BUSY = 5  # times as long as it may take where other processes are busy
SOON_S = 20.0


class Client:
    """All that keeps a connection, on one URL: calls, a worker's long poll, a wait for an end."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.redis = connect(url)
        self.engine = Engine(self.redis, NAMESPACE)
        self.waiting = Waiting(self.engine)
        self.ended = Ended(self.engine)

    async def __aenter__(self) -> Client:
        await load(self.redis, NAMESPACE)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(self.waiting.stop(), self.ended.stop())
        await self.redis.aclose()

    async def until_answered(self, ask: Callable[[], Awaitable[object]], timeout_s: float) -> object:
        """What a caller does who repeats what is safe to repeat."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return await ask()
            except Unavailable:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)

    async def is_replicated(self) -> None:
        """All that was done so far is on the replicas: what is lost otherwise is not the matter here."""
        replicas = int((await self.redis.info("replication"))["connected_slaves"])
        await self.redis.set(f"behind{NAMESPACE}", 1)  # by the same connection as WAIT, if nobody else calls
        assert await self.redis.call("WAIT", replicas, 10_000) == replicas

    async def goes_on(self, fault: Callable[[], Awaitable[object]], within_s: float) -> float:
        """What waits already when `fault` comes, and what comes later, is served soon; nothing false is said.
        `fault` returns when there is a server that could serve. Gives the seconds from then to the first start.
        `within_s` is for a machine that has nothing else to do."""
        within_s *= BUSY
        first = await enqueue(self.engine, "first")
        [held] = (await self.engine.pick("w", "first")).jobs
        end = asyncio.create_task(self.ended.wait(first.encode(), LONG_S))
        poll = asyncio.create_task(self.waiting.pick({"worker": "w", "queues": "mail"}, LONG_S))
        await eventually(lambda: self.ended.is_subscribed and self.waiting.channels)
        await asyncio.sleep(0.3)
        await self.is_replicated()
        await fault()
        began = time.monotonic()

        async def late() -> float:
            """The start of a job that comes now, by another client."""
            reply = await poll
            assert [job.id for job in replies.picked(reply).jobs] == [second]
            return time.monotonic() - began

        async with other_client(self) as engine:
            await self.until_answered(lambda: engine.get([first]), within_s)
            second = await enqueue(engine)
            started = asyncio.create_task(late())
            await engine.finish("w", [({"id": held.id, "token": held.token, "type": "success"}, b"\xc0")])
            # Who asks now with little time is told the truth, or that it cannot be known.
            with contextlib.suppress(Unavailable):
                assert await self.ended.wait(first.encode(), 0.5) == "done"
            assert await asyncio.wait_for(end, within_s + 5) == "done"
            took_s = await asyncio.wait_for(started, within_s + 5)
            await self.until_answered(lambda: self.engine.get([first]), within_s)
            third = await enqueue(self.engine, "third")
            [job] = (await self.engine.pick("w", "third")).jobs
            later = asyncio.create_task(self.ended.wait(third.encode(), LONG_S))
            await eventually(lambda: self.ended.is_subscribed)
            await engine.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, b"\xc0")])
            assert await asyncio.wait_for(later, 3) == "done"  # it was told: nobody looks so soon
            assert await audit_all(engine) == []
        return took_s


@contextlib.asynccontextmanager
async def other_client(client: Client) -> AsyncIterator[Engine]:
    """One that was started after the fault, at the same URL."""
    async with connect(client.url) as redis:
        yield Engine(redis, NAMESPACE)


async def move(servers: Cluster, pause_s: float = 0) -> None:
    owner = await asyncio.to_thread(servers.owner, NAMESPACE)
    [target] = [server for server in servers.servers if server is not owner]
    await asyncio.to_thread(servers.move, NAMESPACE, target, pause_s)
