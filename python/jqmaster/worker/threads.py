"""Threads for plain functions: one for each job that runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
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
        self._count = 0
        self._idle = threading.Semaphore(0)
        self._calls: SimpleQueue[tuple[Future[Ended], Callable[[], Ended]] | None] = SimpleQueue()

    async def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call `function` in a thread, in this context. Raises what it raises."""
        running = self._submit(partial(copy_context().run, _ended, os.getpid(), function, *args, **kwargs))
        try:
            ended = await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.cancelled() and not running.done():
                self._leave(running)
            raise
        return _result(ended)

    def stop(self) -> None:
        """End the threads, each when its function returns. None is started any more."""
        for _ in range(self._count):
            self._calls.put(None)

    # Not a ThreadPoolExecutor: the end of a process waits for its threads, whatever they do, and each child that is
    # forked in one of them waits for itself and ends with exit code 1.
    def _submit(self, call: Callable[[], Ended]) -> Future[Ended]:
        future: Future[Ended] = Future()
        self._calls.put((future, call))
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._work, name=f"job_{self._count}", daemon=True).start()
        return future

    def _work(self) -> None:
        while (work := self._calls.get()) is not None:
            future, call = work
            if future.set_running_or_notify_cancel():
                future.set_result(call())
            del work, future, call  # or what the function returned stays until the next one comes
            self._idle.release()

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
