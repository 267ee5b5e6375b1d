"""How an attempt ends: with an outcome to report, or by giving the job back.

What is told of a failure is bounded, and telling it does not raise: the text of an exception may raise, be of any size,
or hold what UTF-8 cannot (`os.fsdecode` makes half surrogates).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgpack

from jqmaster.engine.calling import given
from jqmaster.engine.options import NewJob, Reference, Seconds
from jqmaster.engine.replies import Job
from jqmaster.worker.log import jobs_log as log
from jqmaster.worker.notes import current_notebook

R_co = TypeVar("R_co", covariant=True)

NIL = b"\xc0"
UNPACKABLE = (TypeError, ValueError, OverflowError)
MOST_BYTES = 256 << 20  # of a result: Redis closes the connection on more than 512 MB, and so the worker
MESSAGE_CHARACTERS = 2000
TRACE_CHARACTERS = 16_000
TRACE_FRAMES = 20
ERROR_BYTES = 1 << 20
GROUP_BYTES = 255
LONGEST_DELAY_S = 1e10
MOST_JOBS = 1000  # that the engine enqueues in one step

_WORKER = str(Path(__file__).parent)
_CALLERS = (_WORKER, str(Path(_WORKER).with_name("client")), concurrent.futures.__path__[0], asyncio.__path__[0])


@dataclass(eq=False, repr=False)
class JobFailed(Exception):
    """Raise it in a function to choose what is reported. `error`: any value MessagePack can hold, up to 1 MiB.

    `retry_in`: the retry comes after so long (seconds or a `timedelta`), whatever the backoff; it is spent as any.
    A value that is not a time is ignored: the backoff decides then. `group`: what `failures` lists it under; by
    default the name of the exception's class, so that all that are raised without one are listed as `JobFailed`.
    """

    message: InitVar[str]
    _: KW_ONLY
    # A subclass that does not call `__init__` has these as well.
    retry: bool = True
    retry_in: Seconds | None = None
    error: Any = None
    group: str | None = None

    def __post_init__(self, message: str) -> None:
        super().__init__(message)


class JobReleased(Exception):
    """Raise it in a function to say "not now": the job waits again and loses no retry.

    `delay`: seconds before this job is ready again. `hold`: maps ids of constraints to seconds for which
    nothing else starts under them either, as far as this job's keys go, such as
    `{"per-customer-mail": 30}` when a customer's mail server asks for half a minute. `message`: why, for the
    job's history. Durations are seconds or a `timedelta`. If a hold names an unknown constraint, or its time is not
    one, no constraint is closed: this job alone waits, and its history says so.
    """

    def __init__(self, message: str = "", *, delay: Seconds = 0, hold: Mapping[str, Seconds] | None = None) -> None:
        super().__init__(message)
        self.delay = delay
        self.hold = hold


@dataclass(frozen=True, slots=True)
class Move(Generic[R_co]):
    """Return it from a function: the job does not end but goes on as another name, or in another queue.

    It keeps its id, tags and history, and `argument` is its argument from then on. At least one of `name` and
    `queue`; the queue is by default that of the name. `delay` in seconds. `-> Move[str]` says that the result is
    text in the end.
    """

    name: str | None = None
    argument: Any = None
    queue: str | None = None
    priority: int | None = None
    delay: float | None = None


class NewCall(Reference):
    """A call that is not enqueued yet."""

    __slots__ = ()

    def new_job(self, siblings: Mapping[Any, str | int]) -> NewJob:
        """The job, enqueued with `siblings`: what `depends` has instead of each. Raises ValueError when it depends on
        other calls."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FollowUp(Generic[R_co]):
    """Return it from a function: its result (or a `Move`), and jobs that are enqueued in the same step.
    `-> FollowUp[int]` says that the result is an integer.

    `jobs`: 1 to 1000 calls, made with `task.job(...)` or `JQ.new_job`, which may depend on each other.
    """

    result: R_co | Move[R_co]
    jobs: Sequence[NewCall]


