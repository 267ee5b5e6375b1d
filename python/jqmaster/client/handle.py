"""A job that was enqueued: how it stands, its result or why there is none, and what can be done about it."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, Unpack, cast

from jqmaster.client.calling import MessagePack, Serializer
from jqmaster.client.link import Link, plain
from jqmaster.connection import plainly
from jqmaster.connection.wake import backoff_s
from jqmaster.engine.ended import ENDED
from jqmaster.engine.options import Changes, Reference, known, spec_of
from jqmaster.engine.replies import Document, Page
from jqmaster.errors import Conflict, Expired, Invalid, NotFound, Unavailable

Dependents = Literal["leave", "cancel", "refuse"]
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

LOOK_AGAIN_S = 30.0  # however lost an announcement is, nobody waits longer in vain
BATCH = 1000  # ids in a call, at most
AWAY_S = 30.0  # so long the other side may be away while somebody waits


class JobError(Exception):
    """The job failed for good.

    `reason`: other, timeout, lapses, expired or dependency; `message`: what its last failure said; `error`: the value
    that came with it, such as `{"type": "ValueError", "traceback": "…"}`.
    """

    def __init__(self, job_id: str, reason: str, message: str, error: Any = None) -> None:
        super().__init__(job_id, reason, message)
        self.job_id = job_id
        self.reason = reason
        self.message = message
        self.error = error

    def __str__(self) -> str:
        about = "" if self.reason == "other" else f" ({self.reason})"
        return f"job {self.job_id} failed{about}: {self.message}"


class JobCancelled(Exception):
    """The job was cancelled, so it has no result."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"job {self.job_id} was cancelled"


class JobSkipped(JobCancelled):
    """The job was to run only if one that it depends on failed, and none did: it never began, and has no result."""

    def __str__(self) -> str:
        return f"job {self.job_id} was not needed: none that it depends on failed"


class NoResult(LookupError):
    """The job is done, but there is no result to read.

    `reason`: `none`, it keeps none (`keep_result`); or `expired`, it was read, or its time is over.
    """

    def __init__(self, job_id: str, reason: Literal["none", "expired"]) -> None:
        super().__init__(job_id, reason)
        self.job_id = job_id
        self.reason = reason

    def __str__(self) -> str:
        why = "it keeps none (keep_result)" if self.reason == "none" else "it was read, or its time is over"
        return f"job {self.job_id} is done, and has no result: {why}"


