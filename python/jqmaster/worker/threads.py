"""Threads for plain functions: one for each job that runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from jqmaster.worker.notes import current_job

log = logging.getLogger("jqmaster.worker")


class Threads:
    """At most `most` at a time. A thread cannot be stopped: when `run` is cancelled it runs on until its function
    returns, and is counted in `left` meanwhile."""

    def __init__(self, most: int) -> None:
        self.left = 0
        self.told: Callable[[], object] = lambda: None
        """Called when `left` falls."""
        self._most = most
        self._pool = ThreadPoolExecutor(most, "job")

    async def run(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call `function` in a thread, in this context."""
        running = self._pool.submit(copy_context().run, function, *args, **kwargs)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.cancelled() and not running.done():
                self._leave(running)
            raise

    def stop(self) -> None:
        """Start no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _leave(self, running: Future[Any]) -> None:
        self.left += 1
        job, loop = current_job.get(), asyncio.get_running_loop()
        text = "job %s (%s) runs on in its thread, which is not free before it returns: %d of %d"
        log.warning(text, job.id, job.name, self.left, self._most)

        def returned(_running: Future[Any]) -> None:
            with contextlib.suppress(RuntimeError):  # the worker has ended meanwhile
                loop.call_soon_threadsafe(self._back)

        running.add_done_callback(returned)

    def _back(self) -> None:
        self.left -= 1
        self.told()
