"""A job that was enqueued: how it stands, its result, and what can be done about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from jqmaster.connection.wake import backoff_s
from jqmaster.engine.replies import Document
from jqmaster.errors import Conflict, NotFound, Unavailable

if TYPE_CHECKING:
    from jqmaster.app.calling import Serializer
    from jqmaster.app.link import Link
    from jqmaster.app.transport import Transport

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

ENDED = frozenset(("done", "error", "cancelled"))
LOOK_AGAIN_S = 30.0  # however lost an announcement is, nobody waits longer in vain
AT_A_TIME = 200  # of many jobs that are waited for together
AWAY_S = 30.0  # so long the other side may be away while somebody waits


class JobError(Exception):
    """The job failed for good.

    `reason`: other, timeout, expired or dependency; `message`: what its last failure said; `error`: the value
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


class NoResult(LookupError):
    """The job is done, but its result was not kept, or is gone by now."""


class Handle(Generic[R_co]):
    """A job. Two that stand for the same job are equal. `await handle` is `await handle.aresult()`."""

    __slots__ = ("_link", "_returns_none", "created", "id")

    def __init__(self, link: Link, job_id: str, *, created: bool = True, returns_none: bool = False) -> None:
        self.id = job_id
        self.created = created
        """False where `unique` found a job that was there."""
        self._link = link
        self._returns_none = returns_none

    def __repr__(self) -> str:
        return f"<job {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.aresult().__await__()

    def result(self, timeout: float | None = None) -> R_co:
        """What the function returned, once it has; waits at most `timeout` seconds.

        Raises TimeoutError; JobError; JobCancelled; NoResult, also when the result is gone because it was
        read before (section 9 of docs/protocol.md: `result_grace`); NotFound when nothing is known of the job
        any more; Unavailable when Redis or the master is away for long.
        """
        return self._link.run(lambda transport: self._result(transport, timeout))

    async def aresult(self, timeout: float | None = None) -> R_co:
        """As `result`."""
        return await self._link.arun(lambda transport: self._result(transport, timeout))

    def wait(self, timeout: float | None = None) -> str:
        """Wait for the end, however it is: `done`, `error` or `cancelled`. Raises TimeoutError, NotFound,
        Unavailable."""
        return self._link.run(lambda transport: wait(transport, self.id, timeout))

    async def async_wait(self, timeout: float | None = None) -> str:
        """As `wait`."""
        return await self._link.arun(lambda transport: wait(transport, self.id, timeout))

    def status(self) -> str:
        """The state now: queued, scheduled, blocked, running, retrying, done, error or cancelled. Raises
        NotFound."""
        return str(self.document()["status"])

    async def astatus(self) -> str:
        """As `status`."""
        return str((await self.adocument())["status"])

    def document(self) -> Document:
        """All there is to know now (docs/protocol.md, section 4, `get`), with `argument`, `result` and
        `error` as values. Raises NotFound."""
        return self._link.run(lambda transport: document(transport, self._link.serializer, self.id))

    async def adocument(self) -> Document:
        """As `document`."""
        return await self._link.arun(lambda transport: document(transport, self._link.serializer, self.id))

    def cancel(self, *, force: bool = False) -> bool:
        """Cancel it. False if it has ended already. Raises NotFound, and Conflict when it runs and the
        settings protect running jobs; `force` cancels it all the same."""
        return self._link.run(lambda transport: self._cancel(transport, force))

    async def acancel(self, *, force: bool = False) -> bool:
        """As `cancel`."""
        return await self._link.arun(lambda transport: self._cancel(transport, force))

    def retry(self) -> None:
        """Have it run again, if it failed or was cancelled. Raises NotFound, Conflict."""
        self._link.run(self._retry)

    async def aretry(self) -> None:
        """As `retry`."""
        await self._link.arun(self._retry)

    def explain(self) -> Document:
        """Why it waits: what holds it, what is ahead of it, when it may start. Raises NotFound."""
        return self._link.run(lambda transport: transport.explain(self.id))

    async def aexplain(self) -> Document:
        """As `explain`."""
        return await self._link.arun(lambda transport: transport.explain(self.id))

    def history(self) -> list[Document]:
        """What happened to it, oldest first: `{event, time_ms, attempt?, worker_id?, …}`. Raises NotFound."""
        return list(self._link.run(lambda transport: transport.history(self.id))["events"])

    async def ahistory(self) -> list[Document]:
        """As `history`."""
        return list((await self._link.arun(lambda transport: transport.history(self.id)))["events"])

    # -- parts ------------------------------------------------------------------------------------

    async def _result(self, transport: Transport, timeout: float | None) -> R_co:
        state = await wait(transport, self.id, timeout)
        if state == "cancelled":
            raise JobCancelled(self.id)
        if state == "error":
            found = await document(transport, self._link.serializer, self.id)
            raise JobError(self.id, found.get("reason", "other"), found.get("message", ""), found.get("error"))
        packed = await transport.result(self.id)
        if packed is not None:
            value: R_co = self._link.serializer.loads(packed)
            return value
        if self._returns_none:
            return None  # type: ignore[return-value]
        raise NoResult(f"job {self.id} is done, but its result was not kept (keep_result), or is gone by now")

    async def _cancel(self, transport: Transport, force: bool) -> bool:
        [state] = await transport.cancel([self.id], force)
        _found(self.id, state, "it is running; force=True cancels it all the same")
        return state not in ENDED

    async def _retry(self, transport: Transport) -> None:
        [state] = await transport.retry([self.id])
        _found(self.id, state, "it has neither failed nor been cancelled, or its unique key is another's")


