"""Sleeping until Redis says that there may be work (docs/protocol.md, Sleeping), without polling.

A `Channel` is one blocking BZPOPMIN connection on a wake marker, shared by all who sleep on it in this
process. Each marker wakes one sleeper, which must look for work at once: a marker must not get lost. One that
nobody here can answer goes back into Redis, where another process takes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Iterable, Sequence
from typing import Any

from redis.exceptions import RedisError

from jqmaster.connection.redis_client import RedisClient

log = logging.getLogger("jqmaster.wake")

WINDOW_MS = 60_000  # the longest sleep that protocol.md allows
RECONNECT_FIRST_S = 0.05
RECONNECT_CAP_S = 1.0
STOP_TIMEOUT_S = 2.0
# How long one BZPOPMIN blocks. Short: nobody has to end it from outside, and one whose client is gone, which
# Redis may not know, swallows no marker for long.
BLOCK_S = 3.0


def backoff_s(failures: int) -> float:
    """How long to wait after failure number `failures` (from 0), with jitter so that processes spread out."""
    most: float = min(RECONNECT_CAP_S, RECONNECT_FIRST_S * 2 ** min(failures, 16))
    return most * random.uniform(0.5, 1.0)


async def end(tasks: Iterable[asyncio.Task[Any] | None], within_s: float | None = None) -> None:
    """Cancel those that there are, and wait until they are over, at most for so long."""
    ending = {task for task in tasks if task is not None}
    for task in ending:
        task.cancel()
    if ending:
        await asyncio.wait(ending, timeout=within_s)


async def sleep(channels: Sequence[Channel], timeout_s: float, who: str = "") -> list[Channel]:
    """Wait for a marker on one of the channels, for the moment set by `look_in`, for `pass_on`, or until the time is
    up. Gives the channels where it was something else than the time: look for work there at once. When it is cancelled,
    their wakes go to the next sleepers."""
    if timeout_s <= 0 or any(channel.stopped for channel in channels):
        return []
    alarm = asyncio.Event()
    for channel in channels:
        channel.enter(alarm, who)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await alarm.wait()
    except asyncio.CancelledError:
        for channel in channels:
            if channel.leave(alarm):
                channel.pass_on()
        raise
    return [channel for channel in channels if channel.leave(alarm)]


class Channel:
    """The sleepers of one channel in this process, their BZPOPMIN connection and their timer."""

    def __init__(self, redis: RedisClient, key: str, block_s: float = BLOCK_S) -> None:
        self.key = key
        self._redis = redis
        self._block_s = block_s
        self.sleepers: dict[asyncio.Event, str] = {}  # and who sleeps; the longest sleeper comes first
        self._listener: asyncio.Task[None] | None = None
        self.stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._background: set[asyncio.Task[None]] = set()

    @property
    def connected(self) -> bool:
        """Whether it takes a connection, as it does until Redis ends the last block."""
        return self._listener is not None and not self._listener.done()

    def enter(self, alarm: asyncio.Event, who: str) -> None:
        """Have `alarm` set when somebody is to look here."""
        self.sleepers[alarm] = who
        if not self.connected:
            self._listener = asyncio.create_task(self._listen(), name=f"wake {self.key}")

    def leave(self, alarm: asyncio.Event) -> bool:
        """Whether it was set from here."""
        return self.sleepers.pop(alarm, None) is None

    def pass_on(self) -> None:
        """Wake the one that has slept longest, here; else whoever sleeps in another process."""
        if self.sleepers:
            self._wake(next(iter(self.sleepers)))
        else:
            self._spawn(self._put())

    def wake_same(self, who: str) -> None:
        """Wake one more sleeper of the same worker: its pick that found a job ended the worker's rest, and
        those of its picks that still sleep must tell the engine again that they do."""
        same = [alarm for alarm, sleeper in self.sleepers.items() if sleeper == who]
        if same:
            self._wake(same[0])

    def wake_all(self) -> None:
        for alarm in list(self.sleepers):
            self._wake(alarm)

    def look_in(self, next_ms: int) -> None:
        """Something becomes ready by time alone in `next_ms` (-1: never): wake one sleeper then. An earlier
        moment stays.

        Kept here and not in BZPOPMIN's timeout, which overshoots by up to 100 ms.
        """
        if next_ms < 0 or self.stopped:  # others were told to look
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + next_ms / 1000
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = loop.call_at(when, self._on_timer)

    def hand_over(self) -> None:
        """Wake everybody here for good, and have somebody in another process look.

        A sleeper that has just been woken may not have looked yet, nobody else may know of the moment that `look_in`
        was told, and a marker may be on its way here.
        """
        if not self.stopped:
            self.stopped = True
            self.wake_all()
            if self._timer is not None:
                self._timer.cancel()
            self._spawn(self._leave())

    async def stop(self) -> None:
        """`hand_over`, and close the connection, within about `STOP_TIMEOUT_S`."""
        self.hand_over()
        if self._background:
            await asyncio.wait(set(self._background), timeout=STOP_TIMEOUT_S)

    # -- parts ------------------------------------------------------------------------------------

    def _wake(self, alarm: asyncio.Event) -> None:
        del self.sleepers[alarm]
        alarm.set()

    def _on_timer(self) -> None:
        self._timer = None
        self.pass_on()  # who counted on this process may sleep in another, and all who slept here may be busy

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work, name=f"wake {self.key}")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _leave(self) -> None:
        await end([self._listener])
        with contextlib.suppress(RedisError, OSError):
            # When this is answered, Redis has seen that the connection is closed: it takes no marker any more.
            await self._redis.call("PEXPIRE", self.key, WINDOW_MS)
        await self._put()

    async def _put(self) -> None:
        with contextlib.suppress(RedisError, OSError):
            await self._redis.call("ZADD", self.key, 0, b"1")
            # Whoever sleeps looks within the window anyway; a channel nobody uses any more leaves no key.
            await self._redis.call("PEXPIRE", self.key, WINDOW_MS)

    async def _listen(self) -> None:
        failures = 0
        while self.sleepers:  # no await after this look: a sleeper that comes later starts a new listener
            try:
                reply = await self._redis.ask("BZPOPMIN", self.key, self._block_s, block_s=self._block_s)
                failures = 0
                if reply is not None:
                    self.pass_on()
            except (RedisError, OSError) as error:
                log.info("lost Redis while waiting on %s: %s", self.key, error)
                # A marker may have gone with the connection, so everybody looks. And somebody once more when
                # Redis has forgotten the connection, too.
                self.wake_all()
                self.look_in(round(self._block_s * 1000) + 100)
                await asyncio.sleep(backoff_s(failures))
                failures += 1
