"""Events of a namespace for those who follow them: all, or one job's (docs/finding.md)."""

from __future__ import annotations

import asyncio
import bisect
import logging
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
from jqmaster.server.fanout import Fanout

log = logging.getLogger("jqmaster.events")

PAGE = 500
MOST_BEHIND = 5000
STOP_TIMEOUT_S = 2.0

Event = tuple[str, bytes]
"""Its id in the stream, and the event itself, packed."""


def order(event_id: str) -> tuple[int, int]:
    """Ids in a stream sort by this."""
    moment, _, number = event_id.partition("-")
    return int(moment), int(number or 0)


class _Latest:
    """The latest events, once for all who follow. They are numbered as they come."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self.first = 0  # its number

    def add(self, event: Event) -> None:
        self._events.append(event)
        if len(self._events) >= 2 * MOST_BEHIND:
            del self._events[:MOST_BEHIND]
            self.first += MOST_BEHIND

    def clear(self) -> None:
        """There is a gap: no number from before is good any more."""
        self.first += len(self._events) + 1
        self._events.clear()

    def behind(self, event_id: str) -> int:
        """The number of the first event behind this one."""
        return self.first + bisect.bisect_right(self._events, order(event_id), key=lambda event: order(event[0]))

    def read(self, number: int) -> list[Event] | None:
        """A page of events from this one on; None if it is gone."""
        if number < self.first:
            return None
        return self._events[number - self.first : number - self.first + PAGE]


class EventFeed:
    """Follows the stream with one blocking connection for all who want events. `stop` ends everybody's."""

    def __init__(self, engine: Engine, redis: redis_asyncio.Redis) -> None:
        self._key = f"{engine.namespace}:events"
        self._of_job = f"{engine.namespace}:job:"
        self._redis = redis
        self._subscriptions = Subscriptions(redis)
        self._latest = _Latest()
        self._fanout = Fanout()
        self._followers = 0
        self._breaks, self._break = 0, "0-0"  # how often the stream went on differently; behind which event
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
            self._latest.clear()
            self._reader = asyncio.create_task(self._read(), name="events")
        last, number, breaks = event_id, -1, self._breaks
        try:
            while not self._stopped:
                if breaks != self._breaks:
                    last, number, breaks = self._break, -1, self._breaks
                    yield []
                page = self._latest.read(number)
                if page:
                    number += len(page)
                    if order(page[0][0]) <= order(last):  # the connection brings what was read before it
                        page = [event for event in page if order(event[0]) > order(last)]
                    if page:
                        last = page[-1][0]
                        yield page
                elif page is None:
                    # Read what there is, and only then trust what the connection brings.
                    number = self._latest.first
                    async for page in self._range(last):
                        last = page[-1][0]
                        yield page
                    if number == self._latest.first:
                        number = self._latest.behind(last)
                elif not await self._fanout.wait(alive_every_s):
                    yield None
        finally:
            self._followers -= 1
            if not self._followers and self._reader is not None:
                self._reader.cancel()
                self._reader = None

    def drain(self) -> None:
        """End what is followed, soon."""
        self._stopped = True
        self._fanout.tell()
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
        return [(bytes(event_id).decode(), _event(fields)) for event_id, fields in _pairs(reply)]

    async def _go_on(self, last: str) -> str:
        """Behind which event to read. After a failover to a replica that was behind, `last` may be unknown, and
        with a slower clock even ahead of all that comes."""
        if order(last) == (0, 0) or await self._ask("XRANGE", self._key, last, last):
            return last
        self._break, self._breaks = await self.last_id(), self._breaks + 1
        log.info("the stream of events has lost %s: going on behind %s", last, self._break)
        self._latest.clear()
        self._fanout.tell()
        return self._break

    async def _range(self, last: str) -> AsyncGenerator[list[Event], None]:
        while True:
            page = await self._ask("XRANGE", self._key, f"({last}", "+", "COUNT", PAGE)
            if page:
                yield page
            if len(page) < PAGE:
                return
            last = page[-1][0]

    async def _read(self) -> None:
        failures = 0
        last: str | None = None
        while True:
            try:
                if last is None:
                    last = await self.last_id()
                    # Between a follower's start and now something may have come.
                    self._latest.clear()
                    self._fanout.tell()
                async with endpoint_of(self._redis).line() as line:
                    last = await self._go_on(last)
                    while True:
                        ask = ("XREAD", "COUNT", PAGE, "BLOCK", round(BLOCK_S * 1000), "STREAMS", self._key, last)
                        reply = await line.blocking(BLOCK_S, *ask)
                        failures = 0
                        for event_id, fields in _pairs(reply[0][1] if reply else ()):
                            last = bytes(event_id).decode()
                            self._latest.add((last, _event(fields)))
                        self._fanout.tell()
            except Exception as error:
                log.info("lost the stream of events: %s", error)
            await asyncio.sleep(backoff_s(failures))
            failures += 1


def _event(fields: Any) -> bytes:
    if isinstance(fields, dict):
        return bytes(fields[b"e"])
    return bytes(fields[list(fields).index(b"e") + 1])


def _pairs(reply: Any) -> list[Any]:
    return [pair for pair in reply or [] if pair[1] is not None]
