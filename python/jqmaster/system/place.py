"""One partition of a system, as those see it who wish for jobs of the same queues."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from redis.exceptions import RedisError

from jqmaster.connection.wake import BLOCK_S, WINDOW_MS, Channel, backoff_s
from jqmaster.engine import replies
from jqmaster.engine.calls import given, new_request
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import Waiting, channel_of, note_s
from jqmaster.errors import JQError, Unavailable
from jqmaster.system.settled import Settled

log = logging.getLogger("jqmaster.system")

LOOK_S = 1.0  # how long a partition may take to answer before the next is asked
HEAD_S = 0.1  # how long its head is waited for, while an outcome is to be reported
AWAY_S = 5.0  # at most so long a partition that did not answer is not asked
STALE_S = 1.0  # at most so long one with older settings is not asked
FAR_BLOCK_S = 3 * BLOCK_S  # a process sleeps at more of those that are not near it, so it calls more rarely there

Reply = list[Any]
"""Of `pick`, as the script gives it: `[next_ms, document, argument, …]`; of `assign` likewise."""


class Place:
    """A partition, as those see it who wish for jobs of the same queues."""

    def __init__(
        self,
        number: int,
        engine: Engine,
        wish: Mapping[str, Any],
        settled: Settled,
        *,
        is_near: bool,
        quiet_s: float,
    ) -> None:
        """`wish`: `{queues, order}`. Those that wish sleep there if it is near. `quiet_s`: how long a look that finds
        nothing lasts where they do not."""
        self.number = number
        self.engine = engine
        self.waiting = Waiting(engine, engine.redis)
        self.name = self.channel_of(wish)
        self.is_near = is_near
        self.channel: Channel | None = None  # where they sleep
        self.quiet_s = quiet_s
        self.is_called = False  # it has work, and somebody has to look
        self.away_until = 0.0
        self.led_until = 0.0  # its head is not followed until then
        self._failures = 0
        self._failed_at = 0.0  # the first of these
        self._settled = settled
        self._noted: dict[str, float] = {}  # workers of this process that sleep there, and until when they may
        self._wish = wish
        if is_near:
            self.settle(BLOCK_S)

    def channel_of(self, wish: Mapping[str, Any]) -> str:
        """On which those sleep who have this wish."""
        return channel_of(wish["queues"], wish.get("order"))

    @property
    def is_away(self) -> bool:
        """Whether it did not answer when it was asked last."""
        return self._failures > 0

    @property
    def is_stale(self) -> bool:
        """Whether it starts nothing, as its settings are older than those that are known."""
        return self._settled.is_stale(self.number)

    @property
    def version(self) -> str:
        """For which settings jobs are asked for."""
        return self._settled.of(self.number)

    def told(self, version: str) -> bool:
        """Of which version its settings are, which is not the one that it was asked for. Whether to ask again at once.
        One with older settings is left alone for a while, and has to be brought in line."""
        if self._settled.told(self.number, version):
            return True
        self.away_until = time.monotonic() + min(STALE_S, max(0.05, self._settled.since_s(self.number)))
        return False

    def is_worth_a_look(self, quiet: Quiet) -> bool:
        """Whether it may have something, as far as is known. Who does not listen there may have missed a call."""
        now = time.monotonic()
        is_quiet = now < quiet.until(self) and (self.channel is None or self.channel.connected)
        return not is_quiet and self.away_until <= now

    def wish(self, count: int, before: str | None = None, request: str | None = None) -> dict[str, Any]:
        """For up to `count` jobs."""
        asked = {**self._wish, "count": count, "settings": self.version, **given(before=before)}
        return {**asked, "request": request or new_request()}  # at the end (`new_request`)

    async def look(self, worker: Any, wish: Mapping[str, Any]) -> Reply:
        """Jobs, if there are any that can start. A partition that does not answer has none, nor one with older settings
        than are known, and is not asked for a while. Raises what Redis refuses."""
        self.is_called = False
        reply = await self._look(worker, wish)
        if (version := replies.stale(reply)) is None:
            return reply
        if not self.told(version):
            return [-1]
        reply = await self._look(worker, wish)
        return reply if replies.stale(reply) is None else [0]

    async def _look(self, worker: Any, wish: Mapping[str, Any]) -> Reply:
        asked = {"settings": self.version, **wish, "worker": worker}
        if self.channel is not None:
            self._noted[str(worker)] = time.monotonic() + WINDOW_MS / 1000 + 1
        try:
            async with asyncio.timeout(LOOK_S):  # what comes later is given back
                reply = await self.ask(asked)
        except TimeoutError:
            self.failed()
            return [-1]
        except Unavailable as problem:
            self.lost(asked)
            self.failed(problem)
            return [-1]
        self._answered()
        if replies.stale(reply) is not None:
            return reply
        self._settled.is_right(self.number)
        if len(reply) == 1 and reply[0] and self.channel is not None:
            self.channel.look_in(reply[0])
        return reply

    async def ask(self, asked: dict[str, Any]) -> Reply:
        """Of `look`: the call."""
        return await self.waiting.look(asked, self.name if self.channel else None)

    def lost(self, asked: dict[str, Any]) -> None:
        """Its answer does not come."""
        self.waiting.abandon(asked)

    def _answered(self) -> None:
        if self._failures:
            self._failures = 0
            if time.monotonic() - self._failed_at > LOOK_S:  # else it was only slow
                self._settled.compare()

    def failed(self, problem: Exception | None = None) -> None:
        """It did not answer."""
        now = time.monotonic()
        self.away_until = now + min(AWAY_S, backoff_s(self._failures) * 4)
        self._failed_at = self._failed_at if self._failures else now
        level = logging.DEBUG if self._failures else logging.INFO
        log.log(level, "%s is left out: %s", self.engine.namespace, problem or "no answer in time")
        self._failures += 1

    async def head(self) -> tuple[int, str] | None:
        """Where its best job stands, if there is one and it says so soon."""
        asking = asyncio.create_task(self.engine.head(self._wish["queues"]))
        await asyncio.wait({asking}, timeout=HEAD_S)
        if not asking.done():
            asking.add_done_callback(lambda task: task.cancelled() or task.exception())
            self.failed()
            return None
        try:
            found = asking.result()
        except JQError as problem:
            self.failed(problem)
            return None
        self._answered()
        return found

    async def is_covered(self) -> bool | None:
        """Whether others sleep there for the same queues, by what they said and this clock; None where it does not
        tell."""
        now = time.monotonic()
        self._noted = {worker: until for worker, until in self._noted.items() if until > now}
        key, most = f"{self.engine.namespace}:asleep:{self.name}", len(self._noted) + 1
        try:
            async with asyncio.timeout(LOOK_S):
                found: Any = await self.engine.redis.zrangebyscore(key, time.time() * 1000, "inf", start=0, num=most)
        except (RedisError, OSError):  # TimeoutError is one
            return None
        return any(one.decode(errors="surrogateescape") not in self._noted for one in found)

    def settle(self, block_s: float = FAR_BLOCK_S) -> None:
        """Sleep there from now on."""
        self.channel = Channel(self.engine.redis, f"{self.engine.namespace}:wake:{self.name}", block_s)

    async def leave(self) -> None:
        """Sleep there no more. Who does looks again."""
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.wake_all()
            await channel.stop()

    async def close(self) -> None:
        """The partition is no more: nobody looks there from now on."""
        self.away_until = float("inf")
        self._failures += 1
        await self.leave()

    async def stop(self) -> None:
        """Have others look where somebody slept, and give back what late answers bring."""
        if self.channel is not None:
            await self.channel.stop()
        await self.waiting.stop()


class Quiet:
    """Where somebody found nothing. It is their own: another may get what they do not."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}  # by number: nothing can start until then, or the channel says so
        self._ready_at: dict[int, float] = {}  # when something becomes ready by time alone

    def until(self, place: Place) -> float:
        """0.0 where it may have something."""
        return self._until.get(place.number, 0.0)

    def note(self, place: Place, reply: Reply) -> None:
        """What it answered: if jobs, it may have more; else when there may be some. One that does not answer, or starts
        nothing, may have some as well: who looked there does not count as asleep."""
        next_ms = reply[0]
        if place.is_away or place.is_stale or len(reply) > 1 or not next_ms:  # 0: there may be some at once
            self.over(place)
            return
        now = time.monotonic()
        self._until[place.number] = now + (place.quiet_s if place.channel is None else note_s(next_ms))
        self._ready_at[place.number] = now + next_ms / 1000 if next_ms > 0 else float("inf")

    def over(self, place: Place) -> None:
        """It may have something."""
        self._until.pop(place.number, None)
        self._ready_at.pop(place.number, None)

    def next_ms(self) -> int:
        """When something becomes ready by time alone, from now; -1 for never."""
        soonest = min(self._ready_at.values(), default=float("inf"))
        return -1 if soonest == float("inf") else max(1, round((soonest - time.monotonic()) * 1000))
