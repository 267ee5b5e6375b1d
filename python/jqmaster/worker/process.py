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
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from contextvars import copy_context
from dataclasses import replace
from typing import Any, NamedTuple

import msgpack

from jqmaster.engine.replies import Job, Note
from jqmaster.worker.ending import FollowUp, JobReleased, ResumeAfter, new_job, returned
from jqmaster.worker.failure import Failure, JobFailed, failure_of, remember, summary, text_of
from jqmaster.worker.notes import JobStopped, Notebook, current_job
from jqmaster.worker.threads import end_if_forked

LOG_CHARACTERS = 32_000
NOT_FOR_IT = (signal.SIGINT, signal.SIGTERM)
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024

OVER = b""
"""What the worker sends while a job runs: that it is given up. Between jobs: that this process is to end."""


class ProcessCall(NamedTuple):
    """A function, by module and qualified name, what it is called with, and the server of the object it is of."""

    where: tuple[str, str]
    job: Job
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    target: Any


class ProcessReply(NamedTuple):
    """How a call ended. What may not be read outside of its process, result and error, is pickled by itself.

    `memory`: the most bytes that were ever resident. `has_begun`: its surroundings could be entered.
    """

    result: bytes | None = None
    error: bytes | None = None
    failure: Failure | None = None
    memory: int = 0
    has_begun: bool = True


class RaisedInProcess(RuntimeError):
    """Stands for an exception that cannot leave the process it was raised in; its text begins with the name of that."""


class ProcessTraceback(Exception):
    """The cause of an exception from a process: where it was raised there."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


# -- in the worker ----------------------------------------------------------------------------------


def levels() -> dict[str, int]:
    """The levels of this process's loggers, for `serve`."""
    loggers = [logging.getLogger(), *list(logging.Logger.manager.loggerDict.values())]
    return {logger.name: logger.level for logger in loggers if isinstance(logger, logging.Logger) and logger.level}


def opened(reply: ProcessReply) -> tuple[Any, BaseException | None]:
    """What came of a call: a result, or what was raised."""
    if reply.result is not None:
        try:
            return pickle.loads(reply.result), None
        except BaseException as problem:
            return None, JobFailed(f"the result cannot be read outside of its process: {summary(problem)}", retry=False)
    failure = reply.failure
    try:
        error = pickle.loads(reply.error or b"")
        _remember(error, failure)
        return None, error
    except BaseException:  # of a class that is not known here, or has odd attributes
        error = RaisedInProcess(failure.message if failure else "it does not say what it raised")
        _remember(error, failure)
        return None, error


def _remember(error: BaseException, failure: Failure | None) -> None:
    if failure is not None:
        remember(error, failure)
        BaseException.__setattr__(error, "__cause__", ProcessTraceback(failure.trace))  # also of a frozen dataclass


# -- in the process ---------------------------------------------------------------------------------


def serve(pipe: Any, log_levels: Mapping[str, int]) -> None:
    """Answer each call on `pipe` with notes and log records, each with the job it is of, and a reply."""
    with suppress(PermissionError):  # it leads a group already
        os.setsid()  # whatever jobs start here is killed together with this process
    _ignore_signals()
    threading.Thread(target=_end_with_worker, daemon=True).start()
    say = _Saying(pipe)
    os.register_at_fork(after_in_child=say.leave)
    for name, level in log_levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().handlers = [_LogToWorker(say)]
    say(None)  # it has started
    with asyncio.Runner() as runner:
        surroundings, entered = AsyncExitStack(), list[Any]()  # of the objects whose jobs run here
        with suppress(EOFError):
            while packed := pipe.recv_bytes():
                say(_answer(packed, say, runner, surroundings, entered)._replace(memory=_memory()))
                _ignore_signals()  # a job may have set handlers of its own
        runner.run(surroundings.aclose())


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def _ignore_signals() -> None:
    # Ctrl-C at the terminal, and a service manager's SIGTERM, reach all processes; the worker ends these after
    # their jobs. A handler, unlike ignoring, is not passed on to programs that a job starts.
    for number in NOT_FOR_IT:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NOT_FOR_IT)


def _end_with_worker() -> None:
    # Also in the middle of a job: a worker that was killed cannot tell us, and its jobs will run elsewhere. What a
    # plain job of the worker has forked keeps the pipe to it open: so look at the parent, too.
    parent = multiprocessing.parent_process()
    while parent is not None and os.getppid() == parent.pid:
        parent.join(1)
    os.killpg(0, signal.SIGKILL)


