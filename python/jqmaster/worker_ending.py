"""How an attempt ends: with an outcome to report, or by giving the job back."""

from __future__ import annotations

import concurrent.futures.thread
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgpack

from jqmaster.replies import Job

NIL = b"\xc0"
MESSAGE_CHARACTERS = 2000
TRACE_FRAMES = 20


class JobFailed(Exception):
    """Raise it in a function to choose what is reported. `error`: any value MessagePack can hold."""

    def __init__(self, message: str, *, retry: bool = True, error: Any = None) -> None:
        super().__init__(message)
        self.retry = retry
        self.error = error


class JobReleased(Exception):
    """Raise it in a function to say "not now": the job waits again and loses no retry.

    `delay`: seconds before this job is ready again. `hold`: maps ids of constraints to seconds for which
    nothing else starts under them either, as far as this job's keys go, such as
    `{"per-customer-mail": 30}` when a customer's mail server asks for half a minute.
    """

    def __init__(
        self, message: str = "", *, delay: float = 0, hold: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(message)
        self.delay = float(delay)
        self.hold = {name: float(seconds) for name, seconds in (hold or {}).items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt: the spec for `finish`, and the result or error, packed."""

    job: Job
    spec: dict[str, Any]
    blob: bytes = NIL

    @property
    def is_success(self) -> bool:
        return bool(self.spec["type"] == "success")


@dataclass(frozen=True, slots=True)
class Release:
    """An attempt that ends without an outcome: the job is given back, see `JobReleased`. Seconds."""

    job: Job
    delay: float = 0
    hold: dict[str, float] = field(default_factory=dict)


Ending = Outcome | Release


def without_hold(release: Release, path: str | None) -> Release:
    """`release` without the hold that `path` (such as `hold.per-customer-mail`) names, or if it names none,
    without any.

    The constraint is gone, so nothing else is to wait. But this job is, or it would come straight back.
    """
    gone = {name for name in release.hold if f"hold.{name}" == path} or set(release.hold)
    delay = max(release.delay, *(release.hold[name] for name in gone))
    kept = {name: seconds for name, seconds in release.hold.items() if name not in gone}
    return Release(release.job, delay, kept)


def trace(error: Exception, caller: str) -> str:
    """The traceback from the function on, without the frames of `caller` (a file) that called it."""
    callers = (caller, concurrent.futures.thread.__file__)
    at = error.__traceback__
    while at is not None and at.tb_next is not None and at.tb_frame.f_code.co_filename in callers:
        at = at.tb_next
    return "".join(traceback.format_exception(type(error), error, at, limit=-TRACE_FRAMES))


def failed(job: Job, message: str, *, retry: bool = True, error: Any = None) -> Outcome:
    """The outcome of an attempt that failed. `error`: any value; what cannot be packed is shown as text."""
    try:
        blob = msgpack.packb(error)
    except (TypeError, ValueError, OverflowError):
        blob = msgpack.packb(repr(error))
    spec = {"type": "failure", "should_retry": retry, "message": message[:MESSAGE_CHARACTERS]}
    return Outcome(job, spec, blob)
