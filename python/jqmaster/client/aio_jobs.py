"""Methods of the client for asyncio about jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from jqmaster.client import asks
from jqmaster.client.asks import Ask, Document, Enqueued, Event

T = TypeVar("T")


class AsyncAsking:
    """How the methods reach the master."""

    async def _do(self, ask: Ask[T]) -> T:
        raise NotImplementedError

    def _stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
        """An answer's lines or pieces as they come."""
        raise NotImplementedError

    async def _pages(self, ask: Callable[[str], Ask[Any]]) -> AsyncIterator[Any]:
        cursor = ""
        while True:
            cursor, found = await self._do(ask(cursor))
            for one in found:
                yield one
            if not cursor:
                return

    async def _steps(self, ask: Callable[[str], Ask[tuple[str, int]]]) -> int:
        cursor, total = "", 0
        while True:
            cursor, changed = await self._do(ask(cursor))
            total += changed
            if not cursor:
                return total

    async def _events(self, path: str, after: str | None) -> AsyncIterator[Event]:
        lines = asks.EventLines()
        async for line in self._stream(path, asks.event_headers(after)):
            event = lines.feed(line)
            if event is not None:
                yield event


class AsyncJobMethods(AsyncAsking):
    """For those who enqueue, and those who look after jobs. Sections named are those of docs/protocol.md."""

    async def enqueue(self, name: str, argument: Any = None, **options: Any) -> str:
        """As `Client.enqueue`."""
        return await self._do(asks.enqueue(name, argument, options))

    async def enqueue_many(self, jobs: Iterable[Mapping[str, Any]], *, request: str | None = None) -> list[str]:
        """As `Client.enqueue_many`."""
        return [enqueued.id for enqueued in await self._do(asks.enqueue_many(jobs, request))]

    async def enqueue_unique(self, name: str, unique: str, argument: Any = None, **options: Any) -> Enqueued:
        """As `Client.enqueue_unique`."""
        one = {"name": name, "argument": argument, "unique": unique, **options}
        [enqueued] = await self._do(asks.enqueue_many([one], None))
        return enqueued

    async def get(self, job_id: str) -> Document:
        """As `Client.get`."""
        return await self._do(asks.job("GET", job_id, "", dict))

    async def result(self, job_id: str) -> Any:
        """As `Client.result`."""
        return await self._do(asks.job("GET", job_id, "result", asks.whole))

    async def cancel(self, job_id: str, *, force: bool = False, dependents: str | None = None) -> None:
        """As `Client.cancel`."""
        await self._do(asks.cancel(job_id, force, dependents))

    async def explain(self, job_id: str) -> Document:
        """As `Client.explain`."""
        return await self._do(asks.job("GET", job_id, "explain", dict))

    async def history(self, job_id: str) -> Document:
        """As `Client.history`."""
        return await self._do(asks.job("GET", job_id, "history", dict))

    # -- changing them ----------------------------------------------------------------------------

    async def change(self, job_id: str, **changes: Any) -> str:
        """As `Client.change`."""
        return await self._do(Ask("PATCH", asks.place("job", job_id), asks.status, asks.pack(changes)))

    async def change_many(self, changes: Iterable[Mapping[str, Any]]) -> list[str]:
        """As `Client.change_many`."""
        body = asks.pack({"jobs": [dict(change) for change in changes]})
        return await self._do(Ask("POST", "/jobs/change", asks.answers, body))

    async def depend(
        self,
        job_id: str,
        *,
        add: Sequence[str] | None = None,
        remove: Sequence[str] | None = None,
        if_failed: str | None = None,
    ) -> str:
        """As `Client.depend`."""
        more = None if add is None else list(add)
        less = None if remove is None else list(remove)
        return await self._do(
            asks.job("POST", job_id, "depends", asks.status, add=more, remove=less, if_failed=if_failed)
        )

    async def kick(self, job_id: str, *, delay: float | None = None) -> str:
        """As `Client.kick`."""
        return await self._do(asks.job("POST", job_id, "kick", asks.status, delay=delay))

    async def kick_many(self, ids: Iterable[str], *, delay: float | None = None) -> list[str]:
        """As `Client.kick_many`."""
        return await self._do(asks.each("kick", ids, delay=delay))

    async def retry(self, job_id: str) -> str:
        """As `Client.retry`."""
        return await self._do(asks.job("POST", job_id, "retry", asks.status))

    async def retry_many(self, ids: Iterable[str]) -> list[str]:
        """As `Client.retry_many`."""
        return await self._do(asks.each("retry", ids))

    async def retry_where(self, **where: Any) -> int:
        """As `Client.retry_where`."""
        return await self._steps(asks.steps("retry", where))

    async def discard(self, job_id: str) -> str:
        """As `Client.discard`."""
        return await self._do(asks.job("DELETE", job_id, "record", asks.status))

    async def discard_many(self, ids: Iterable[str]) -> list[str]:
        """As `Client.discard_many`."""
        return await self._do(asks.each("discard", ids))

    async def discard_where(self, **where: Any) -> int:
        """As `Client.discard_where`."""
        return await self._steps(asks.steps("discard", where))

    async def cancel_many(
        self, ids: Iterable[str], *, force: bool | None = None, dependents: str | None = None
    ) -> list[str]:
        """As `Client.cancel_many`."""
        return await self._do(asks.each("cancel", ids, force=force, dependents=dependents))

    async def cancel_where(self, *, force: bool | None = None, **where: Any) -> int:
        """As `Client.cancel_where`."""
        return await self._steps(asks.steps("cancel", where, force=force))

    # -- finding them -----------------------------------------------------------------------------

    def jobs(self, *, newest: bool = False, brief: bool = False, **where: Any) -> AsyncIterator[Document]:
        """As `Client.jobs`."""
        return self._pages(asks.search({"newest": newest, "brief": brief, **where}))

    async def failures(self) -> list[Document]:
        """As `Client.failures`."""
        return [one async for one in self._pages(asks.listing("failures"))]

    async def tags(self, top: int | None = None) -> list[tuple[str, int]]:
        """As `Client.tags`."""
        return [(one["tag"], one["count"]) async for one in self._pages(asks.tags(top))]

    # -- following them ---------------------------------------------------------------------------

    async def track(self, job_id: str, *, on: bool = True) -> str:
        """As `Client.track`."""
        return await self._do(asks.job("POST", job_id, "track", asks.status, on=on))

    def job_events(self, job_id: str) -> AsyncIterator[Event]:
        """As `Client.job_events`."""
        return self._events(asks.place("job", job_id, "events"), None)

    def events(self, *, after: str | None = None) -> AsyncIterator[Event]:
        """As `Client.events`."""
        return self._events("/events", after)