class ResumeAfter(Exception):
    """Raise it in a function: the worker lets go of the job, which runs again when `jobs` have ended.

    `jobs`: 1 to 100, as for `FollowUp` (they are enqueued in the same step), or handles or ids of jobs that are
    there. The next attempt finds their ids in `current_job.get().depends`, their results by
    `jq.dependency_results()`, and begins with `checkpoint` as its argument, if that is given. `if_failed`: what
    becomes of it when one of them fails or is cancelled, as for `depends`: `wait` (default), `fail`, `run`. No
    retry is spent.
    """

    def __init__(
        self,
        jobs: Sequence[NewCall | Reference | str],
        *,
        if_failed: Literal["wait", "fail", "run"] | None = None,
        checkpoint: Any = ...,
    ) -> None:
        super().__init__(jobs)
        self.jobs = list(jobs)
        self.if_failed = if_failed
        notebook = current_notebook.get(None)
        dumps = msgpack.packb if notebook is None else notebook.dumps
        self.checkpoint = None if checkpoint is ... else dumps(checkpoint)


class Outcome(NamedTuple):
    """What became of one attempt: the spec for `finish`, or of type `released` for `release`, and the result or error,
    packed.

    `follow`: jobs to enqueue. `raised`: what the function raised, if it failed.
    """

    job: Job
    spec: dict[str, Any]
    blob: bytes = NIL
    follow: tuple[NewJob, ...] = ()
    raised: BaseException | None = None


def succeeded(job: Job, result: Any, dumps: Callable[[Any], bytes] = msgpack.packb) -> Outcome:
    """The outcome of an attempt whose function returned `result`. Raises JobFailed for what cannot be packed."""
    spec = _spec(job, "success")
    try:
        follow: tuple[NewJob, ...] = ()
        if isinstance(result, FollowUp):
            follow = _jobs(result.jobs)
            result = result.result
        if isinstance(result, Move):
            spec["move"] = given(name=result.name, queue=result.queue, priority=result.priority, delay=result.delay)
            result = result.argument
        blob = dumps(result)
    except UNPACKABLE as error:
        raise unpackable(job, error) from error
    if len(blob) > MOST_BYTES:
        raise JobFailed(f"the result has {len(blob)} bytes, and at most {MOST_BYTES} can be kept", retry=False)
    return Outcome(job, spec, blob, follow)


def unpackable(job: Job, error: BaseException) -> JobFailed:
    """What to say of a result, or of jobs that follow, which cannot be packed."""
    return JobFailed(f"the result of {job.name} cannot be packed: {text_of(error)}", retry=False)


def _spec(job: Job, type_: str) -> dict[str, Any]:
    return {"id": job.id, "token": job.token, "type": type_}


def _resumed(job: Job, error: ResumeAfter) -> Outcome:
    new: list[Any] = []  # of the jobs, what is to be enqueued
    depends: list[str | int] = []  # ids, and indexes among these
    for other in error.jobs:
        there = other if isinstance(other, str) else getattr(other, "id", None)
        depends.append(len(new) if there is None else there)
        new += [other] if there is None else []
    resume = given(depends=depends, checkpoint=error.checkpoint is not None, if_failed=error.if_failed)
    return Outcome(job, _spec(job, "success") | {"resume": resume}, error.checkpoint or NIL, _jobs(new))


def _jobs(calls: Sequence[NewCall]) -> tuple[NewJob, ...]:
    """The jobs of a `FollowUp` or `ResumeAfter`, ready to be sent."""
    if len(calls) > MOST_JOBS:
        raise ValueError(f"expected at most {MOST_JOBS} jobs that are enqueued with it, got {len(calls)}")
    if problem := next((call for call in calls if not isinstance(call, NewCall)), None):
        kind = type(problem).__name__
        raise TypeError(f"expected calls that are not enqueued yet, as task.job(...) makes, got {kind}")
    siblings = {call: index for index, call in enumerate(calls)}
    return tuple(call.new_job(siblings) for call in calls)


def failed(job: Job, message: str) -> Outcome:
    """The outcome of an attempt that failed for what the worker knows, which another would meet as well."""
    return Outcome(job, _spec(job, "failure") | {"should_retry": False, "message": text_of(message)})


def released(job: Job, message: str = "", delay: Seconds = 0, hold: Mapping[str, Seconds] | None = None) -> Outcome:
    """The end of an attempt that has none: the job is given back, see `JobReleased`."""
    return Outcome(job, _spec(job, "released") | {"message": message, "delay": delay, "hold": hold})


