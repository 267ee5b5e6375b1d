"""Events of a system: all partitions' streams as one, and those of a job, where it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from jqmaster.connection.subscriptions import Messages
from jqmaster.connection.wake import backoff_s, end
from jqmaster.errors import JQError, Unavailable
from jqmaster.master.events import Event, EventFeed, order
from jqmaster.master.partitions import OfEach
from jqmaster.system.engine import SystemEngine

CLOCKS_MS = 10_000  # by which clocks may differ, and how late it is noticed that a partition does not answer
QUIET_S = 2.0  # a partition that has told nothing for so long has nothing to tell
AHEAD = 4  # pages that may wait for who follows


class SystemEvents(OfEach[EventFeed]):
    """Each event of each partition at least once, those of one partition in order. An event's id is the moment to which
    all partitions have been followed, so who goes on behind it gets what came since then once more."""

    def __init__(self, engine: SystemEngine) -> None:
        super().__init__(engine, EventFeed)

    async def last_id(self) -> str:
        """ "": the last of each partition."""
        await self._engine.live()
        return ""

    async def resume(self, event_id: str) -> tuple[str, bool]:
        """Some may be missing where a partition has trimmed its stream since then."""
        settings, engines = await self._engine.config(), (await self._engine.live()).values()
        trimmed = (self.of(one).is_trimmed(event_id, settings["events_max"]) for one in engines)
        answers = await asyncio.gather(*trimmed, return_exceptions=True)
        for one in answers:
            if isinstance(one, BaseException) and not isinstance(one, Unavailable):
                raise one
        return event_id, any(one is True for one in answers)

    async def after(self, event_id: str, alive_every_s: float) -> AsyncGenerator[list[Event] | None, None]:
        """As `EventFeed` does. A partition that is away is followed from where it was when it is back."""
        following = _Following(event_id)
        try:
            while not self.is_draining:
                for number, engine in (await self._engine.live()).items():
                    following.begin(number, self.of(engine))
                page = await following.next(alive_every_s)
                if not self.is_draining:
                    yield page
        finally:
            await following.stop()

    @asynccontextmanager
    async def of_job(self, job_id: str) -> AsyncIterator[Messages]:
        """What is published of a tracked job, where it is."""
        async with self.of(await self._engine.of(job_id)).of_job(job_id) as messages:
            yield messages


class _Following:
    """What one who follows has been told."""

    def __init__(self, event_id: str) -> None:
        self._begins = event_id
        self._pages: asyncio.Queue[tuple[int, list[Event] | JQError | None]] = asyncio.Queue(AHEAD)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._to_ms: dict[int, int] = {}  # to which each partition has been followed, by its clock

    def begin(self, number: int, feed: EventFeed) -> None:
        """With a partition, if that is not done yet."""
        if number not in self._tasks:
            self._to_ms[number] = order(self._begins)[0] if self._begins else _now_ms()
            self._tasks[number] = asyncio.create_task(self._follow(number, feed), name=f"events of {number}")

    async def next(self, timeout_s: float) -> list[Event] | None:
        """What a partition told; None after some time without. Raises what it refuses."""
        self._begins = self._begins or f"{_now_ms()}-0"  # of partitions that are added
        try:
            async with asyncio.timeout(timeout_s):
                number, page = await self._pages.get()
        except TimeoutError:
            return None
        if isinstance(page, JQError):
            raise page
        if page:
            self._to_ms[number] = order(page[-1][0])[0]
        event_id = f"{max(0, min(self._to_ms.values()))}-0"
        return page and [(event_id, packed) for _, packed in page]

    async def stop(self) -> None:
        """Follow no more."""
        await end(self._tasks.values())

    async def _follow(self, number: int, feed: EventFeed) -> None:
        last, failures = self._begins, 0
        while True:
            try:
                last = last or await feed.last_id()
                async with aclosing(feed.after(last, QUIET_S)) as pages:
                    async for page in pages:
                        failures = 0
                        if page is None:
                            if feed.is_current:
                                self._to_ms[number] = max(self._to_ms[number], _now_ms())
                            continue
                        last = page[-1][0] if page else last
                        await self._pages.put((number, page))
                await self._pages.put((number, None))  # the master stops
                return
            except Unavailable:
                last = last or f"{self._to_ms[number]}-0"
                await asyncio.sleep(backoff_s(failures))
                failures += 1
            except JQError as problem:
                await self._pages.put((number, problem))
                return


def _now_ms() -> int:
    return int(time.time() * 1000) - CLOCKS_MS
