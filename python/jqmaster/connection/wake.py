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
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Any

import redis.asyncio as redis_asyncio
from redis.exceptions import RedisError

from jqmaster.connection.endpoint import endpoint_of

log = logging.getLogger("jqmaster.wake")

WINDOW_MS = 60_000  # the longest sleep that protocol.md allows
RECONNECT_FIRST_S = 0.05
RECONNECT_CAP_S = 1.0
STOP_TIMEOUT_S = 2.0
# How long one BZPOPMIN blocks. Short: nobody has to end it from outside, and one whose client is gone, which
# Redis may not know, swallows no marker for long.
BLOCK_S = 3.0
LINGER_S = 5.0  # how long a connection without sleepers is kept

Marker = tuple[bytes, float]
"""A marker as it was taken: member and score."""


def backoff_s(failures: int, cap_s: float = RECONNECT_CAP_S) -> float:
    """How long to wait after failure number `failures` (from 0), with jitter so that processes spread out."""
    most: float = min(cap_s, RECONNECT_FIRST_S * 2 ** min(failures, 16))
    return most * random.uniform(0.5, 1.0)


async def end(tasks: Iterable[asyncio.Task[Any] | None], within_s: float | None = None) -> None:
    """Cancel those that there are, and wait until they are over, at most for so long."""
    ending = {task for task in tasks if task is not None}
    for task in ending:
        task.cancel()
    if ending:
        await asyncio.wait(ending, timeout=within_s)


class _Sleeper:
    def __init__(self, who: str) -> None:
        self.who = who
        self.alarm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.woken = False
        self.marker: Marker | None = None

    def wake(self, marker: Marker | None = None) -> None:
        self.woken = True
        self.marker = marker
        if not self.alarm.done():
            self.alarm.set_result(None)


