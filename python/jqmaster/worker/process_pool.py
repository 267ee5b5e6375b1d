"""Processes for functions that keep a processor busy, hang or crash (`@jq.job(process=True)`).

On multiprocessing's own `spawn`, one process for one job at a time. `ProcessPoolExecutor` and loky break as a
whole when one process dies, and stop none that hangs; pebble stops it, but nothing comes back from a process
before its function returns: no progress, no log line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from multiprocessing import resource_tracker
from typing import Any

from jqmaster.engine.replies import Job, Note
from jqmaster.worker import process
from jqmaster.worker.failure import JobFailed, summary
from jqmaster.worker.notes import notebook_of

_SPAWN = multiprocessing.get_context("spawn")
END_S = 2.0
GRACE_S = 1.0  # for a function to learn that its job is given up, and to end by itself

OnItem = Callable[[tuple[str, str] | None, Any], None]
"""Gets notes and log records, with the job that they are of."""


class ProcessDied(RuntimeError):
    """The process of a job ended before its function did. `exit_code`: negative for a signal's number."""

    def __init__(self, exit_code: int | None, what: str = "its process died") -> None:
        self.exit_code = exit_code
        super().__init__(what if exit_code is None else f"{what}: {_death(exit_code)}")


class ProcessPool:
    """A process for each job that runs, at most `most`; made when they are needed, and used again. After so many
    `jobs`, or when it has held more `memory` (bytes), one makes room for a fresh one.

    They are started anew (`spawn`), so they share nothing with the worker: the function is found by its
    module and name. Cancelling `run` ends the job's process, and no other: after `GRACE_S` it is killed. With a
    process goes what its jobs have started and left in its process group.
    """

    def __init__(self, most: int, jobs: int | None = None, memory: int | None = None) -> None:
        self._jobs, self._memory = jobs, memory
        self._keeps = min(most, os.cpu_count() or 1)  # idle ones
        self._threads = ThreadPoolExecutor(2 * most, "process")  # a job may start while the one before it ends
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._leaving: set[_Process] = set()

    async def run(
        self, function: Callable[..., Any], job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any], target: Any
    ) -> Any:
        """Call `function` there. `target`: what the object that it is a job of is for. What it raises is raised here.
        Raises ProcessDied."""
        where = (function.__module__, function.__qualname__)
        try:
            call = pickle.dumps(process.ProcessCall(where, job, args, dict(kwargs), target))
        except Exception as error:
            raise JobFailed(f"the argument cannot be sent to a process: {summary(error)}", retry=False) from error
        self._idle = [worker_process for worker_process in self._idle if worker_process.is_alive]
        worker_process = self._idle.pop() if self._idle else _Process()
        self._busy.add(worker_process)
        # What it says while it runs is of this job: its log lines, its notebook.
        context, loop = copy_context(), asyncio.get_running_loop()

        def told(held: tuple[str, str] | None, item: Any) -> None:
            if held == job.held:
                context.run(_told, item)
            elif held is None:
                _told(item)
            # else a thread that the job before left behind goes on talking

        try:
            reply, result, raised = await loop.run_in_executor(self._threads, worker_process.call, call, told)
        except asyncio.CancelledError:
            with contextlib.suppress(RuntimeError):  # the pool has stopped
                self._threads.submit(worker_process.give_up)
            loop.call_later(GRACE_S, self._kill, worker_process)
            raise
        except BaseException:
            self._kill(worker_process)  # it is dead, or as good as that
            raise
        self._busy.discard(worker_process)
        if self._is_worn(worker_process, reply) or len(self._idle) >= self._keeps:
            worker_process.end()
            self._leaving.add(worker_process)
            loop.call_later(END_S, self._kill, worker_process)
        else:
            self._idle.append(worker_process)
        if raised is not None:
            raise raised
        return result

    def stop(self) -> None:
        """End the processes, whatever they do; those that are idle have a moment for their shutdown hooks."""
        for worker_process in self._busy:
            worker_process.kill()
        for worker_process in self._idle:
            worker_process.end()
        deadline = time.monotonic() + END_S
        for worker_process in (*self._idle, *self._leaving):
            worker_process.gone(deadline)
        self._idle.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _kill(self, worker_process: _Process) -> None:
        self._busy.discard(worker_process)
        self._leaving.discard(worker_process)
        worker_process.kill()

    def _is_worn(self, worker_process: _Process, reply: process.ProcessReply) -> bool:
        has_run_all = self._jobs is not None and worker_process.calls >= self._jobs
        return has_run_all or (self._memory is not None and reply.memory > self._memory) or not reply.has_begun