class _Saying:
    """Sends to the worker, from any thread."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._is_child = False

    @property
    def is_over(self) -> bool:
        """Whether the job is given up: while one runs the worker sends nothing else."""
        with suppress(OSError):
            return bool(self._pipe.poll(0))
        return True

    def __call__(self, item: Any) -> None:
        packed = pickle.dumps(item)
        if not self._is_child:
            with self._lock:
                self._pipe.send_bytes(packed)

    def leave(self) -> None:
        """In what a job forks: its signals are its own, and it has no say."""
        self._is_child = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        logging.getLogger().handlers = [logging.StreamHandler()]


class _LogToWorker(logging.handlers.QueueHandler):
    def __init__(self, say: _Saying) -> None:
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

    def __init__(self, say: _Saying, job: Job) -> None:
        super().__init__(lambda: None)
        self._say = say
        self._held = job.held

    @property
    def over(self) -> str | None:
        return "it is given up" if self._say.is_over else None

    def write(self, note: Note) -> None:
        self._say((self._held, note))


def _answer(
    packed: bytes, say: _Saying, runner: asyncio.Runner, surroundings: AsyncExitStack, entered: list[Any]
) -> ProcessReply:
    try:
        call: ProcessCall = pickle.loads(packed)
        function = _found(call.where, call.job.name)
        if (jq := getattr(function, "jq", None)) is not None:
            jq.connect(call.target)
            if jq not in entered:
                entered.append(jq)
                runner.run(surroundings.enter_async_context(jq.surroundings()))
    except BaseException as error:
        failure = failure_of(error)
        failure = failure._replace(message=f"its process could not start: {failure.message}")
        return _failed(error, failure)._replace(has_begun=False)
    return _run(function, call, say, runner)


def _found(where: tuple[str, str], name: str) -> Any:
    """The task; or the function, where the task has another name and cannot be seen."""
    module = importlib.import_module(where[0])
    attribute: Any = module
    for part in where[1].split("."):
        attribute = getattr(attribute, part)
    if not hasattr(attribute, "jq"):
        for value in list(vars(module).values()):
            tasks = getattr(value, "tasks", None)
            if isinstance(tasks, dict) and getattr(tasks.get(name), "function", None) is attribute:
                return tasks[name]
    return attribute


def _run(target: Any, call: ProcessCall, say: _Saying, runner: asyncio.Runner) -> ProcessReply:
    function = getattr(target, "function", None) or target
    notebook, pid = _PipeNotebook(say, call.job), os.getpid()
    if (jq := getattr(target, "jq", None)) is not None:
        notebook.dumps = jq.serializer.dumps
    notebook.open(call.job)
    try:
        result = runner.run(returned(function(*call.args, **call.kwargs)), context=copy_context())
        end_if_forked(pid)
        return ProcessReply(_pickled(result))
    except BaseException as error:
        end_if_forked(pid, error)
        if issubclass(type(error), JobStopped) and say.is_over:  # isinstance would ask the error for its class
            return ProcessReply()  # which nobody reads
        if (rules := getattr(target, "rules", None)) is not None:
            return _failed(error, failure_of(error, rules.retries))
        failure = failure_of(error)
        return _failed(error, failure if issubclass(type(error), JobFailed) else failure._replace(should_retry=None))


def _pickled(result: Any) -> bytes:
    if isinstance(result, FollowUp):
        jobs = list(result.jobs)
        result = replace(result, jobs=[new_job(job, jobs) for job in jobs])
    try:
        return pickle.dumps(result)
    except BaseException as error:
        raise JobFailed(f"the result cannot leave its process: {text_of(error)}", retry=False) from error


def _failed(error: BaseException, failure: Failure) -> ProcessReply:
    try:
        if issubclass(type(error), JobReleased | ResumeAfter):
            return ProcessReply(error=pickle.dumps(_base(error)))
    except BaseException as problem:
        error, failure = problem, failure_of(problem)
    with suppress(BaseException):
        packed = pickle.dumps(error)
        if type(pickle.loads(packed)) is type(error):
            return ProcessReply(error=packed, failure=failure)
    return ProcessReply(failure=failure)


def _base(error: BaseException) -> BaseException:
    """The same of the class that we know: one of the program may not be read elsewhere."""
    if isinstance(error, JobReleased):
        return JobReleased(text_of(error), delay=error.delay, hold=error.hold)
    assert isinstance(error, ResumeAfter)
    new, depends = error.parts()
    made = [new_job(job, new) for job in new]
    base = ResumeAfter([made[job] if isinstance(job, int) else job for job in depends])
    base.if_failed, base.checkpoint = error.if_failed, error.checkpoint
    return base
