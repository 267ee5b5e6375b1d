"""A thread beside the event loop of a worker's process: it ends the process when its time to stop is up, and says which
job blocks the loop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

from jqmaster.worker.slots import Running
from jqmaster.worker.worker import Worker

T = TypeVar("T")

log = logging.getLogger("jqmaster.worker")

LOOK_S = 0.25
LEAVE_S = 1.5  # beyond the grace: to give back what still runs, and for lifespans
STACK_FRAMES = 8
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Watchdog:
    """Of the process whose main thread runs `loop`. `stop()` is called in the loop at the first signal; a second one
    ends the process at once, and so does the end of `grace_s` and `LEAVE_S`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], object], grace_s: float) -> None:
        self.worker: Worker | None = None
        self._loop = loop
        self._stop = stop
        self._grace_s = grace_s
        self._pid = os.getpid()
        self._is_told = False
        self._is_over = False
        self._code = 0
        self._ends_at = float("inf")
        self._turned_at = time.monotonic()  # when the loop had a turn last
        self._has_asked = False
        self._said_of = 0.0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop, to its end. What a job left behind, a task or a callback, may raise SystemExit or
        stop the loop: it goes on."""
        for number in SIGNALS:
            signal.signal(number, self._hear)
        os.register_at_fork(after_in_child=self._forget)
        threading.Thread(target=self._watch, name="jqmaster watch", daemon=True).start()
        task = self._loop.create_task(work)
        while True:
            try:
                return self._loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt, RuntimeError) as error:
                if task.done() or self._loop.is_closed():
                    raise
                log.error("ignored an exception that a job left behind: %r", error)

    def ends(self, code: int) -> None:
        """The worker has stopped, and the process ends with `code`: when the time is up at the latest, whatever threads
        and exit handlers are left, and at once with a second signal."""
        self._code = code
        self._arm()

    def over(self) -> None:
        """The worker has stopped: the process may go on, and is what it was."""
        self._is_over = True
        for number in SIGNALS:
            if signal.getsignal(number) == self._hear:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        # Python calls it in the main thread, also in the middle of a job that blocks the loop.
        if self._is_told:
            os._exit(128 + number)
        self._is_told = True
        self._arm()
        self._soon(self._stop)

    def _forget(self) -> None:
        # In a process that a job forked: its signals are its own.
        if os.getppid() == self._pid and not self._is_over:
            self.over()

    def _arm(self) -> None:
        self._ends_at = min(self._ends_at, time.monotonic() + self._grace_s + LEAVE_S)

    def _watch(self) -> None:
        while not self._is_over:
            time.sleep(LOOK_S)
            try:
                if self.worker is not None and self.worker.slots.draining.is_set():
                    self._arm()
                if time.monotonic() >= self._ends_at:
                    self._end()
                self._look()
            except Exception:
                log.exception("watching the worker failed")

    def _end(self) -> None:
        running = [] if self.worker is None else self.worker.running
        jobs = ", ".join(map(_named, running))
        log.error("the worker could not stop in time, and ends now%s", jobs and f"; leases run out of {jobs}")
        os._exit(self._code)

    def _look(self) -> None:
        """Whether the loop turns, as long as there are leases to renew."""
        running = [] if self.worker is None else self.worker.running
        if not running or not self._has_asked:
            self._turned_at = time.monotonic()
        if not running:
            return
        stands_s = time.monotonic() - self._turned_at
        if stands_s > min(attempt.job.timeout for attempt in running) / 2 and self._said_of != self._turned_at:
            self._said_of = self._turned_at
            self._tell(running, stands_s)
        if not self._has_asked:
            self._has_asked = True
            self._soon(self._turned)

    def _turned(self) -> None:
        self._has_asked = False

    def _tell(self, running: list[Running], stands_s: float) -> None:
        task = asyncio.current_task(self._loop)
        at_fault = [attempt for attempt in running if attempt.task is task] or running
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        stack = "".join(traceback.format_stack(frame)[-STACK_FRAMES:]) if frame is not None else ""
        log.error(
            "the event loop has stood still for %.1f s, so no lease is renewed and jobs will run again elsewhere; "
            "blocked by %s: make it a plain function, or call what blocks by asyncio.to_thread\n%s",
            stands_s, " or ".join(map(_named, at_fault)), stack,
        )  # fmt: skip

    def _soon(self, call: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # it is closed
            pass


def _named(running: Running) -> str:
    return f"job {running.job.id} ({running.job.name})"
