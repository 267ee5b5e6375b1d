"""Processes for functions that keep a processor busy, hang or crash (`@jq.job(process=True)`).

On multiprocessing's own `spawn`, one process for one job at a time. `ProcessPoolExecutor` and loky break as a
whole when one process dies, and stop none that hangs; pebble stops it, but nothing comes back from a process
before its function returns: no progress, no log line.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, NamedTuple

from jqmaster.engine.replies import Job, Note
from jqmaster.worker import process
from jqmaster.worker.notes import notebook_of

_SPAWN = multiprocessing.get_context("spawn")
END_S = 2.0
GRACE_S = 1.0  # for a function to learn that its job is given up, and to end by itself


class ProcessDied(RuntimeError):
    """The process of a job ended before its function did. `exit_code`: negative for a signal's number."""

    def __init__(self, exit_code: int | None) -> None:
        self.exit_code = exit_code
        super().__init__(f"its process died: {_death(exit_code)}")


class Renewal(NamedTuple):
    """When a process makes room for a fresh one, looked at after each of its jobs. None: not for this."""

    jobs: int | None = None
    memory: int | None = None  # bytes that are resident


NEVER = Renewal()


class ProcessPool:
    """A process for each job that runs, at most `most`; made when they are needed, and used again.

    They are started anew (`spawn`), so they share nothing with the worker: the function is found by its
    module and name. Cancelling `run` ends the job's process, and no other: after `GRACE_S` it is killed.
    """

    def __init__(self, most: int, renewal: Renewal = NEVER) -> None:
        self._renewal = renewal
        self._keeps = min(most, os.cpu_count() or 1)  # idle ones
        self._threads = ThreadPoolExecutor(2 * most, "process")  # a job may start while the one before it ends
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()

    async def run(
        self, function: Callable[..., Any], job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `function` there. What it raises is raised here. Raises ProcessDied."""
        self._idle = [one for one in self._idle if one.is_alive]
        one = self._idle.pop() if self._idle else _Process()
        self._busy.add(one)
        call = process.Call((function.__module__, function.__qualname__), job, args, dict(kwargs))
        # What it says while it runs is of this job: its log lines, its notebook.
        context, loop = copy_context(), asyncio.get_running_loop()

        def told(said: Any) -> None:
            context.run(_told, said)

        try:
            reply = await loop.run_in_executor(self._threads, one.call, call, told)
        except asyncio.CancelledError:
            one.give_up()
            loop.call_later(GRACE_S, self._kill, one)
            raise
        except BaseException:
            self._kill(one)  # it is dead, or as good as that
            raise
        self._busy.discard(one)
        if self._is_worn(one, reply) or len(self._idle) >= self._keeps:
            one.end()
        else:
            self._idle.append(one)
        if reply.error is not None:
            raise reply.error
        return reply.result

    def stop(self) -> None:
        """End the processes, whatever they do; those that are idle have a moment for their shutdown hooks."""
        for one in self._busy:
            one.kill()
        for one in self._idle:
            one.end()
        deadline = time.monotonic() + END_S
        for one in self._idle:
            one.gone(deadline)
        self._idle.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _kill(self, one: _Process) -> None:
        self._busy.discard(one)
        one.kill()

    def _is_worn(self, one: _Process, reply: process.Reply) -> bool:
        jobs, memory = self._renewal
        return (jobs is not None and one.calls >= jobs) or (memory is not None and reply.memory > memory)


class _Process:
    """One process. `call` blocks; the rest may be called while it does."""

    def __init__(self) -> None:
        self.calls = 0
        self._is_killed = False
        self._over = _SPAWN.Event()
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Any = None

    def call(self, call: process.Call, told: Callable[[Any], None]) -> process.Reply:
        """Run one job; `told` gets the notes and log records until it has ended. Raises ProcessDied."""
        self.calls += 1
        try:
            if self._process is None:
                self._start()
            self._pipe.send(call)
            while not isinstance(said := self._heard(), process.Reply):
                job, what = said
                if job == call.job.held:  # a thread that the job before left behind may go on talking
                    told(what)
            if self._over.is_set():
                self.kill()
            return said
        except (EOFError, OSError):
            if self._process is None:  # it could not even be started
                raise ProcessDied(None) from None
            self._process.join(5)
            raise ProcessDied(self._process.exitcode) from None

    def _heard(self) -> Any:
        # Not `recv` alone: with a child of its own the pipe stays open when the process has died.
        assert self._process is not None
        while not self._pipe.poll(1):
            if self._process.exitcode is not None and not self._pipe.poll(0):
                raise EOFError
        return self._pipe.recv()

    @property
    def is_alive(self) -> bool:
        """Whether it can take a job, as far as is known."""
        return self._process is None or self._process.exitcode is None

    def give_up(self) -> None:
        """Let its function know that it should end. It takes no other job."""
        self._over.set()

    def kill(self) -> None:
        """End it at once; whoever waits for `call` hears that it died."""
        self._is_killed = True
        if self._process is not None and self._process.pid is not None:  # else `_start` looks
            self._process.kill()

    def end(self) -> None:
        """Let it go; it does what is to be done at its end. For one that is idle."""
        with contextlib.suppress(OSError):
            self._pipe.close()

    def gone(self, deadline: float) -> None:
        """Wait until it has ended, and kill it at `deadline`."""
        assert self._process is not None
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join(1)

    def _start(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=process.serve, args=(theirs, process.levels(), self._over), name="jq-job")
        self._process.start()
        theirs.close()
        if self._is_killed or self._over.is_set():  # while it was being started
            self._process.kill()


def _told(said: Any) -> None:
    if isinstance(said, Note):
        notebook = notebook_of()
        if notebook is not None:
            notebook.write(said)
    else:
        process.relog(said)


def _death(exit_code: int | None) -> str:
    if exit_code is None:
        return "it does not say how"
    if exit_code >= 0:
        return f"exit code {exit_code}"
    with contextlib.suppress(ValueError):
        name = signal.Signals(-exit_code).name
        return f"{name}, as for want of memory" if name == "SIGKILL" else name
    return f"signal {-exit_code}"