@dataclass(slots=True, unsafe_hash=True)
class Handle(Reference, Generic[R_co]):
    """A job. Two that stand for the same job are equal. `await handle` is `await handle.aresult()`.

    Every method has an async twin with an `a` before its name. A job that waits for another one holds its worker's
    slot meanwhile: better raise `ResumeAfter`.
    """

    id: str
    link: Link = field(compare=False, repr=False)
    task: Any = field(default=None, compare=False, repr=False)
    created: bool = field(default=True, compare=False, repr=False)
    """False where `unique` found a job that was there."""

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.aresult().__await__()

    async def aresult(self, timeout: float | None = None) -> R_co:
        """What the function returned, once it has; waits at most `timeout` seconds.

        Raises TimeoutError; JobError; JobCancelled, JobSkipped; NoResult, with a `reason`, also when the result
        was read before (docs/operating.md: `result_grace`); NotFound when nothing is known of the job any
        more; Unavailable when Redis or the master is away for long.
        """
        state = await self.ajoin(timeout)
        if state == "cancelled":
            raise JobCancelled(self.id)
        if state == "skipped":
            raise JobSkipped(self.id)
        if state == "error":
            job = await self.adocument()
            raise JobError(self.id, job.get("reason", "other"), job.get("message", ""), job.get("error"))
        try:
            _, packed = await (await self.link.open()).engine.result(self.id)
        except Expired:
            raise NoResult(self.id, "expired") from None
        if packed is not None:
            value = self.link.serializer.loads(packed)
            try:
                return cast(R_co, value if self.task is None else self.task.read_result(value))
            except ValueError as error:
                raise ValueError(f"the result of job {self.id}: {error}") from error
        if self.task is not None and self.task.returns_none:
            return None  # type: ignore[return-value]
        raise NoResult(self.id, "none")

    async def ajoin(self, timeout: float | None = None) -> str:
        """Wait for the end, however it is: `done`, `error`, `cancelled` or `skipped`. Raises TimeoutError,
        NotFound, Unavailable."""
        start = time.monotonic()
        deadline = math.inf if timeout is None else start + timeout
        failures, last_answer = 0, start
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            try:
                state = await (await self.link.open()).ended(self.id, min(LOOK_AGAIN_S, left_s))
                failures, last_answer = 0, time.monotonic()
            except Invalid:
                raise NotFound(f"no such job: {self.id}") from None
            except Unavailable:
                # At the deadline, too: nobody knows that the job has not ended.
                if time.monotonic() >= min(deadline, last_answer + AWAY_S):
                    raise
                await plainly.pause(min(backoff_s(failures), max(0.0, deadline - time.monotonic())))
                failures += 1
                continue
            if state in ENDED:
                return state
            if time.monotonic() >= deadline:
                raise TimeoutError(f"job {self.id} has not ended within {timeout:g} s")

    async def astatus(self) -> str:
        """The state now: queued, scheduled, blocked, running, retrying, done, error, cancelled or skipped.
        Raises NotFound."""
        return str((await self.adocument())["status"])

    async def adocument(self) -> Document:
        """All there is to know now (docs/protocol.md, `get`), with `argument`, `result` and
        `error` as values. Raises NotFound."""
        try:
            [packed] = await (await self.link.open()).engine.get([self.id])
        except Invalid:  # what cannot be an id is that of no job
            packed = None
        if packed is None:
            raise NotFound(f"no such job: {self.id}")
        return cast(Document, unpacked(packed, self.link.serializer))

    # -- changing it ------------------------------------------------------------------------------

    async def acancel(self, *, force: bool = False, dependents: Dependents | None = None) -> bool:
        """Cancel it. False if it has ended already. Raises NotFound, and Conflict when it runs and the
        settings protect running jobs; `force` cancels it all the same. `dependents`, jobs that wait for it:
        `leave` (default), `cancel`, or `refuse`, which raises Conflict."""
        engine = (await self.link.open()).engine
        [state] = await engine.cancel([self.id], force=force or None, dependents=dependents)
        return self._found(state, "it is running; force=True cancels it all the same") not in ENDED

    async def aretry(self, *, queue: str | None = None) -> None:
        """Have it run again, if it failed, was cancelled or skipped; `queue`: in another queue. Raises NotFound,
        Conflict, Invalid."""
        [state] = await (await self.link.open()).engine.retry([self.id], queue=queue)
        self._found(state, "it has neither failed nor been cancelled or skipped, or its unique key is another's")

    async def achange(self, **changes: Unpack[Changes]) -> str:
        """Change what it was enqueued with, while it waits; of one that runs or has ended only `tags`. Its
        state. Raises NotFound, Conflict, Invalid."""
        spec = {"id": self.id, **spec_of(known(changes, Changes))}
        spec.pop("argument", None)
        argument = self.link.serializer.dumps(changes["argument"]) if "argument" in changes else b""
        [state] = await (await self.link.open()).engine.change([(spec, argument)])
        return self._found(state, "it runs or has ended; of such only the tags can be changed")

    result, join, status = plain(aresult), plain(ajoin), plain(astatus)
    document = plain(adocument)
    cancel, retry, change = plain(acancel), plain(aretry), plain(achange)

    def _found(self, state: str, conflict: str) -> str:
        if state == "NOTFOUND":
            raise NotFound(f"no such job: {self.id}")
        if state == "CONFLICT":
            raise Conflict(f"job {self.id}: {conflict}")
        return state


async def batched(call: Callable[[list[str]], Awaitable[Sequence[Any]]], ids: Sequence[str]) -> list[Any]:
    """What calls with at most 1000 ids each say of many jobs."""
    results: list[Any] = []
    for start in range(0, len(ids), BATCH):
        results += await call(list(ids[start : start + BATCH]))
    return results


def unpacked(reply: Any, serializer: Serializer) -> Any:
    """`reply` with values instead of bytes in its documents. What cannot be read stays bytes."""
    if isinstance(reply, Page):
        return reply._replace(documents=unpacked(reply.documents, serializer))
    if isinstance(reply, list):
        return [unpacked(part, serializer) for part in reply]
    for name in ("argument", "result", "error") if isinstance(reply, dict) else ():
        if isinstance(reply.get(name), bytes):
            with suppress(ValueError):
                # Errors are packed by workers of any kind, as what MessagePack has.
                reply[name] = (MessagePack() if name == "error" else serializer).loads(reply[name])
    return reply
