"""One event loop in a thread of its own, on which a process does what plain code asks for: from any thread,
also of event loops, and after a fork. So connections and subscriptions are shared, and nobody has to close
them."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from jqmaster.worker.patched import start_thread

T = TypeVar("T")

STOP_TIMEOUT_S = 2.0

_lock = threading.Lock()
_current: Portal | None = None
_of_the_parent: list[Portal] = []


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class Portal:
    """The loop and its thread."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self.is_stopped = False
        self._ident: int | None = None
        self._join = start_thread(self._run, "jqmaster")

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run `work` on the loop. Raises RuntimeError when the process is ending, or has no thread for it."""
        if self.is_stopped:
            work.close()
            raise RuntimeError("JQ cannot be asked any more: the process is ending")
        if threading.get_ident() == self._ident:
            work.close()
            raise RuntimeError("JQ cannot be asked from within a serializer")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        """Close what is open, within about `STOP_TIMEOUT_S`."""
        with contextlib.suppress(Exception):
            self.submit(self._close()).result(STOP_TIMEOUT_S)
        self.is_stopped = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._join(STOP_TIMEOUT_S)

    def _run(self) -> None:
        self._ident = threading.get_ident()
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _close(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=STOP_TIMEOUT_S / 2)
        await self.loop.shutdown_asyncgens()


def current() -> Portal:
    """This process's portal."""
    global _current
    with _lock:
        if _current is None:
            _current = Portal()
        return _current


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` there and wait for it, however this thread is interrupted."""
    try:
        portal = current()
    except RuntimeError:
        work.close()
        raise
    future = portal.submit(work)
    try:
        return future.result()
    finally:
        future.cancel()


def _after_fork() -> None:
    # The thread is not there any more. What belongs to its loop must never be collected, see `link`.
    global _current, _lock
    if _current is not None:
        _of_the_parent.append(_current)
    _current, _lock = None, threading.Lock()


def _at_exit() -> None:
    if _current is not None:
        _current.stop()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
