"""Plain calls: a coroutine whose reads and writes block is driven to its end in the thread that called it.

So one source serves both kinds of callers. What such a coroutine may await, besides connections, is here: each of
these blocks in a plain call, and else does what asyncio's own does.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_is_plain = contextvars.ContextVar("is_plain", default=False)
_deadline = contextvars.ContextVar("deadline", default=math.inf)
_EARLY_S = 0.001  # by which a loop's timers may be
LONG_S = 1e6  # no socket, lock or timer takes infinity


def is_plain() -> bool:
    """Whether this is a plain call: nothing may suspend, and waiting blocks."""
    return _is_plain.get()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Drive `work` to its end here. Raises what it raises, and AssertionError when it waits for a loop."""
    # In a context of its own: what a signal handler raises, as Ctrl-C does, may come before anything is reset.
    context = contextvars.copy_context()
    context.run(_is_plain.set, True)
    try:
        context.run(work.send, None)
    except StopIteration as end:
        value: T = end.value
        return value
    work.close()
    raise AssertionError("a plain call waits for an event loop")


class outside:
    """Within it what is called is no plain call, although one goes on: for functions that are not ours."""

    def __enter__(self) -> None:
        self._before = _is_plain.set(False)

    def __exit__(self, *_raised: object) -> None:
        _is_plain.reset(self._before)


async def pause(seconds: float) -> None:
    """Sleep."""
    if is_plain():
        time.sleep(max(0.0, seconds))  # noqa: ASYNC251
    else:
        await asyncio.sleep(seconds)


class Turns:
    """So many at a time, of plain calls in any threads, or of tasks, not of both; who came first is first."""

    def __init__(self, most: int = 1) -> None:
        self._free, self._tasks = most, asyncio.Semaphore(most)
        self._waiting: deque[threading.Lock] = deque()  # threads, each until its lock is opened
        self._lock = threading.Lock()

    async def acquire(self) -> None:
        """Raises TimeoutError."""
        if is_plain():
            self._acquire()
        elif self._tasks.locked():
            async with asyncio.timeout(left_s()):
                await self._tasks.acquire()
        else:
            await self._tasks.acquire()

    def _acquire(self) -> None:
        # Of a threading.Semaphore the thread that runs gets each turn, until it blocks elsewhere: others would starve.
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        try:
            if not turn.acquire(timeout=left_s()):
                raise TimeoutError
        except BaseException:
            with self._lock:
                has_come = turn not in self._waiting
                if not has_come:
                    self._waiting.remove(turn)
            if has_come:
                self.release()
            raise

    def release(self) -> None:
        if not is_plain():
            self._tasks.release()
            return
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_raised: object) -> None:
        self.release()


class within:
    """`async with within(5):` the connections that are used in it raise TimeoutError when what is in it takes longer. A
    timer for each, as `asyncio.timeout` has it, would take a tenth of a call."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def __aenter__(self) -> None:
        self._before = _deadline.set(min(_deadline.get(), time.monotonic() + self._seconds))

    async def __aexit__(self, *_raised: object) -> None:
        _deadline.reset(self._before)


def left_s(most: float = LONG_S) -> float:
    """How many seconds there are: those of the narrowest `within`, at most so many. Raises TimeoutError when it is
    over."""
    left = _deadline.get() - time.monotonic()
    if left <= _EARLY_S:
        raise TimeoutError
    return min(left, most)