class _Process:
    """One process, and the group of what it starts. `call` blocks; the rest may be called while it does."""

    def __init__(self) -> None:
        self.calls = 0
        self._is_over = False  # killed, or its job is given up: it takes no other
        self._is_swept = False
        self._has_begun = False
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe, self._theirs = _SPAWN.Pipe()

    def call(self, call: bytes, on_item: OnItem) -> tuple[process.ProcessReply, Any, BaseException | None]:
        """Run one job; the reply with its result, or what was raised. Raises ProcessDied."""
        self.calls += 1
        if self._process is None:
            self._start()
        try:
            self._pipe.send_bytes(call)
            while not isinstance(item := pickle.loads(self._heard()), process.ProcessReply):
                if item is None:
                    self._has_begun = True
                else:
                    on_item(*item)
        except (EOFError, OSError):
            raise self._died() from None
        if self._is_over:
            self.kill()
        return item, *process.opened(item)

    def _heard(self) -> Any:
        # Not `recv` alone: with a child of its own the pipe stays open when the process has died.
        while not self._pipe.poll(1):
            if not self.is_alive and not self._pipe.poll(0):
                raise EOFError
        return self._pipe.recv_bytes()

    def _died(self) -> ProcessDied:
        assert self._process is not None
        self._process.join(5)
        code = self._process.exitcode
        self.kill()  # what it has started goes with it
        if self._has_begun:
            return ProcessDied(code)
        return ProcessDied(code, "its process died while it started, its standard error says why")

    @property
    def is_alive(self) -> bool:
        """Whether it can take a job, as far as is known."""
        if self._process is None or self._process.exitcode is None:
            return not self._is_over
        self._sweep()
        return False

    def give_up(self) -> None:
        """Let its function know that it should end. It takes no other job."""
        self._is_over = True
        with contextlib.suppress(OSError):
            self._pipe.send_bytes(process.OVER)  # before its call it ends the process, which is as well

    def kill(self) -> None:
        """End it at once, and all it has started; whoever waits for `call` hears that it died."""
        self._is_over = True
        if self._process is not None and self._process.pid is not None:  # else `_start` looks
            self._process.kill()
            self._sweep()

    def _sweep(self) -> None:
        """Kill its group. Once: the number may be another's some time after."""
        assert self._process is not None and self._process.pid is not None
        if not self._is_swept:
            self._is_swept = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Let it go; it does what is to be done at its end. For one that is idle."""
        with contextlib.suppress(OSError):
            self._pipe.send_bytes(process.OVER)
            self._pipe.close()

    def gone(self, deadline: float) -> None:
        """Wait until it has ended; at `deadline` kill it, and what it leaves behind in any case."""
        assert self._process is not None
        self._process.join(max(0.0, deadline - time.monotonic()))
        self.kill()
        self._process.join(1)

    def _start(self) -> None:
        self._process = _SPAWN.Process(target=process.serve, args=(self._theirs, process.levels()), name="jq-job")
        # The signals of a terminal and of a service manager reach it as well, and may come before its handlers are
        # there: it takes this thread's mask with it.
        resource_tracker.ensure_running()  # else `start` would do that, and unblock them
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, process.NOT_FOR_IT)
        try:
            self._process.start()
        except Exception as error:  # no memory, no more processes
            self._process = None
            raise ProcessDied(None, f"its process cannot be started: {summary(error)}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._theirs.close()
        if self._is_over:  # while it was being started
            self._process.kill()


def _told(item: Any) -> None:
    if isinstance(item, Note):
        notebook = notebook_of()
        if notebook is not None:
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
