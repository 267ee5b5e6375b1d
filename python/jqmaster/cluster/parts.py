"""What asks beside the operations, made of that of each partition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

from jqmaster.cluster.names import number_of
from jqmaster.cluster.routes import Routes, split
from jqmaster.cluster.waiting import AWAY_S, LOOK_S
from jqmaster.connection.subscriptions import Messages
from jqmaster.connection.together import Coalescer
from jqmaster.connection.wake import end
from jqmaster.engine.ended import Ended
from jqmaster.errors import Unavailable

_BACK_MS = 1000  # clocks of several servers differ: who resumes a stream gets so much of it again


class Enqueuing:
    """As `Coalescer`: those whose jobs go to the same partition share calls."""

    def __init__(self, routes: Routes, parts: Sequence[Coalescer]) -> None:
        self._routes, self._parts = routes, parts

    async def enqueue(self, spec: bytes, argument: bytes) -> list[Any]:
        _, [part] = await split([spec, argument], self._routes, len(self._parts))
        return await self._parts[part.partition].enqueue(spec, argument)


class Ends:
    """As `Ended`: each job's are told where it is."""

    def __init__(self, parts: Sequence[Ended]) -> None:
        self._parts = parts

    async def wait(self, job_id: bytes, timeout_s: float) -> str | None:
        return await self._of(job_id).wait(job_id, timeout_s)

    def of_job(self, job_id: str) -> AbstractAsyncContextManager[Messages]:
        return self._of(job_id).of_job(job_id)

    def _of(self, job_id: str | bytes) -> Ended:
        return self._parts[number_of(job_id, len(self._parts))]

    def drain(self) -> None:
        for part in self._parts:
            part.drain()

    async def stop(self) -> None:
        await asyncio.gather(*(part.stop() for part in self._parts))


class Desks:
    """As the desk of a server: looks at one partition after the other, and sleeps at all."""

    def __init__(self, desks: Sequence[Any]) -> None:
        self._desks = desks
        self._moments = [-1] * len(desks)
        self._away_until = [0.0] * len(desks)
        self._first = 0

    async def take(self, limit: int, without: Callable[[], Sequence[str]]) -> tuple[int, list[Any]]:
        count, problem = len(self._desks), None
        for number in [(self._first + step) % count for step in range(count)]:
            if time.monotonic() < self._away_until[number]:
                continue
            try:
                async with asyncio.timeout(LOOK_S):  # what comes later comes again with the next look
                    self._moments[number], jobs = await self._desks[number].take(limit, without)
            except (Unavailable, TimeoutError) as error:
                problem, self._away_until[number] = error, time.monotonic() + AWAY_S
                continue
            if jobs:
                self._first = number + 1
                return 0, jobs
        if min(self._away_until) > time.monotonic():
            raise Unavailable(f"no partition of the cluster answers: {problem}")
        moments = [moment for moment in self._moments if moment >= 0]
        return min(moments, default=-1), []

    async def sleep(self, _next_ms: int) -> None:
        sleeping = {
            asyncio.create_task(desk.sleep(self._moments[number])): number for number, desk in enumerate(self._desks)
        }
        try:
            over, _ = await asyncio.wait(sleeping, return_when=asyncio.FIRST_COMPLETED)
            self._first = min(sleeping[task] for task in over)
        finally:
            await end(sleeping)

    def poke(self) -> None:
        for desk in self._desks:
            desk.poke()

    def drain(self) -> None:
        for desk in self._desks:
            desk.drain()

    async def stop(self) -> None:
        await asyncio.gather(*(desk.stop() for desk in self._desks))


class Feeds:
    """As the feed of a server: the events of all partitions as they come."""

    def __init__(self, feeds: Sequence[Any]) -> None:
        self._feeds = feeds

    def of_job(self, job_id: str) -> AbstractAsyncContextManager[Messages]:
        feed: AbstractAsyncContextManager[Messages]
        feed = self._feeds[number_of(job_id, len(self._feeds))].of_job(job_id)
        return feed

    async def last_id(self) -> str:
        return ""  # that of each partition

    async def resume(self, event_id: str) -> tuple[str, bool]:
        moment_ms = max(0, int(event_id.partition("-")[0]) - _BACK_MS)
        resumed = await asyncio.gather(*(feed.resume(f"{moment_ms}-0") for feed in self._feeds))
        return f"{moment_ms}-0", any(is_missing for _, is_missing in resumed)

    async def after(self, event_id: str, alive_every_s: float) -> AsyncGenerator[Any, None]:
        pages: asyncio.Queue[Any] = asyncio.Queue(len(self._feeds))

        async def read(feed: Any) -> None:
            async with aclosing(feed.after(event_id or await feed.last_id(), alive_every_s)) as coming:
                async for page in coming:
                    if page is not None:
                        await pages.put(page)
            await pages.put(None)

        readers = [asyncio.create_task(read(feed)) for feed in self._feeds]
        try:
            while not all(reader.done() for reader in readers):
                try:
                    async with asyncio.timeout(alive_every_s):
                        page = await pages.get()
                except TimeoutError:
                    page = None
                yield page
        finally:
            await end(readers)

    def drain(self) -> None:
        for feed in self._feeds:
            feed.drain()

    async def stop(self) -> None:
        await asyncio.gather(*(feed.stop() for feed in self._feeds))