def _found(job_id: str, state: str, conflict: str) -> None:
    if state == "NOTFOUND":
        raise NotFound(f"no such job: {job_id}")
    if state == "CONFLICT":
        raise Conflict(f"job {job_id}: {conflict}")


async def document(transport: Transport, serializer: Serializer, job_id: str) -> Document:
    """A job's document with its values unpacked. Raises NotFound."""
    [found] = await transport.documents([job_id])
    if found is None:
        raise NotFound(f"no such job: {job_id}")
    return unpacked(found, serializer)


def unpacked(found: Document, serializer: Serializer) -> Document:
    """`found` with values instead of bytes. What cannot be read stays bytes."""
    for name in ("argument", "result", "error"):
        if isinstance(found.get(name), bytes):
            try:
                found[name] = serializer.loads(found[name])
            except ValueError:
                pass
    return found


def gather(handles: Iterable[Handle[T]], timeout: float | None = None, *, return_errors: bool = False) -> list[Any]:
    """See `JQ.gather`."""
    all_of_them = list(handles)
    if not all_of_them:
        return []
    return all_of_them[0]._link.run(lambda one: _gather(one, all_of_them, timeout, return_errors))


async def agather(
    handles: Iterable[Handle[T]], timeout: float | None = None, *, return_errors: bool = False
) -> list[Any]:
    """See `JQ.gather`."""
    all_of_them = list(handles)
    if not all_of_them:
        return []
    return await all_of_them[0]._link.arun(lambda one: _gather(one, all_of_them, timeout, return_errors))


async def _gather(
    transport: Transport, handles: list[Handle[Any]], timeout: float | None, return_errors: bool
) -> list[Any]:
    deadline = None if timeout is None else time.monotonic() + timeout
    places = asyncio.Semaphore(AT_A_TIME)

    async def one(handle: Handle[Any]) -> Any:
        async with places:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            return await handle._result(transport, left_s)

    tasks = [asyncio.ensure_future(one(handle)) for handle in handles]
    try:
        return await asyncio.gather(*tasks, return_exceptions=return_errors)
    finally:
        for task in tasks:
            task.cancel()


async def wait(transport: Transport, job_id: str, timeout: float | None) -> str:
    """How a job ended. Raises TimeoutError, NotFound, Unavailable."""
    start = time.monotonic()
    deadline = float("inf") if timeout is None else start + timeout
    failures, last_answer = 0, start
    while True:
        left_s = max(0.0, deadline - time.monotonic())
        try:
            state = await transport.ended(job_id, min(LOOK_AGAIN_S, left_s))
            failures, last_answer = 0, time.monotonic()
        except Unavailable:
            # At the deadline, too: nobody knows that the job has not ended.
            if time.monotonic() >= min(deadline, last_answer + AWAY_S):
                raise
            await asyncio.sleep(min(backoff_s(failures), max(0.0, deadline - time.monotonic())))
            failures += 1
            continue
        if state in ENDED:
            return state
        if time.monotonic() >= deadline:
            raise TimeoutError(f"job {job_id} has not ended within {timeout:g} s")
