"""Threads for plain functions: one for each job that runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

from jqmaster.worker.ending import trace_of
from jqmaster.worker.log import log
from jqmaster.worker.notes import current_job

Ended = tuple[Any, BaseException | None]
"""How a call ended: what it returned, or what it raised. A future holds no StopIteration, loses the traceback of a
TimeoutError, and takes a CancelledError for its own."""


class _Call(NamedTuple):
    run: Callable[[], Any]
    future: asyncio.Future[Ended]
    claim: threading.Lock  # taken by the thread that runs it, or by who cancels it before


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
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()

    async def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call `function` in a thread, in this context. Raises what it raises, and RuntimeError where the system has no
        thread for it."""
        work = partial(copy_context().run, function, *args, **kwargs)
        call = _Call(work, asyncio.get_running_loop().create_future(), threading.Lock())
        # Not a ThreadPoolExecutor: the end of a process waits for its threads, whatever they do, and each child that is
        # forked in one of them waits for itself and ends with exit code 1.
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            threading.Thread(target=self._work, name=f"job_{self._count + 1}", daemon=True).start()
            self._count += 1
        self._calls.put(call)  # not before: where no thread can be started this fails, and must not begin later
        try:
            result, error = await call.future
        except asyncio.CancelledError:
            if call.future.cancelled() and not call.claim.acquire(blocking=False):
                self.left += 1
                log.warning(
                    "job %s (%s) runs on, and its thread is not free before it returns: %d of %d",
                    (job := current_job.get()).id, job.name, self.left, self._most,
                )  # fmt: skip
            raise
        try:
            if error is not None:
                raise error
            return result
        finally:
            del error  # or the traceback would hold itself

    def stop(self) -> None:
        """End the threads, each when its function returns. None is started any more."""
        for _ in range(self._count):
            self._calls.put(None)

    def _work(self) -> None:
        pid = os.getpid()
        while (call := self._calls.get()) is not None:
            if call.claim.acquire(blocking=False):
                try:
                    ended: Ended = call.run(), None
                except BaseException as error:
                    ended = None, error
                end_if_forked(pid, ended[1])
                with contextlib.suppress(RuntimeError):  # the worker has ended meanwhile
                    call.future.get_loop().call_soon_threadsafe(self._give, call.future, ended)
                del ended
            del call  # or what the function returned stays until the next one comes
            self._idle.release()

    def _give(self, future: asyncio.Future[Ended], ended: Ended) -> None:
        if future.done():
            self.left -= 1
            self.told()
        else:
            future.set_result(ended)


def end_if_forked(pid: int, error: BaseException | None = None) -> None:
    """A function that forked and came back, or raised, in its child as well ends there: the child is no second worker.
    `pid`: of the process that called it."""
    if os.getpid() == pid:
        return
    code = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        with contextlib.suppress(BaseException):
            os.write(2, trace_of(error).encode())
    os._exit(code)