class Channel:
    """The sleepers of one channel in this process, their BZPOPMIN connection and their timer."""

    def __init__(self, redis: redis_asyncio.Redis, key: str, block_s: float = BLOCK_S) -> None:
        self.key = key
        self._redis = redis
        self._block_s = block_s
        self._endpoint = endpoint_of(redis)
        self._sleepers: deque[_Sleeper] = deque()
        self._sleeper_came = asyncio.Event()
        self._listener: asyncio.Task[None] | None = None
        # To end our own BZPOPMIN, which waits for this key as well. CLIENT UNBLOCK would crash Redis 7.0
        # while CLIENT PAUSE or FAILOVER holds the command back.
        self._own_key = f"{key}:{secrets.token_hex(6)}"
        self._is_blocked = False
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._background: set[asyncio.Task[None]] = set()

    @property
    def connected(self) -> bool:
        """Whether there is a connection, in use or kept for a while."""
        return self._listener is not None and not self._listener.done()

    async def sleep(self, timeout_s: float, who: str = "") -> bool:
        """Wait for a marker, for the moment set by `look_in`, for `wake_one`, or until the time is up; say
        whether it was something else than the time. When this returns, look for work at once. When it is
        cancelled, the wake goes to the next sleeper."""
        if self._stopped or timeout_s <= 0:
            return False
        sleeper = _Sleeper(who)
        self._sleepers.append(sleeper)
        self._sleeper_came.set()
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen(), name=f"wake {self.key}")
        try:
            async with asyncio.timeout(timeout_s):
                await sleeper.alarm
        except TimeoutError:
            return sleeper.woken
        except asyncio.CancelledError:
            if sleeper.marker is not None:
                self._give(sleeper.marker)
            elif sleeper.woken:
                self.wake_one()
            raise
        finally:
            self._leave(sleeper)
        return True

    def wake_one(self) -> None:
        """Wake the one that has slept longest."""
        if self._sleepers:
            self._sleepers.popleft().wake()

    def wake_same(self, who: str) -> None:
        """Wake one more sleeper of the same worker: its pick that found a job ended the worker's rest, and
        those of its picks that still sleep must tell the engine again that they do."""
        for sleeper in self._sleepers:
            if sleeper.who == who:
                self._sleepers.remove(sleeper)
                sleeper.wake()
                return

    def wake_all(self) -> None:
        while self._sleepers:
            self._sleepers.popleft().wake()

    def look_in(self, next_ms: int) -> None:
        """Something becomes ready by time alone in `next_ms` (-1: never): wake one sleeper then. An earlier
        moment stays.

        Kept here and not in BZPOPMIN's timeout, which overshoots by up to 100 ms.
        """
        if next_ms < 0:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + next_ms / 1000
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = loop.call_at(when, self._on_timer)

    def pass_on(self) -> None:
        """For a sleeper that was woken and cannot look: have another one do it, here or in another
        process."""
        self._give((b"1", 0.0))

    def hand_over(self) -> None:
        """Wake everybody here for good, and have somebody in another process look.

        A sleeper that has just been woken may not have looked yet, and nobody else may know of the moment
        that `look_in` was told.
        """
        if not self._stopped:
            self._stopped = True
            self.wake_all()
            self._spawn(self._put(self.key, (b"1", 0.0)))

    async def stop(self) -> None:
        """`hand_over`, and close the connection, within about `STOP_TIMEOUT_S`."""
        self.hand_over()
        if self._timer is not None:
            self._timer.cancel()
        self._sleeper_came.set()
        if self._listener is not None:
            # A marker may be on its way: the reply is still read, if it comes in time.
            if self._is_blocked:
                self._spawn(self._put(self._own_key, (b"1", 0.0)))
            await asyncio.wait({self._listener}, timeout=STOP_TIMEOUT_S)
            self._listener.cancel()
            await asyncio.wait({self._listener}, timeout=STOP_TIMEOUT_S)
        # Last: the listener may have taken one more marker, which has to go back.
        if self._background:
            await asyncio.wait(set(self._background), timeout=STOP_TIMEOUT_S)

    # -- parts ------------------------------------------------------------------------------------

    def _leave(self, sleeper: _Sleeper) -> None:
        with contextlib.suppress(ValueError):
            self._sleepers.remove(sleeper)

    def _on_timer(self) -> None:
        self._timer = None
        self.pass_on()  # who counted on this process may sleep in another, and all who slept here may be busy

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work, name=f"wake {self.key}")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _give(self, marker: Marker) -> None:
        if self._sleepers:
            self._sleepers.popleft().wake(marker)
        else:
            self._spawn(self._put(self.key, marker))

    async def _put(self, key: str, marker: Marker) -> None:
        member, score = marker
        with contextlib.suppress(RedisError, OSError):
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.zadd(key, {member: score})
                # Whoever sleeps looks within the window anyway; a channel nobody uses any more leaves no key.
                pipe.pexpire(key, WINDOW_MS)
                await pipe.execute()

    async def _listen(self) -> None:
        """Runs as long as there are sleepers, and `LINGER_S` more."""
        failures = 0
        while not self._stopped:
            try:
                async with self._endpoint.line() as line:
                    async for marker in self._markers(line):
                        failures = 0
                        if marker is not None:
                            self._give(marker)
                    pause_s = 0.0
            except (RedisError, OSError) as error:
                log.info("lost Redis while waiting on %s: %s", self.key, error)
                # A marker may have gone with the connection, so everybody looks. And somebody once more when
                # Redis has forgotten the connection, too.
                self.wake_all()
                self.look_in(round(self._block_s * 1000) + 100)
                pause_s = backoff_s(failures)
                failures += 1
            if pause_s:
                await asyncio.sleep(pause_s)
            # No await between this look and the end: a sleeper that comes later starts a new listener.
            if not self._sleepers:
                return

    async def _markers(self, line: Any) -> AsyncIterator[Marker | None]:
        """What is there, and None when nothing came for so long; until nobody has slept for `LINGER_S`."""
        while not self._stopped:
            if not self._sleepers:
                self._sleeper_came.clear()
                try:
                    await asyncio.wait_for(self._sleeper_came.wait(), LINGER_S)
                except TimeoutError:
                    return
                continue
            self._is_blocked = True
            try:
                reply = await line.blocking(self._block_s, "BZPOPMIN", self.key, self._own_key, self._block_s)
            finally:
                self._is_blocked = False
            is_ours = reply is not None and bytes(reply[0]) == self.key.encode()
            yield (bytes(reply[1]), float(reply[2])) if is_ours else None
