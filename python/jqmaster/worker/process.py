"""What runs in a process of a `ProcessPool`: one job after the other, until the worker lets go or is gone."""

from __future__ import annotations

import asyncio
import importlib
import logging
import logging.handlers
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from jqmaster.engine.replies import Job, Note
from jqmaster.worker.notes import JobStopped, Notebook, current_job


class Call(NamedTuple):
    """A function, by module and qualified name, and what it is called with."""

    where: tuple[str, str]
    job: Job
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Reply(NamedTuple):
    """How a call ended; `memory`: bytes that are resident now."""

    result: Any
    error: Exception | None
    memory: int


def serve(pipe: Any, log_levels: Mapping[str, int], over: Any) -> None:
    """Answer each `Call` on `pipe` with notes and log records, each with the job it is of, and a `Reply`. The event
    `over` is set when the job is given up."""
    # Ctrl-C at the terminal, and a service manager's SIGTERM, reach all processes; the worker ends these after
    # their jobs. A handler, unlike ignoring, is not passed on to programs that a job starts.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_end_with_worker, daemon=True).start()
    say = _Saying(pipe, over)
    for name, level in log_levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().handlers = [_LogToWorker(say)]
    with asyncio.Runner() as runner:
        surroundings = _Surroundings()
        try:
            while True:
                call = pipe.recv()
                runner.run(surroundings.enter(call.where))
                say.bytes(_run(call, say))
        except EOFError:
            runner.run(surroundings.leave())


def levels() -> dict[str, int]:
    """The levels of this process's loggers, for `serve`."""
    found = {"": logging.getLogger().level}
    for name, logger in list(logging.Logger.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and logger.level:
            found[name] = logger.level
    return found


def relog(record: logging.LogRecord) -> None:
    """Log here what was logged there."""
    logging.getLogger(record.name).handle(record)


class _Saying:
    """Sends to the worker, from any thread."""

    def __init__(self, pipe: Any, over: Any) -> None:
        self.over = over
        self._pipe = pipe
        self._lock = threading.Lock()

    def __call__(self, what: Any) -> None:
        self.bytes(pickle.dumps(what))

    def bytes(self, pickled: bytes) -> None:
        with self._lock:
            self._pipe.send_bytes(pickled)


class _LogToWorker(logging.handlers.QueueHandler):
    def __init__(self, say: _Saying) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self._say = say

    def enqueue(self, record: logging.LogRecord) -> None:
        job = current_job.get(None)
        if job is not None:
            self._say((job.held, record))


class _Notebook(Notebook):
    """Passes notes on; the worker's own notebook keeps them."""

    def __init__(self, say: _Saying, job: Job) -> None:
        super().__init__(lambda: None)
        self._say = say
        self._held = job.held

    @property
    def over(self) -> str | None:
        return "it is given up" if self._say.over.is_set() else None

    def write(self, note: Note) -> None:
        self._say((self._held, note))


class _Surroundings:
    """Lifespans and start-up hooks of the objects whose jobs run here, each entered with its first job."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._entered: set[int] = set()

    async def enter(self, where: tuple[str, str]) -> None:
        jq = getattr(_found(where), "jq", None)
        if jq is not None and id(jq) not in self._entered:
            self._entered.add(id(jq))
            await self._stack.enter_async_context(jq.surroundings())

    async def leave(self) -> None:
        await self._stack.aclose()


def _run(call: Call, say: _Saying) -> bytes:
    """A `Reply`, packed: what cannot travel would leave the worker without any answer."""
    found = _found(call.where)
    function = getattr(found, "function", None) or found
    notebook = _Notebook(say, call.job)
    if (jq := getattr(found, "jq", None)) is not None:
        notebook.dumps = jq.serializer.dumps
    notebook.open(call.job)
    try:
        result = function(*call.args, **call.kwargs)
    except JobStopped:
        return pickle.dumps(Reply(None, None, 0))  # which nobody reads
    except Exception as error:
        try:
            packed = pickle.dumps(Reply(None, error, _memory()))
            pickle.loads(packed)
        except Exception:
            text = "".join(traceback.format_exception(error))
            packed = pickle.dumps(Reply(None, RuntimeError(f"{type(error).__name__}: {error}\n{text}"), _memory()))
        return packed
    try:
        return pickle.dumps(Reply(result, None, _memory()))
    except Exception as error:
        return pickle.dumps(Reply(None, TypeError(f"the result cannot leave its process: {error}"), _memory()))


def _found(where: tuple[str, str]) -> Any:
    found: Any = importlib.import_module(where[0])
    for part in where[1].split("."):
        found = getattr(found, part)
    return found


def _end_with_worker() -> None:
    # Also in the middle of a job: a worker that was killed cannot tell us, and its jobs will run elsewhere.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _memory() -> int:
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the most there ever was
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
