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
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("plain_deadline", default=None)


def is_plain() -> bool:
    """Whether this is a plain call: nothing may suspend, and waiting blocks."""
    return _deadline.get() is not None


def run(work: Coroutine[Any, Any, T]) -> T:
    """Drive `work` to its end here. Raises what it raises, and AssertionError when it waits for a loop."""
    before = _deadline.set(_deadline.get() or math.inf)
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        _deadline.reset(before)
    work.close()
    raise AssertionError("a plain call waits for an event loop")


class outside:
    """Within it what is called is no plain call, although one goes on: for functions that are not ours."""

    def __enter__(self) -> None:
        self._before = _deadline.set(None)

    def __exit__(self, *_raised: object) -> None:
        _deadline.reset(self._before)


async def pause(seconds: float) -> None:
    """Sleep."""
    if is_plain():
        time.sleep(max(0.0, seconds))  # noqa: ASYNC251
    else:
        await asyncio.sleep(seconds)


async def gather(*work: Awaitable[T], to_the_end: bool = False) -> list[T]:
    """The results of all, at the same time where there is a loop. Raises what the first raises that fails: at once, or
    once all have ended."""
    results: list[T] = []
    problem: BaseException | None = None
    if not is_plain():
        answers = await asyncio.gather(*work, return_exceptions=to_the_end)
        problem = next((one for one in answers if isinstance(one, BaseException)), None) if to_the_end else None
        results = answers  # type: ignore[assignment]
    else:
        for one in work:
            if problem is None or to_the_end:
                try:
                    results.append(await one)
                except Exception as error:
                    problem = problem or error
            elif isinstance(one, Coroutine):
                one.close()
    if problem is not None:
        raise problem
    return results


class Turns:
    """So many at a time, of plain calls in any threads, or of tasks. Not of both."""

    def __init__(self, most: int = 1) -> None:
        self._threads, self._tasks = threading.Semaphore(most), asyncio.Semaphore(most)

    async def acquire(self, within_s: float | None = None) -> None:
        """Raises TimeoutError."""
        if is_plain():
            if not self._threads.acquire(timeout=min(within_s or math.inf, left_s(), threading.TIMEOUT_MAX)):
                raise TimeoutError
        elif self._tasks.locked():
            async with asyncio.timeout(within_s):
                await self._tasks.acquire()
        else:
            await self._tasks.acquire()

    def release(self) -> None:
        (self._threads if is_plain() else self._tasks).release()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_raised: object) -> None:
        self.release()


class _Watch:
    """Of one loop: ends what stays in a `within` for too long. One timer for all: one for each, as `asyncio.timeout`
    has it, takes a tenth of a call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.inside: set[within] = set()
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, one: within) -> None:
        self.inside.add(one)
        if self._timer is None or one.deadline < self._timer.when():
            self._set()

    def _set(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        nearest = min((one.deadline for one in self.inside if not one.is_late), default=None)
        self._timer = None if nearest is None else self.loop.call_at(nearest, self._look)

    def _look(self) -> None:
        for one in self.inside:
            if one.deadline <= self.loop.time() and not one.is_late:
                one.is_late = True
                one.task.cancel()
        self._set()


_here = threading.local()


class within:
    """`async with within(5):` raises TimeoutError when what is in it takes longer. In a plain call the connections that
    are used in it look at the time that is left."""

    __slots__ = ("_before", "_cancelling", "_seconds", "_watch", "deadline", "is_late", "task")

    task: asyncio.Task[Any]

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._watch: _Watch | None = None
        self.is_late = False

    async def __aenter__(self) -> None:
        outer = _deadline.get()
        if outer is not None:
            self.deadline = min(outer, time.monotonic() + self._seconds)
            self._before = _deadline.set(self.deadline)
            return
        loop = asyncio.get_running_loop()
        watch: _Watch | None = getattr(_here, "watch", None)
        if watch is None or watch.loop is not loop:
            watch = _here.watch = _Watch(loop)
        self._watch = watch
        task = asyncio.current_task()
        assert task is not None
        self.task, self._cancelling = task, task.cancelling()
        self.deadline = loop.time() + self._seconds
        watch.enter(self)

    async def __aexit__(self, kind: Any, *_raised: Any) -> None:
        if self._watch is None:
            _deadline.reset(self._before)
            return
        self._watch.inside.discard(self)
        if self.is_late and self.task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError


def left_s() -> float:
    """How many seconds a plain call may still take: those of the narrowest `within`. Raises TimeoutError when there are
    none."""
    deadline = _deadline.get()
    if deadline is None:
        return math.inf
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
