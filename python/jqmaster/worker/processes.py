"""Processes for functions that keep a processor busy, hang or crash (`@jq.job(process=True)`): the worker's side, and
what runs in one of them.

Own ones: `ProcessPoolExecutor` and loky break as a whole when one process dies, and stop none that hangs; pebble stops
it, but nothing comes back from a process before its function returns: no progress.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import logging
import multiprocessing
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from contextvars import copy_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from jqmaster.engine.replies import Job, Note
from jqmaster.server.logs import JsonLines
from jqmaster.worker import ending as endings
from jqmaster.worker import joblog
from jqmaster.worker.ending import Outcome
from jqmaster.worker.notes import Notebook, current_notebook
from jqmaster.worker.threads import Threads, end_if_forked

LOOK_S = 0.5
GRACE_S = 1.0  # for a function to learn that its job is given up, and to end by itself
END_S = 2.0  # for that, and for lifespans
EXIT_S = 5.0  # from the end of its connection to its own
_CODE = "import sys; sys.path[:] = {path!r}; from jqmaster.worker.processes import serve; serve({arguments})"

ProcessCall = tuple[str, Job, Any]
"""An attempt: where its task is (a module's name, or the file of the program itself), and whom its object asks."""


class ProcessDied(RuntimeError):
    """The process of a job ended before its function did."""


class ProcessPool:
    """A process for each job that runs; made when they are needed, and used again. After so many `jobs` one makes room
    for a fresh one.

    They are started anew, so they share nothing with the worker: the job is found by its module and name. Cancelling
    `run` ends the job's process, and no other: after `END_S` it is killed. With a process goes what its jobs have
    started and left in its process group.
    """

    def __init__(self, threads: Threads, most: int, jobs: int | None = None) -> None:
        """`threads` wait for them."""
        self._threads = threads
        self._jobs = jobs
        self._keeps = min(most, os.cpu_count() or 1)  # idle ones
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()

    async def run(self, module: str, job: Job, target: Any) -> Outcome:
        """Run an attempt there, of a job of `module`; `target`: what the object that it is a job of is for. Raises
        ProcessDied, OSError."""
        for idle in [idle for idle in self._idle if idle.has_ended]:
            self._kill(idle)
        process = self._idle.pop() if self._idle else _Process()
        self._all.add(process)
        module = _main_module() if module == "__main__" else module
        try:
            outcome: Outcome = await self._threads.run(process.call, (module, job, target))
        except asyncio.CancelledError:
            self._let_go(process)
            raise
        except BaseException:
            self._kill(process)  # it is dead, or as good as that
            raise
        if (self._jobs is not None and process.calls >= self._jobs) or len(self._idle) >= self._keeps:
            self._let_go(process)
        else:
            self._idle.append(process)
        return outcome

    def stop(self) -> None:
        """End the processes, whatever they do; those that are idle have a moment for their lifespans."""
        for process in self._idle:
            process.end()
        deadline = time.monotonic() + END_S
        for process in self._idle:
            process.wait(max(0.0, deadline - time.monotonic()))
        for process in list(self._all):
            self._kill(process)

    def _let_go(self, process: _Process) -> None:
        process.end()
        asyncio.get_running_loop().call_later(END_S, self._kill, process)

    def _kill(self, process: _Process) -> None:
        """Once: the number of its group may be another's some time after."""
        if process in self._all:
            self._all.discard(process)
            process.kill()
        if process in self._idle:
            self._idle.remove(process)


class _Process:
    """One process, and the group of what it starts."""

    def __init__(self) -> None:
        self.calls = 0
        self._connection, theirs = multiprocessing.Pipe()
        root = logging.getLogger()
        is_json = any(isinstance(handler.formatter, JsonLines) for handler in root.handlers)
        arguments = f"{theirs.fileno()}, {os.getpid()}, {'json' if is_json else None!r}, {root.level}"
        # A service manager's signals reach it as well, and may come before its handlers are there.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE.format(path=sys.path, arguments=arguments)],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            theirs.close()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def call(self, call: ProcessCall) -> Outcome:
        """Run one job; it blocks. Raises ProcessDied."""
        self.calls += 1
        notebook = current_notebook.get(None)
        try:
            self._connection.send(call)
            while not isinstance(item := self._heard(), Outcome):
                if notebook is not None:
                    notebook.write(item)
        except (EOFError, OSError):
            self.wait(EXIT_S)
            self._process.kill()
            code = self._process.wait()
            how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
            raise ProcessDied(f"its process died: {how}") from None
        return item

    def end(self) -> None:
        """Let it go: it does what is to be done at its end, if a job runs within a second."""
        with contextlib.suppress(OSError), socket.fromfd(self._connection.fileno(), socket.AF_UNIX, 0) as ours:
            ours.shutdown(socket.SHUT_WR)

    def wait(self, timeout_s: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)

    def kill(self) -> None:
        """End it at once, and all it has started; whoever waits for `call` hears that it died."""
        self._process.kill()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _heard(self) -> Any:
        # With a child of its own the socket stays open when the process has died.
        while not self._connection.poll(LOOK_S):
            if self.has_ended and not self._connection.poll():
                raise EOFError
        return self._connection.recv()


def _main_module() -> str:
    """What a process imports for jobs of the program itself, its `__main__`."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return str(main.__file__ if spec is None else spec.name)


# -- in a process ---------------------------------------------------------------------------------


def serve(fd: int, worker: int, log_format: str | None, log_level: int) -> None:
    """Answer each call on a socket of the process `worker` with notes, and how the attempt ended. It logs to stderr, if
    the program does not say otherwise when it is imported."""
    joblog.configure(log_format)
    logging.getLogger().setLevel(log_level)
    server = _Server(fd, worker)
    for number in (signal.SIGINT, signal.SIGTERM):
        # They reach all processes of a terminal and of a service manager; the worker ends these after their jobs. A
        # handler, unlike ignoring, is not passed on to programs that a job starts.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    os.register_at_fork(after_in_child=server.leave)
    threading.Thread(target=server.listen, daemon=True).start()
    with asyncio.Runner() as runner:
        while (call := server.calls.get()) is not None:
            server.say(runner.run(server.answer(*call), context=copy_context()))
        runner.run(server.surroundings.aclose())


class _Server:
    """Of the jobs of one process."""

    def __init__(self, fd: int, worker: int) -> None:
        self.calls: SimpleQueue[ProcessCall | None] = SimpleQueue()
        self.surroundings = AsyncExitStack()
        self._entered: list[Any] = []  # objects in whose surroundings it is
        self._threads = Threads(1)
        self._notebook: Notebook | None = None  # of the job that runs
        self._connection = Connection(fd)
        self._worker = worker
        self._lock = threading.Lock()
        self._is_child = False

    def say(self, item: Note | Outcome) -> None:
        """To the worker; from any thread."""
        if not self._is_child:
            with self._lock, contextlib.suppress(BrokenPipeError):  # killed, it hears no more: `listen` ends all
                self._connection.send(item)

    def listen(self) -> None:
        """Hear the worker. When it lets go, or is gone, what runs here ends within `GRACE_S`, and what it started."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                # What a job of the worker has forked may keep the socket open without it.
                while not self._connection.poll(LOOK_S):
                    if os.getppid() != self._worker:
                        raise EOFError
                self.calls.put(self._connection.recv())
        self.calls.put(None)
        if self._notebook is not None:
            self._notebook.over = "it is given up"
            time.sleep(GRACE_S)
            os.killpg(0, signal.SIGKILL)

    def leave(self) -> None:
        """In what a job forks: its signals are its own, and it has no say."""
        self._is_child = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    async def answer(self, module: str, job: Job, target: Any) -> Outcome:
        """Run an attempt."""
        pid, retries = os.getpid(), None

        def tell() -> None:  # the worker's own notebook keeps it
            # A thread that the job before left behind may go on talking.
            if self._notebook is notebook and (note := notebook.take()) is not None:
                self.say(note)

        notebook = self._notebook = Notebook(tell)
        with notebook.opened(job):
            try:
                task = _task(module, job.name)
                task.jq.connect(target)
                if task.jq not in self._entered:
                    await self.surroundings.enter_async_context(task.jq.surroundings())
                    self._entered.append(task.jq)
                retries = task.retries
                return endings.succeeded(job, await task.attempt(job, self._threads.run), notebook.dumps)
            except BaseException as error:
                end_if_forked(pid, error)
                return endings.raised(job, error, retries)._replace(raised=None)
            finally:
                self._notebook = None


@functools.cache
def _names(module: str) -> Mapping[str, Any]:
    if module.endswith(".py"):
        return runpy.run_path(module, run_name="__mp_main__")
    return vars(importlib.import_module(module))


def _task(module: str, name: str) -> Any:
    """Raises what importing the program raises, LookupError."""
    for value in list(_names(module).values()):
        tasks = getattr(getattr(value, "jq", value), "tasks", None)
        if isinstance(tasks, dict) and name in tasks:
            return tasks[name]
    raise LookupError(f"{module} has no job {name}")
