"""What runs in a process of a `ProcessPool`: attempts, one after the other, until the worker lets go or is gone."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import logging
import logging.handlers
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from contextvars import copy_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, NamedTuple

import msgpack

from jqmaster.engine.replies import Job, Note
from jqmaster.worker import ending as endings
from jqmaster.worker.ending import Ending, Outcome
from jqmaster.worker.failure import text_of
from jqmaster.worker.notes import Notebook, current_job
from jqmaster.worker.threads import Threads, end_if_forked

LOG_CHARACTERS = 32_000
LOOK_S = 1.0
GRACE_S = 1.0  # for a function to learn that its job is given up, and to end by itself


class ProcessCall(NamedTuple):
    """An attempt: of which task (`module`: its name, or the file of the program itself), and the server that its object
    asks."""

    module: str
    job: Job
    target: Any


class ProcessReply(NamedTuple):
    """How an attempt ended. `has_begun`: the surroundings of the program could be entered."""

    ending: Ending
    has_begun: bool = True


def main_module() -> str:
    """What a process imports for jobs of the program itself, its `__main__`."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    return str(main.__file__ if spec is None else spec.name)


def serve(fd: int, worker: int, log_level: int) -> None:
    """Answer each call on a socket of the process `worker` with notes and log records, each with the job it is of, and
    a reply."""
    say = _WorkerPipe(fd, worker)
    for number in (signal.SIGINT, signal.SIGTERM):
        # They reach all processes of a terminal and of a service manager; the worker ends these after their jobs. A
        # handler, unlike ignoring, is not passed on to programs that a job starts.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    os.register_at_fork(after_in_child=say.leave)
    logging.getLogger().setLevel(log_level)
    logging.getLogger().handlers = [_LogToWorker(say)]
    threading.Thread(target=say.listen, daemon=True).start()
    say((None, None))  # it has started
    with asyncio.Runner() as runner:
        surroundings, entered, threads = AsyncExitStack(), list[Any](), Threads(1)  # of the objects whose jobs run here
        while (call := say.calls.get()) is not None:
            say(runner.run(_answer(call, say, surroundings, entered, threads), context=copy_context()))
        runner.run(surroundings.aclose())


class _WorkerPipe:
    """To the worker. Sends from any thread."""

    def __init__(self, fd: int, worker: int) -> None:
        self.calls: SimpleQueue[ProcessCall | None] = SimpleQueue()
        self.notebook: Notebook | None = None
        """Of the job that runs."""
        self._connection = Connection(fd)
        self._worker = worker
        self._lock = threading.Lock()
        self._is_child = False

    def __call__(self, item: Any) -> None:
        if not self._is_child:
            with self._lock:
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
        if self.notebook is not None:
            self.notebook.end("it is given up")
            time.sleep(GRACE_S)
            os.killpg(0, signal.SIGKILL)

    def leave(self) -> None:
        """In what a job forks: its signals are its own, and it has no say."""
        self._is_child = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        logging.getLogger().handlers = [logging.StreamHandler()]


class _LogToWorker(logging.handlers.QueueHandler):
    def __init__(self, say: _WorkerPipe) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self._say = say

    def enqueue(self, record: logging.LogRecord) -> None:
        job = current_job.get(None)
        fields = {name: _plain(value) for name, value in record.__dict__.items()}
        self._say((None if job is None else job.held, fields))


def _plain(value: Any) -> Any:
    """A value of a log record that can be read in any process."""
    try:
        msgpack.packb(value, strict_types=True)
    except Exception:
        return text_of(value, LOG_CHARACTERS)
    return value


class _PipeNotebook(Notebook):
    """Passes notes on; the worker's own notebook keeps them."""

    def __init__(self, say: _WorkerPipe, job: Job) -> None:
        super().__init__(lambda: None)
        self._say = say
        self._held = job.held

    def write(self, note: Note) -> None:
        self._say((self._held, note))


async def _answer(
    call: ProcessCall, say: _WorkerPipe, surroundings: AsyncExitStack, entered: list[Any], threads: Threads
) -> ProcessReply:
    job, pid, has_begun, retries = call.job, os.getpid(), False, None
    notebook = say.notebook = _PipeNotebook(say, job)
    notebook.open(job)
    try:
        try:
            task = _task(call.module, job.name)
            retries = task.retries
            task.jq.connect(call.target)
            if task.jq not in entered:
                entered.append(task.jq)
                await surroundings.enter_async_context(task.jq.surroundings())
        except BaseException as error:
            raise RuntimeError(f"its process could not start: {text_of(error)}") from error
        has_begun = True
        ending: Ending = endings.succeeded(job, await task.attempt(job, threads.run), notebook.dumps)
    except BaseException as error:
        end_if_forked(pid, error)
        ending = endings.raised(job, error, retries)
    finally:
        say.notebook = None
    return ProcessReply(ending._replace(raised=None) if isinstance(ending, Outcome) else ending, has_begun)


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
