"""Processes for functions that keep a processor busy, hang or crash (`@jq.job(process=True)`).

Own ones: `ProcessPoolExecutor` and loky break as a whole when one process dies, and stop none that hangs; pebble stops
it, but nothing comes back from a process before its function returns: no progress, no log line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from jqmaster.engine.replies import Job, Note
from jqmaster.worker import process
from jqmaster.worker.ending import Ending
from jqmaster.worker.notes import notebook_of
from jqmaster.worker.process import GRACE_S, ProcessCall, ProcessReply
from jqmaster.worker.threads import Threads

END_S = 2.0
LOOK_S = 0.5
EXIT_S = 5.0  # from the end of its connection to its own
_CODE = "import sys; sys.path[:] = {path!r}; from jqmaster.worker.process import serve; serve({fd}, {pid}, {level})"


class ProcessDied(RuntimeError):
    """The process of a job ended before its function did. `exit_code`: negative for a signal's number."""

    def __init__(self, exit_code: int, what: str = "its process died") -> None:
        self.exit_code = exit_code
        super().__init__(f"{what}: {_death(exit_code)}")


class ProcessPool:
    """A process for each job that runs; made when they are needed, and used again. After so many `jobs` one makes room
    for a fresh one.

    They are started anew, so they share nothing with the worker: the job is found by its module and name. Cancelling
    `run` ends the job's process, and no other: after `GRACE_S` it is killed. With a process goes what its jobs have
    started and left in its process group.
    """

    def __init__(self, threads: Threads, most: int, jobs: int | None = None) -> None:
        """`threads` wait for them."""
        self._threads = threads
        self._jobs = jobs
        self._keeps = min(most, os.cpu_count() or 1)  # idle ones
        self._idle: list[_Process] = []
        self._others: set[_Process] = set()  # that are busy, or about to end

    async def run(self, module: str, job: Job, target: Any) -> Ending:
        """Run an attempt there, of a job of `module`; `target`: what the object that it is a job of is for. Raises
        ProcessDied, OSError."""
        self._idle = [idle for idle in self._idle if not idle.has_died()]
        worker_process = self._idle.pop() if self._idle else _Process()
        self._others.add(worker_process)
        module = process.main_module() if module == "__main__" else module
        try:
            reply: ProcessReply = await self._threads.run(worker_process.call, ProcessCall(module, job, target))
        except asyncio.CancelledError:
            self._let_go(worker_process, GRACE_S)
            raise
        except BaseException:
            self._kill(worker_process)  # it is dead, or as good as that
            raise
        is_worn = self._jobs is not None and worker_process.calls >= self._jobs
        if is_worn or not reply.has_begun or len(self._idle) >= self._keeps:
            self._let_go(worker_process, END_S)
        else:
            self._others.discard(worker_process)
            self._idle.append(worker_process)
        return reply.ending

    def stop(self) -> None:
        """End the processes, whatever they do; those that are idle have a moment for their lifespans."""
        for worker_process in self._idle:
            worker_process.end()
        deadline = time.monotonic() + END_S
        for worker_process in self._idle:
            worker_process.gone(deadline)
        for worker_process in list(self._others):
            self._kill(worker_process)

    def _let_go(self, worker_process: _Process, grace_s: float) -> None:
        worker_process.end()
        asyncio.get_running_loop().call_later(grace_s, self._kill, worker_process)

    def _kill(self, worker_process: _Process) -> None:
        self._others.discard(worker_process)
        worker_process.kill()


class _Process:
    """One process, and the group of what it starts."""

    def __init__(self) -> None:
        self.calls = 0
        self._has_begun = False
        self._is_swept = False
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        code = _CODE.format(path=sys.path, fd=theirs.fileno(), pid=os.getpid(), level=logging.getLogger().level)
        # A service manager's signals reach it as well, and may come before its handlers are there.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            theirs.close()

    def call(self, call: ProcessCall) -> ProcessReply:
        """Run one job; it blocks. Raises ProcessDied."""
        self.calls += 1
        try:
            self._connection.send(call)
            while not isinstance(item := self._heard(), ProcessReply):
                self._has_begun = True
                _pass_on(call.job, *item)
        except (EOFError, OSError):
            what = "its process died" if self._has_begun else "its process died while it started, see its stderr"
            self.gone(time.monotonic() + EXIT_S)
            raise ProcessDied(self._process.wait(), what) from None
        return item

    def end(self) -> None:
        """Let it go: it does what is to be done at its end, if a job runs within `GRACE_S`."""
        with contextlib.suppress(OSError), socket.fromfd(self._connection.fileno(), socket.AF_UNIX, 0) as ours:
            ours.shutdown(socket.SHUT_WR)

    def gone(self, deadline: float) -> None:
        """Wait until it has ended, until `deadline`; then kill it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, deadline - time.monotonic()))
        self.kill()

    def has_died(self) -> bool:
        """Whether it has ended; what it leaves behind is ended then."""
        if self._process.poll() is None:
            return False
        self.kill()
        return True

    def kill(self) -> None:
        """End it at once, and all it has started; whoever waits for `call` hears that it died."""
        self._process.kill()
        if not self._is_swept:  # once: the number of its group may be another's some time after
            self._is_swept = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _heard(self) -> Any:
        # With a child of its own the socket stays open when the process has died.
        while not self._connection.poll(LOOK_S):
            if self._process.poll() is not None and not self._connection.poll():
                raise EOFError
        return self._connection.recv()


def _pass_on(job: Job, held: tuple[str, str] | None, item: Any) -> None:
    """A note or a log record of the process, with the job it is of."""
    if item is None or held not in (job.held, None):
        return  # it has started; or a thread that the job before left behind goes on talking
    if isinstance(item, Note):
        if (notebook := notebook_of()) is not None:
            notebook.write(item)
    else:
        record = logging.makeLogRecord(item)
        logging.getLogger(record.name).handle(record)


def _death(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {exit_code}"
    with contextlib.suppress(ValueError):
        name = signal.Signals(-exit_code).name
        return f"{name}, as for want of memory" if name == "SIGKILL" else name
    return f"signal {-exit_code}"
