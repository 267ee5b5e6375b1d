"""How an attempt ends: with an outcome to report, or by giving the job back."""

from __future__ import annotations

import concurrent.futures.thread
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgpack

from jqmaster.engine.options import NewJob, Seconds
from jqmaster.engine.replies import Job
from jqmaster.errors import Invalid, JQError, NotFound
from jqmaster.worker import threads
from jqmaster.worker.notes import notebook_of

R_co = TypeVar("R_co", covariant=True)

NIL = b"\xc0"
MESSAGE_CHARACTERS = 2000
TRACE_FRAMES = 20
GROUP_BYTES = 255
REASON_CHARACTERS = 80  # of a release's message, where what became of its hold stands behind it
PUT_OFF_S = 10.0
LONGEST_DELAY_S = 1e10


class JobFailed(Exception):
    """Raise it in a function to choose what is reported. `error`: any value MessagePack can hold.

    `retry_in`: the retry comes after so long (seconds or a `timedelta`), whatever the backoff; it is spent as any.
    A value that is not a time is ignored: the backoff decides then. `group`: what `failures` lists it under; by
    default the name of the exception's class, so that all that are raised without one are listed as `JobFailed`.
    """

    def __init__(
        self,
        message: str,
        *,
        retry: bool = True,
        retry_in: Seconds | None = None,
        error: Any = None,
        group: str | None = None,
    ) -> None:
        super().__init__(message)
        self.retry = retry
        self.retry_in = None if retry_in is None else _seconds(retry_in)
        self.error = error
        self.group = group


class JobReleased(Exception):
    """Raise it in a function to say "not now": the job waits again and loses no retry.

    `delay`: seconds before this job is ready again. `hold`: maps ids of constraints to seconds for which
    nothing else starts under them either, as far as this job's keys go, such as
    `{"per-customer-mail": 30}` when a customer's mail server asks for half a minute. `message`: why, for the
    job's history. Durations are seconds or a `timedelta`. If a hold names an
    unknown constraint, or its time is not one, no constraint is closed: this job alone waits, and its history says so.
    """

    def __init__(self, message: str = "", *, delay: Seconds = 0, hold: Mapping[str, Seconds] | None = None) -> None:
        super().__init__(message)
        self.delay = _seconds(delay)
        self.hold = {name: _seconds(given) for name, given in (hold or {}).items()}


def _seconds(given: Seconds) -> float:
    """What is no duration is left as it is: when the job is given back it is refused, and that is told."""
    try:
        return given.total_seconds() if isinstance(given, timedelta) else float(given)
    except (TypeError, ValueError, OverflowError):
        return given  # type: ignore[return-value]


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


class Follower(Protocol):
    """A call that is not enqueued yet."""

    def follower(self, siblings: Sequence[Any]) -> NewJob:
        """The job, enqueued with `siblings`. Raises ValueError when it depends on other calls."""


@dataclass(frozen=True, slots=True)
class FollowUp(Generic[R_co]):
    """Return it from a function: its result (or a `Move`), and jobs that are enqueued in the same step.
    `-> FollowUp[int]` says that the result is an integer.

    `jobs`: 1 to 1000 calls, made with `task.job(...)`, or maps as for `Client.enqueue_many`; integers in `depends`
    of these are indexes among them.
    """

    result: R_co | Move[R_co]
    jobs: Sequence[Follower | Mapping[str, Any] | NewJob]


class HasId(Protocol):
    """A job that was enqueued, such as a handle."""

    @property
    def id(self) -> str: ...


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
        jobs: Sequence[Follower | Mapping[str, Any] | NewJob | HasId | str],
        *,
        if_failed: Literal["wait", "fail", "run"] | None = None,
        checkpoint: Any = ...,
    ) -> None:
        super().__init__(jobs)
        self.jobs = list(jobs)
        self.if_failed = if_failed
        notebook = notebook_of()
        dumps = msgpack.packb if notebook is None else notebook.dumps
        self.checkpoint: bytes | None = None if checkpoint is ... else dumps(checkpoint)

    def __str__(self) -> str:
        return f"after {len(self.jobs)} jobs"

    def parts(self) -> tuple[list[Any], list[str | int]]:
        """Those of the jobs that are to be enqueued, and what it depends on: ids, and indexes among these."""
        new: list[Any] = []
        depends: list[str | int] = []
        for one in self.jobs:
            there = one if isinstance(one, str) else getattr(one, "id", None)
            depends.append(len(new) if there is None else there)
            new += [one] if there is None else []
        return new, depends


