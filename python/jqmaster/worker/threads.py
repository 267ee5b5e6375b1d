"""Threads for plain functions: one for each job that runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from jqmaster.worker.failure import trace_of
from jqmaster.worker.notes import current_job

log = logging.getLogger("jqmaster.worker")

Ended = tuple[Any, BaseException | None]
"""How a call ended: what it returned, or what it raised. A future holds no StopIteration, loses the traceback of a
TimeoutError, and takes a CancelledError for its own."""


class Threads:
    """At most `most` at a time. A thread cannot be stopped: when `run` is cancelled it runs on until its function
    returns, and is counted in `left` meanwhile."""

    def __init__(self, most: int) -> None:
        self.left = 0
        self.told: Callable[[], object] = lambda: None
        """Called when `left` falls."""
        self._most = most
        self._pool = ThreadPoolExecutor(most, "job")

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `function` in a thread, in this context. Raises what it raises."""
        running = self._pool.submit(copy_context().run, _ended, os.getpid(), function, *args, **kwargs)
        try:
            ended = await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.cancelled() and not running.done():
                self._leave(running)
            raise
        return _result(ended)

    def stop(self) -> None:
        """Start no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _leave(self, running: Future[Ended]) -> None:
        self.left += 1
        job, loop = current_job.get(), asyncio.get_running_loop()
        text = "job %s (%s) runs on in its thread, which is not free before it returns: %d of %d"
        log.warning(text, job.id, job.name, self.left, self._most)

        def returned(_running: Future[Ended]) -> None:
            with contextlib.suppress(RuntimeError):  # the worker has ended meanwhile
                loop.call_soon_threadsafe(self._back)

        running.add_done_callback(returned)

    def _back(self) -> None:
        self.left -= 1
        self.told()


async def in_a_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call `function` in a thread that is no job's. Raises what it raises."""
    return _result(await asyncio.to_thread(_ended, os.getpid(), function, *args))


def end_if_forked(pid: int, error: BaseException | None = None) -> None:
    """A function that forked and came back, or raised, in its child as well ends there: the child is no second worker.
    `pid`: of the process that called it."""
    if os.getpid() == pid:
        return
    if error is None:
        os._exit(0)
    if isinstance(error, SystemExit):
        os._exit(error.code if isinstance(error.code, int) else int(error.code is not None))
    with contextlib.suppress(BaseException):
        os.write(2, trace_of(error).encode())
    os._exit(1)


def _ended(pid: int, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Ended:
    try:
        result = function(*args, **kwargs)
    except BaseException as error:
        end_if_forked(pid, error)
        return None, error
    end_if_forked(pid)
    return result, None


def _result(ended: Ended) -> Any:
    result, error = ended
    if error is None:
        return result
    try:
        raise error
    finally:
        del ended, error  # or the traceback would hold itself
