"""Methods of the client for asyncio for those who run a system."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from jqmaster.client import asks
from jqmaster.client.aio_jobs import AsyncAsking
from jqmaster.client.asks import Ask, Document


class AsyncOperationMethods(AsyncAsking):
    """Queues, limits, schedules, workers, statistics, settings. Sections are those of docs/protocol.md."""

    # -- queues -----------------------------------------------------------------------------------

    async def queues(self) -> list[Document]:
        """As `Client.queues`."""
        return [one async for one in self._pages(asks.listing("queues"))]

    async def queue(self, name: str) -> Document:
        """As `Client.queue`."""
        return await self._do(asks.queue("GET", name, "", dict))

    async def set_queue(
        self,
        name: str,
        *,
        paused: bool | None = None,
        max_waiting: int | None = None,
        fair: Sequence[Mapping[str, Any]] | None = None,
        set: Mapping[str, Any] | None = None,
        unset: Sequence[str] | None = None,
    ) -> Document:
        """As `Client.set_queue`."""
        levels = None if fair is None else [dict(level) for level in fair]
        names = None if unset is None else list(unset)
        changes = {"paused": paused, "max_waiting": max_waiting, "fair": levels, "set": set, "unset": names}
        return await self._do(Ask("PATCH", asks.place("queue", name), dict, asks.pack(asks.given(changes))))

    async def pause(self, name: str) -> Document:
        """As `Client.pause`."""
        return await self._do(asks.queue("POST", name, "pause", dict))

    async def resume(self, name: str) -> Document:
        """As `Client.resume`."""
        return await self._do(asks.queue("POST", name, "resume", dict))

    async def forget(self, name: str) -> None:
        """As `Client.forget`."""
        await self._do(asks.queue("DELETE", name, "", asks.nothing))

    async def peek(self, name: str, count: int = 10) -> list[Document]:
        """As `Client.peek`."""
        ask = asks.listing("jobs", "jobs", "queue", name, "jobs", count=count)
        found: list[Document] = (await self._do(ask("")))[1]
        return found

    async def purge(self, name: str, status: str | Sequence[str] | None = None) -> int:
        """As `Client.purge`."""
        total, more = 0, True
        while more:
            discarded, more = await self._do(asks.purge(name, status))
            total += discarded
        return total

    async def kick_queue(self, name: str, *, delay: float | None = None) -> int:
        """As `Client.kick_queue`."""
        total, more = 0, True
        while more:
            kicked, more = await self._do(asks.kick_queue(name, delay))
            total += kicked
        return total

    # -- limits -----------------------------------------------------------------------------------

    async def constrain(
        self,
        constraint_id: str,
        match: Mapping[str, Any],
        *,
        by: str | Sequence[str] | None = None,
        concurrency: int | None = None,
        rate: Mapping[str, Any] | None = None,
        cost: float | str | None = None,
        order: str | None = None,
    ) -> Document:
        """As `Client.constrain`."""
        limits = {"by": by, "concurrency": concurrency, "rate": rate, "cost": cost, "order": order}
        return await self._do(asks.constraint("PUT", constraint_id, "", dict, match=match, **limits))

    async def unconstrain(self, constraint_id: str) -> None:
        """As `Client.unconstrain`."""
        await self._do(asks.constraint("DELETE", constraint_id, "", asks.nothing))

    async def constraint(self, constraint_id: str) -> Document:
        """As `Client.constraint`."""
        return await self._do(asks.constraint("GET", constraint_id, "", dict))

    async def constraints(self) -> list[Document]:
        """As `Client.constraints`."""
        return [one async for one in self._pages(asks.listing("constraints"))]

    async def usage(self, constraint_id: str) -> list[Document]:
        """As `Client.usage`."""
        return [one async for one in self._pages(asks.listing("usage", "keys", "constraint", constraint_id, "usage"))]

    async def hold(self, constraint_id: str, seconds: float, by: Any = None) -> int:
        """As `Client.hold`."""
        until_ms = asks.field("until_ms", int)
        return await self._do(asks.constraint("POST", constraint_id, "hold", until_ms, seconds=seconds, by=by))

    # -- schedules --------------------------------------------------------------------------------

    async def schedule(
        self, schedule_id: str, job: Mapping[str, Any], argument: Any = None, **options: Any
    ) -> Document:
        """As `Client.schedule`."""
        return await self._do(asks.schedule(schedule_id, job, argument, options))

    async def unschedule(self, schedule_id: str) -> None:
        """As `Client.unschedule`."""
        await self._do(Ask("DELETE", asks.place("schedule", schedule_id), asks.nothing))

    async def get_schedule(self, schedule_id: str, *, next: int | None = None) -> Document:
        """As `Client.get_schedule`."""
        return await self._do(Ask("GET", asks.place("schedule", schedule_id, next=next), dict))

    async def schedules(self, *, next: int | None = None) -> list[Document]:
        """As `Client.schedules`."""
        return [one async for one in self._pages(asks.listing("schedules", next=next, count=20 if next else asks.PAGE))]

    # -- workers ----------------------------------------------------------------------------------

    async def workers(self) -> list[Document]:
        """As `Client.workers`."""
        return [one async for one in self._pages(asks.listing("workers"))]

    async def quiet_worker(self, worker_id: str) -> None:
        """As `Client.quiet_worker`."""
        await self._do(Ask("POST", asks.place("worker", worker_id, "quiet"), asks.nothing))

    async def stop_worker(self, worker_id: str) -> None:
        """As `Client.stop_worker`."""
        await self._do(Ask("POST", asks.place("worker", worker_id, "stop"), asks.nothing))

    async def resume_worker(self, worker_id: str) -> None:
        """As `Client.resume_worker`."""
        await self._do(Ask("POST", asks.place("worker", worker_id, "resume"), asks.nothing))

    # -- the whole --------------------------------------------------------------------------------

    async def stats(
        self,
        by: str = "hour",
        *,
        queue: str | None = None,
        name: str | None = None,
        from_ms: int | None = None,
        to_ms: int | None = None,
    ) -> list[Document]:
        """As `Client.stats`."""
        query = {"by": by, "queue": queue, "name": name, "from_ms": from_ms, "to_ms": to_ms}
        return await self._do(Ask("GET", asks.place("stats", **query), asks.field("stats", list)))

    async def series(self, by: str = "hour", **period: Any) -> list[Document]:
        """As `Client.series`."""
        return [one async for one in self._pages(asks.listing("series", "series", "stats", "series", by=by, **period))]

    async def config(self) -> Document:
        """As `Client.config`."""
        return await self._do(Ask("GET", "/config", dict))

    async def configure(self, **settings: Any) -> Document:
        """As `Client.configure`."""
        return await self._do(Ask("PATCH", "/config", dict, asks.pack(settings)))

    async def describe_config(self) -> list[Document]:
        """As `Client.describe_config`."""
        return await self._do(Ask("GET", "/config?describe=1", asks.field("settings", list)))

    async def export(self) -> AsyncIterator[bytes]:
        """As `Client.export`."""
        records = asks.Records()
        async for piece in self._stream("/export", {}):
            for record in records.feed(piece):
                yield record
        records.end()

    async def import_records(self, records: Iterable[bytes], namespace: str) -> int:
        """As `Client.import_records`."""
        total = 0
        for batch in asks.batches(records):
            total += await self._do(asks.import_batch(namespace, batch))
        return total
