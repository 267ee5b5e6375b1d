"""Signals to a worker's process: the first has it stop, a second ends it at once."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger("jqmaster.worker")

LEAVE_S = 1.5  # beyond the grace: to give back what still runs, and for lifespans
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """To the process whose main thread runs `loop`. `stop()` is called in the loop at the first one. The process ends
    `LEAVE_S` after `grace_s` at the latest, whatever blocks the loop or is left behind: leases of what ran run out."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], object], grace_s: float) -> None:
        self._loop = loop
        self._stop = stop
        self._end = threading.Timer(grace_s + LEAVE_S, self._end_now)
        self._end.daemon = True
        self._code = 0
        self._is_told = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop, to its end. What a job left behind, a task or a callback, may raise SystemExit or
        stop the loop: it goes on."""
        for number in SIGNALS:
            signal.signal(number, self._hear)
        # Takes those that a job has blocked in its thread, which may be the loop's.
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        os.register_at_fork(after_in_child=self.over)  # in a process that a job forked: its signals are its own
        task = self._loop.create_task(work)
        task.add_done_callback(lambda _: self._loop.stop())
        while not task.done():
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                log.error("ignored an exception that a job left behind: %r", error)
        return task.result()

    def ends(self, code: int) -> None:
        """The worker has stopped, and the process ends with `code`: in time, whatever threads and exit handlers are
        left."""
        self._code = code
        self._begin_end()

    def over(self) -> None:
        """The worker has stopped: the process may go on, and is what it was."""
        self._end.cancel()
        for number in SIGNALS:
            if signal.getsignal(number) == self._hear:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        # Python calls it in the main thread, also in the middle of a job that blocks the loop.
        if self._is_told:
            os._exit(128 + number)
        self._is_told = True
        self._begin_end()
        with suppress(RuntimeError):  # the loop is closed: the worker has stopped
            self._loop.call_soon_threadsafe(self._stop)

    def _begin_end(self) -> None:
        if self._end.ident is None:
            self._end.start()

    def _end_now(self) -> None:
        log.error("the worker could not stop in time, and ends now; leases of its jobs run out")
        os._exit(self._code)
