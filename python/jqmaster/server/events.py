"""Events of a namespace for those who follow them: all, or one job's (docs/finding.md)."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any

import redis.asyncio as redis_asyncio
from redis.exceptions import RedisError

from jqmaster.connection.endpoint import endpoint_of, patiently
from jqmaster.connection.subscriptions import Messages, Subscriptions
from jqmaster.connection.wake import BLOCK_S, backoff_s, end
from jqmaster.engine.engine import Engine
from jqmaster.errors import from_redis

log = logging.getLogger("jqmaster.events")

PAGE = 500
STOP_TIMEOUT_S = 2.0

Event = tuple[str, bytes]
"""Its id in the stream, and the event itself, packed."""


def order(event_id: str) -> tuple[int, int]:
    """Ids in a stream sort by this."""
    moment, _, number = event_id.partition("-")
    return int(moment), int(number or 0)


class EventFeed:
    """Follows the stream with one blocking connection for all who want events. `stop` ends everybody's."""

    def __init__(self, engine: Engine, redis: redis_asyncio.Redis) -> None:
        self._key = f"{engine.namespace}:events"
        self._of_job = f"{engine.namespace}:job:"
        self._redis = redis
        self._subscriptions = Subscriptions(redis)
        self._pages: dict[str, asyncio.Future[list[Event]]] = {}  # by the event behind which they are
        self._news = asyncio.Event()
        self._starts = 0  # of the reader's connections: what came between may be missing
        self._followers = 0
        self._reader: asyncio.Task[None] | None = None
        self._stopped = False

    def of_job(self, job_id: str) -> AbstractAsyncContextManager[Messages]:
        """What is published of a tracked job. None among it: look how it stands, something may be missed."""
        return self._subscriptions.listen(self._of_job + job_id)

    async def last_id(self) -> str:
        """The id of the last event."""
        entries = await self._ask("XREVRANGE", self._key, "+", "-", "COUNT", 1)
        return entries[0][0] if entries else "0-0"

    async def resume(self, event_id: str) -> tuple[str, bool]:
        """Behind which event to go on for who has seen this one, and whether something between may be
        missing: trimmed away, or gone with a primary that knew more. Behind 0-0 is all there is."""
        if order(event_id) == (0, 0):
            return event_id, False
        entries = await self._ask("XRANGE", self._key, "-", "+", "COUNT", 1)
        if not entries or order(entries[0][0]) > order(event_id):
            return event_id, bool(entries)
        last = await self.last_id()
        return (last, True) if order(last) < order(event_id) else (event_id, False)

    async def after(self, event_id: str, alive_every_s: float) -> AsyncGenerator[list[Event] | None, None]:
        """Events behind this one as they come, those that came together at once; without end, or until
        `stop`. None when there was none for a while; an empty page where some are missing."""
        self._followers += 1
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read(), name="events")
        last, starts = event_id, self._starts
        try:
            while not self._stopped:
                news = self._news
                if starts != self._starts:
                    starts = self._starts
                    last, is_missing = await self.resume(last)
                    if is_missing:
                        yield []
                if page := await self._page(last):
                    last = page[-1][0]
                    yield page
                    continue
                try:
                    # By chance, as many who began together should not all be written to at once.
                    async with asyncio.timeout(alive_every_s * random.uniform(0.7, 1.0)):
                        await news.wait()
                except TimeoutError:
                    yield None
        finally:
            self._followers -= 1
            if not self._followers and self._reader is not None:
                self._reader.cancel()
                self._reader = None

    def drain(self) -> None:
        """End what is followed, soon."""
        self._stopped = True
        self._tell()
        self._subscriptions.tell_all()

    async def stop(self) -> None:
        """`drain`, and close the connections; bounded."""
        self.drain()
        await end((self._reader,), STOP_TIMEOUT_S)
        await self._subscriptions.stop()

    # -- parts ------------------------------------------------------------------------------------

    async def _ask(self, *command: Any) -> list[Event]:
        try:
            asked = patiently(lambda: self._redis.execute_command(*command))
            reply = await asyncio.shield(asyncio.ensure_future(asked))
        except RedisError as problem:
            raise from_redis(problem) from problem
        return _events(reply)

    async def _page(self, last: str) -> list[Event]:
        """What comes behind an event, asked for once for all who stand there."""
        asked = self._pages.get(last)
        if asked is None or (asked.done() and asked.exception()):
            ask = self._ask("XRANGE", self._key, f"({last}", "+", "COUNT", PAGE)
            asked = self._pages[last] = asyncio.ensure_future(ask)
        return await asyncio.shield(asked)

    def _tell(self, pages: dict[str, asyncio.Future[list[Event]]] | None = None) -> None:
        """Have all who wait look. `pages`: what is known already of what they find."""
        self._pages = pages or {}
        told, self._news = self._news, asyncio.Event()
        told.set()

    async def _read(self) -> None:
        failures = 0
        last: str | None = None
        while True:
            try:
                last = (await self.resume(last))[0] if last else await self.last_id()
                async with endpoint_of(self._redis).line() as line:
                    # Between a follower's start, or the end of the last connection, and now something may have come.
                    self._starts += 1
                    self._tell()
                    while True:
                        ask = ("XREAD", "COUNT", PAGE, "BLOCK", round(BLOCK_S * 1000), "STREAMS", self._key, last)
                        reply = await line.blocking(BLOCK_S, *ask)
                        failures = 0
                        if events := _events(reply[0][1] if reply else ()):
                            page = asyncio.get_running_loop().create_future()
                            page.set_result(events)
                            behind, last = last, events[-1][0]
                            self._tell({behind: page})
            except Exception as error:
                log.info("lost the stream of events: %s", error)
            await asyncio.sleep(backoff_s(failures))
            failures += 1


def _event(fields: Any) -> bytes:
    if isinstance(fields, dict):
        return bytes(fields[b"e"])
    return bytes(fields[list(fields).index(b"e") + 1])


def _events(entries: Any) -> list[Event]:
    return [(bytes(event_id).decode(), _event(fields)) for event_id, fields in entries or () if fields is not None]