@dataclass(frozen=True, slots=True)
class Packed:
    """A result that is packed already: one MessagePack value."""

    blob: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt: the spec for `finish`, and the result or error, packed.

    `follow`: jobs to enqueue.
    """

    job: Job
    spec: dict[str, Any]
    blob: bytes = NIL
    follow: tuple[NewJob, ...] = ()

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


def released(job: Job, said: JobReleased) -> Release:
    """How an attempt ends whose function raised `said`."""
    message = str(said)[:MESSAGE_CHARACTERS].encode(errors="replace").decode()
    return Release(job, said.delay, said.hold, message)


def put_off(release: Release, error: Exception) -> Release | None:
    """What to say instead of `release`, which was refused with `error`; None when that was about neither its
    hold nor its delay.

    A hold that was refused, for example because the constraint is gone, is left out (all are when the error
    names none). But then this job is to wait, or it would come straight back.
    """
    if isinstance(error, JQError) and not isinstance(error, Invalid | NotFound):
        return None
    path = error.path if isinstance(error, JQError) else None
    if release.hold and path != "delay":
        gone = {name for name in release.hold if f"hold.{name}" == path} or set(release.hold)
        waits = [_waits(release.hold[name]) for name in gone]
        delay = release.delay if _waits(release.delay) != release.delay else max(release.delay, *waits)
        kept = {name: seconds for name, seconds in release.hold.items() if name not in gone}
        return Release(release.job, delay, kept, _because(release, "not held", error))
    if isinstance(error, NotFound) or _waits(release.delay) == release.delay:
        return None
    message = _because(release, f"put off for {PUT_OFF_S:g} s", error)
    return Release(release.job, PUT_OFF_S, release.hold, message)


def _because(release: Release, what: str, error: Exception) -> str:
    message = f"{release.message[:REASON_CHARACTERS]} ({what}: {error})".lstrip()
    return message.encode(errors="replace").decode()


def _waits(seconds: Any) -> float:
    """For how long a job waits that was to be put off for `seconds`, whatever that is."""
    return seconds if isinstance(seconds, float | int) and 0 <= seconds <= LONGEST_DELAY_S else PUT_OFF_S


def trace(error: Exception, caller: str) -> str:
    """The traceback from the function on, without the frames of `caller` (a file) that called it."""
    callers = (caller, threads.__file__, concurrent.futures.thread.__file__)
    at = error.__traceback__
    while at is not None and at.tb_next is not None and at.tb_frame.f_code.co_filename in callers:
        at = at.tb_next
    return "".join(traceback.format_exception(type(error), error, at, limit=-TRACE_FRAMES))


def succeeded(job: Job, result: Any) -> Outcome:
    """The outcome of an attempt whose function returned `result`, or raised a `ResumeAfter`. Raises what packing it
    raises."""
    if isinstance(result, ResumeAfter):
        return _resumed(job, result)
    if isinstance(result, Packed):
        return Outcome(job, {"type": "success"}, result.blob)
    spec: dict[str, Any] = {"type": "success"}
    follow: tuple[NewJob, ...] = ()
    if isinstance(result, FollowUp):
        follow = tuple(new_job(one, result.jobs) for one in result.jobs)
        result = result.result
    if isinstance(result, Move):
        spec["move"] = result.spec()
        result = result.argument
    return Outcome(job, spec, msgpack.packb(result), follow)


def _resumed(job: Job, said: ResumeAfter) -> Outcome:
    new, depends = said.parts()
    resume = {"depends": depends, "checkpoint": said.checkpoint is not None}
    if said.if_failed is not None:
        resume["if_failed"] = said.if_failed
    follow = tuple(new_job(one, new) for one in new)
    return Outcome(job, {"type": "success", "resume": resume}, said.checkpoint or NIL, follow)


def new_job(one: Follower | Mapping[str, Any] | NewJob, siblings: Sequence[Any]) -> NewJob:
    """One of the jobs of a `FollowUp` or `ResumeAfter`, ready to be sent. Raises what packing its argument raises."""
    if isinstance(one, NewJob):
        return one
    if not isinstance(one, Mapping):
        return one.follower(siblings)
    spec = dict(one)
    return NewJob(spec, msgpack.packb(spec.pop("argument", None)))


def group_of(error: BaseException) -> str:
    """By what failures with `error` are listed: the qualified name of its class."""
    kind = type(error)
    plain = kind.__module__ in ("builtins", "__main__") or kind is JobFailed
    name = kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"
    return name.encode()[:GROUP_BYTES].decode(errors="ignore")


def failed(
    job: Job,
    message: str,
    *,
    retry: bool = True,
    retry_in: Any = None,
    error: Any = None,
    group: str | None = None,
) -> Outcome:
    """The outcome of an attempt that failed. `error`: any value; what cannot be packed is shown as text. `retry_in`:
    seconds; what the engine would refuse is left out, so that the failure is told."""
    try:
        blob = msgpack.packb(error)
    except (TypeError, ValueError, OverflowError):
        blob = msgpack.packb(repr(error))
    spec = {"type": "failure", "should_retry": retry, "message": message[:MESSAGE_CHARACTERS]}
    if group is not None:
        spec["group"] = group
    if retry_in is not None and _waits(retry_in) is retry_in:
        spec["retry_in"] = retry_in
    return Outcome(job, spec, blob)