def raised(job: Job, error: BaseException, retries: Callable[[BaseException], bool] | None = None) -> Outcome:
    """How an attempt ends whose function raised `error`, whatever that is. `retries`: as of `failure_of`."""
    kind = type(error)  # isinstance would ask the error for its class
    try:
        if issubclass(kind, ResumeAfter):
            assert isinstance(error, ResumeAfter)
            return _resumed(job, error)
        if issubclass(kind, JobReleased):
            assert isinstance(error, JobReleased)
            log.info("job %s (%s) is given back", job.id, job.name)
            return released(job, text_of(error), error.delay, error.hold)
    except UNPACKABLE as problem:
        error = unpackable(job, problem)
    except BaseException as problem:  # of odd attributes
        error = problem
    failure = failure_of(error, retries)
    with suppress(BaseException):  # of a handler of the program's, which is no reason to lose what became of the job
        _log(job, error, failure)
    return Outcome(job, _spec(job, "failure") | failure.spec, failure.error, raised=error)


def _log(job: Job, error: BaseException, failure: Failure) -> None:
    # Who raises JobFailed has said all there is to say.
    shown = None if issubclass(type(error), JobFailed) else (type(error), error, error.__traceback__)
    text, subject = "job %s (%s) failed in attempt %d: %s", (job.id, job.name, job.attempt, failure.spec["message"])
    record = log.makeRecord(log.name, logging.WARNING, __file__, 0, text, subject, shown)
    if shown:
        record.exc_text = failure.trace.rstrip()  # which formatters take: their own might raise, and has no bounds
    if log.isEnabledFor(logging.WARNING):
        log.handle(record)


# -- failures -------------------------------------------------------------------------------------


class Failure(NamedTuple):
    """How an attempt failed: as `finish` takes it, with `error` behind it, packed."""

    spec: dict[str, Any]
    error: bytes
    trace: str


def failure_of(error: BaseException, retries: Callable[[BaseException], bool] | None = None) -> Failure:
    """What is told of an attempt that raised `error`. `retries`: whether another may follow; default: yes. What
    JobFailed says itself counts more."""
    kind = type(error)
    trace = f"{kind.__qualname__} (which cannot be described)"
    spec: dict[str, Any] = {"should_retry": True, "message": trace}
    value, group = None, kind.__qualname__
    with suppress(BaseException):  # of a class with odd attributes
        trace = trace_of(error)
        if kind.__module__ not in ("builtins", "__main__", "__mp_main__", __name__):
            group = f"{kind.__module__}.{group}"
        if isinstance(error, JobFailed):
            spec |= {"message": text_of(error), "should_retry": bool(error.retry)}
            value, group = error.error, text_of(error.group or group)
            retry_in = error.retry_in.total_seconds() if isinstance(error.retry_in, timedelta) else error.retry_in
            if isinstance(retry_in, float | int) and 0 <= retry_in <= LONGEST_DELAY_S:
                spec["retry_in"] = retry_in  # else the engine would refuse it all, and nobody hear of the failure
        else:
            spec |= {"message": summary(error), "should_retry": retries is None or retries(error)}
            value = {"type": kind.__name__, "traceback": trace}
    group = "".join(character if character.isprintable() else " " for character in group)
    spec["group"] = group.encode(errors="replace")[:GROUP_BYTES].decode(errors="ignore")
    return Failure(spec, _packed(value), trace)


def text_of(value: object, most: int = MESSAGE_CHARACTERS) -> str:
    """`str(value)`, at most `most` characters, such that UTF-8 can hold them."""
    try:
        text = str.__getitem__(str(value), slice(most))
    except BaseException as problem:
        text = f"({type(value).__name__}, whose text raises {type(problem).__name__})"
    return text.encode(errors="backslashreplace").decode()


def summary(error: BaseException) -> str:
    """`ValueError: no such thing`."""
    text = text_of(error)
    return f"{type(error).__name__}: {text}"[:MESSAGE_CHARACTERS] if text else type(error).__name__


def trace_of(error: BaseException) -> str:
    """The traceback with its causes as Python shows it, without the worker's own frames; of what is too long without
    its middle."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None and at.tb_frame.f_code.co_filename.startswith(_CALLERS):
        at = at.tb_next
    shown = traceback.TracebackException(type(error), error, at, limit=-TRACE_FRAMES, lookup_lines=False)
    text = "".join(shown.format())
    if len(text) > TRACE_CHARACTERS:
        half = TRACE_CHARACTERS // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:]}"
    return text_of(text, 2 * TRACE_CHARACTERS)


def _packed(value: Any) -> bytes:
    """What is kept of a failure: the beginning of its text, if it cannot be packed or is too large."""
    blob = b""
    with suppress(BaseException):
        blob = msgpack.packb(value)
    return blob if 0 < len(blob) <= ERROR_BYTES else msgpack.packb(text_of(value))
