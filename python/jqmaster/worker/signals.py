"""Signals to a worker's process: the first has it stop, a second ends it at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, TypeVar

from jqmaster.worker.log import harmless, log
from jqmaster.worker.threads import end_if_forked

T = TypeVar("T")

LEAVE_S = 1.5  # beyond the grace: to give back what still runs, and for lifespans
SAY_S = 0.5
_LATE = "the worker could not stop in time, and ends now; leases of its jobs run out"
_CHILD_WAITS = RuntimeError("a process that a job has forked cannot wait: the event loop is its parent's")
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """To a process that does nothing but what it is to `run`. It ends `LEAVE_S` after `grace_s` at the latest, whatever
    blocks its loop or is left behind: leases of what ran run out."""

    def __init__(self, grace_s: float) -> None:
        self.handlers: dict[int, Any] = {}
        """What hears them; none where nothing is run by this: the signals are the program's own then."""
        self._most_s = grace_s + LEAVE_S
        self._ends: SimpleQueue[bool] = SimpleQueue()  # True: the end begins; False: it is over. For signal handlers
        self._code = 0
        self._is_told = False

    def run(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], stop: Callable[[], object]) -> T:
        """Run `work` on the loop, to its end; `stop()` is called there at the first signal. What a job left behind, a
        task or a callback, may raise SystemExit or stop the loop: it goes on."""
        self._loop, self._stop = loop, stop
        self.handlers = dict.fromkeys(SIGNALS, self._hear)
        self.hold()
        harmless("asyncio")  # the loop ends when it cannot log what nobody has caught
        # It also takes those that a job has blocked in its thread, which may be the loop's.
        threading.Thread(target=self._watch, daemon=True).start()
        pid = os.getpid()
        os.register_at_fork(after_in_child=self._leave)
        task = loop.create_task(work)
        task.add_done_callback(lambda _: loop.stop())
        while not task.done():
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                log.error("ignored an exception that a job left behind: %r", error)
            end_if_forked(pid, _CHILD_WAITS)
        return task.result()

    def note(self) -> None:
        """The program's lifespans are entered: what they have set counts as well."""
        self.handlers = {number: signal.getsignal(number) for number in self.handlers}

    def hold(self) -> None:
        """Have the handlers again, which a job may have changed: a coroutine, in the main thread."""
        for number, handler in self.handlers.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)

    def begin_end(self) -> None:
        """From now on the process has so long. For signal handlers as well."""
        self._ends.put(True)

    def ends(self, code: int) -> None:
        """The worker has stopped, and the process ends with `code`: in time, whatever threads and exit handlers are
        left."""
        self._code = code
        self.begin_end()

    def over(self) -> None:
        """The worker has stopped: the process may go on, and is what it was."""
        self._ends.put(False)
        for number in SIGNALS:
            if signal.getsignal(number) == self._hear:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        # Python calls it in the main thread, also in the middle of a job that blocks the loop.
        if self._is_told:
            os._exit(128 + number)
        self._is_told = True
        self.begin_end()
        with suppress(RuntimeError):  # the loop is closed: the worker has stopped
            self._loop.call_soon_threadsafe(self._stop)

    def _watch(self) -> None:
        begins, until = self._ends.get(), time.monotonic() + self._most_s
        while begins:
            try:
                begins = self._ends.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                with suppress(RuntimeError):
                    saying = threading.Thread(target=log.error, args=(_LATE,), daemon=True)
                    saying.start()
                    saying.join(SAY_S)  # nobody may read it, as a job found that hangs where it logs
                os._exit(self._code)

    def _leave(self) -> None:
        """In a process that was forked: its signals are its own, and the loop is not."""
        self.over()
        with suppress(RuntimeError):  # it is closed: the worker has stopped
            self._loop.stop()
