"""How an attempt ends: with an outcome to report, or by giving the job back."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgpack

from jqmaster.engine.options import NewJob, Reference, Seconds
from jqmaster.engine.replies import Job
from jqmaster.errors import JQError
from jqmaster.worker.failure import Failure, JobFailed, clean, failure_of, seconds_of, text_of
from jqmaster.worker.notes import notebook_of

log = logging.getLogger("jqmaster.jobs")

R_co = TypeVar("R_co", covariant=True)

NIL = b"\xc0"
UNPACKABLE = (TypeError, ValueError, OverflowError)
MOST_BYTES = 256 << 20  # of a result: Redis closes the connection on more than 512 MB, and so the worker
LOG_CHARACTERS = 300  # of a failure's message in the log, before its traceback
REASON_CHARACTERS = 80  # of a release's message, where what became of its hold stands behind it
PUT_OFF_S = 10.0


class JobReleased(Exception):
    """Raise it in a function to say "not now": the job waits again and loses no retry.

    `delay`: seconds before this job is ready again. `hold`: maps ids of constraints to seconds for which
    nothing else starts under them either, as far as this job's keys go, such as
    `{"per-customer-mail": 30}` when a customer's mail server asks for half a minute. `message`: why, for the
    job's history. Durations are seconds or a `timedelta`. If a hold names an unknown constraint, or its time is not
    one, no constraint is closed: this job alone waits, and its history says so.
    """

    # Of a subclass that does not call `__init__`.
    delay: float = 0
    hold: Mapping[str, float] = MappingProxyType({})

    def __init__(self, message: str = "", *, delay: Seconds = 0, hold: Mapping[str, Seconds] | None = None) -> None:
        super().__init__(message)
        self.delay = seconds_of(delay)
        self.hold = {name: seconds_of(duration) for name, duration in (hold or {}).items()}


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

    def spec(self) -> dict[str, Any]:
        """As `finish` takes it."""
        fields = {"name": self.name, "queue": self.queue, "priority": self.priority, "delay": self.delay}
        return {name: value for name, value in fields.items() if value is not None}


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

    # Of a subclass that does not call `__init__`.
    jobs: Sequence[Any] = ()
    if_failed: Literal["wait", "fail", "run"] | None = None
    checkpoint: bytes | None = None

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
        notebook = notebook_of()
        dumps = msgpack.packb if notebook is None else notebook.dumps
        self.checkpoint = None if checkpoint is ... else dumps(checkpoint)

    def __str__(self) -> str:
        return f"after {len(self.jobs)} jobs"

    def parts(self) -> tuple[list[Any], list[str | int]]:
        """Those of the jobs that are to be enqueued, and what it depends on: ids, and indexes among these."""
        new: list[Any] = []
        depends: list[str | int] = []
        for job in self.jobs:
            there = job if isinstance(job, str) else getattr(job, "id", None)
            depends.append(len(new) if there is None else there)
            new += [job] if there is None else []
        return new, depends


class Outcome(NamedTuple):
    """What became of one attempt: the spec for `finish`, and the result or error, packed.

    `follow`: jobs to enqueue. `raised`: what the function raised, if it failed.
    """

    job: Job
    spec: dict[str, Any]
    blob: bytes = NIL
    follow: tuple[NewJob, ...] = ()
    raised: BaseException | None = None

    @property
    def is_success(self) -> bool:
        """Whether there is no further attempt, unless the job moves on."""
        return self.spec["type"] == "success" and "resume" not in self.spec


@dataclass(frozen=True, slots=True)
class Release:
    """An attempt that ends without an outcome: the job is given back, see `JobReleased`. Seconds."""

    job: Job
    delay: float = 0
    hold: dict[str, float] = field(default_factory=dict)
    message: str = ""


Ending = Outcome | Release


def put_off(release: Release, error: JQError) -> Release:
    """What to say instead of `release`, which was refused with `error`: this job alone waits."""
    reason = f"{release.message[:REASON_CHARACTERS]} (put off for {PUT_OFF_S:g} s: {text_of(error)})".lstrip()
    return Release(release.job, PUT_OFF_S, message=clean(reason))


async def returned(result: Any) -> Any:
    """What a function gives in the end: one behind a plain decorator may return a coroutine. Raises JobFailed for a
    generator."""
    while isinstance(result, Coroutine):
        result = await result
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        what = "an async generator" if inspect.isasyncgen(result) else "a generator"
        raise JobFailed(f"the function returned {what}: jobs cannot be generators, return a list", retry=False)
    return result


def succeeded(job: Job, result: Any, dumps: Callable[[Any], bytes] = msgpack.packb) -> Outcome:
    """The outcome of an attempt whose function returned `result`. Raises JobFailed for what cannot be packed."""
    spec = _spec(job, "success")
    try:
        follow: tuple[NewJob, ...] = ()
        if isinstance(result, FollowUp):
            follow = _jobs(result.jobs)
            result = result.result
        if isinstance(result, Move):
            spec["move"] = result.spec()
            result = result.argument
        blob = dumps(result)
    except UNPACKABLE as error:
        raise unpackable(job, error) from error
    if len(blob) > MOST_BYTES:
        message = f"the result has {len(blob)} bytes, and at most {MOST_BYTES} can be kept"
        raise JobFailed(message, retry=False)
    return Outcome(job, spec, blob, follow)


def unpackable(job: Job, error: BaseException) -> JobFailed:
    """What to say of a result, or of jobs that follow, which cannot be packed."""
    return JobFailed(f"the result of {job.name} cannot be packed: {text_of(error)}", retry=False)


def _spec(job: Job, type_: str) -> dict[str, Any]:
    return {"type": type_, "id": job.id, "token": job.token}


def _resumed(job: Job, error: ResumeAfter) -> Outcome:
    new, depends = error.parts()
    resume = {"depends": depends, "checkpoint": error.checkpoint is not None}
    if error.if_failed is not None:
        resume["if_failed"] = error.if_failed
    return Outcome(job, _spec(job, "success") | {"resume": resume}, error.checkpoint or NIL, _jobs(new))


def _jobs(calls: Sequence[NewCall]) -> tuple[NewJob, ...]:
    """The jobs of a `FollowUp` or `ResumeAfter`, ready to be sent."""
    if problem := next((call for call in calls if not isinstance(call, NewCall)), None):
        kind = type(problem).__name__
        raise TypeError(f"expected calls that are not enqueued yet, as task.job(...) makes, got {kind}")
    siblings = {call: index for index, call in enumerate(calls)}
    return tuple(call.new_job(siblings) for call in calls)


def failed(job: Job, message: str, *, retry: bool = True) -> Outcome:
    """The outcome of an attempt that failed for what the worker knows."""
    return Outcome(job, _spec(job, "failure") | {"should_retry": retry, "message": text_of(message)})


def raised(job: Job, error: BaseException, retries: Callable[[BaseException], bool] | None = None) -> Ending:
    """How an attempt ends whose function raised `error`, whatever that is. `retries`: as of `failure_of`."""
    kind = type(error)  # isinstance would ask the error for its class
    try:
        if issubclass(kind, ResumeAfter):
            assert isinstance(error, ResumeAfter)
            return _resumed(job, error)
        if issubclass(kind, JobReleased):
            assert isinstance(error, JobReleased)
            return _released(job, error)
    except UNPACKABLE as problem:
        error = unpackable(job, problem)
    except BaseException as problem:  # of odd attributes
        error = problem
    failure = failure_of(error, retries)
    with suppress(BaseException):  # of a handler of the program's, which is no reason to lose what became of the job
        _log(job, error, failure)
    return Outcome(job, _spec(job, "failure") | failure.spec, failure.error, raised=error)


def _released(job: Job, release: JobReleased) -> Release:
    message = text_of(release)
    log.info("job %s (%s) is given back%s", job.id, job.name, f": {message}" if message else "")
    return Release(job, release.delay, dict(release.hold) if isinstance(release.hold, Mapping) else {}, message)


def _log(job: Job, error: BaseException, failure: Failure) -> None:
    if not log.isEnabledFor(logging.WARNING):
        return
    # Who raises JobFailed has said all there is to say.
    shows = not issubclass(type(error), JobFailed) or log.isEnabledFor(logging.INFO)
    shown = (type(error), error, error.__traceback__) if shows else None
    text = "job %s (%s) failed in attempt %d: %s"
    subject = (job.id, job.name, job.attempt, text_of(failure.spec["message"], LOG_CHARACTERS))
    record = log.makeRecord(log.name, logging.WARNING, __file__, 0, text, subject, shown)
    if shows:
        record.exc_text = failure.trace.rstrip()  # which formatters take: their own might raise, and has no bounds
    log.handle(record)
