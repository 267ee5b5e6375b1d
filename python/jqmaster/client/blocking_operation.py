"""Methods of the blocking client for those who run a system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jqmaster.client import asks
from jqmaster.client.asks import Ask, Document
from jqmaster.client.blocking_jobs import Asking


class OperationMethods(Asking):
    """Queues, limits, schedules, workers, statistics, settings. Sections are those of docs/protocol.md."""

    # -- queues -----------------------------------------------------------------------------------

    def queues(self) -> list[Document]:
        """All queues with their counts by state."""
        return list(self._pages(asks.listing("queues")))

    def queue(self, name: str) -> Document:
        """A queue's settings and counts. Raises NotFound."""
        return self._do(asks.queue("GET", name, "", dict))

    def set_queue(
        self,
        name: str,
        *,
        paused: bool | None = None,
        max_waiting: int | None = None,
        fair: Sequence[Mapping[str, Any]] | None = None,
        set: Mapping[str, Any] | None = None,
        unset: Sequence[str] | None = None,
    ) -> Document:
        """Change a queue; its document. `set`, `unset`: settings of its own (section 9)."""
        levels = None if fair is None else [dict(level) for level in fair]
        names = None if unset is None else list(unset)
        changes = {"paused": paused, "max_waiting": max_waiting, "fair": levels, "set": set, "unset": names}
        return self._do(Ask("PATCH", asks.place("queue", name), dict, asks.pack(asks.given(changes))))

    def pause(self, name: str) -> Document:
        """Start no more jobs of a queue; it goes on taking them."""
        return self._do(asks.queue("POST", name, "pause", dict))

    def resume(self, name: str) -> Document:
        """Start jobs of a queue again."""
        return self._do(asks.queue("POST", name, "resume", dict))

    def forget(self, name: str) -> None:
        """Take away a queue without jobs. Raises NotFound, Conflict (it has some)."""
        self._do(asks.queue("DELETE", name, "", asks.nothing))

    def peek(self, name: str, count: int = 10) -> list[Document]:
        """The next `count` (1 to 1000) jobs of a queue, in order."""
        ask = asks.listing("jobs", "jobs", "queue", name, "jobs", count=count)
        found: list[Document] = self._do(ask(""))[1]
        return found

    def purge(self, name: str, status: str | Sequence[str] | None = None) -> int:
        """Remove all jobs of a queue in these states, by default all that wait; how many."""
        total, more = 0, True
        while more:
            discarded, more = self._do(asks.purge(name, status))
            total += discarded
        return total

    def kick_queue(self, name: str, *, delay: float | None = None) -> int:
        """Take all running jobs of a queue from their workers; how many. To keep it so, pause it first."""
        total, more = 0, True
        while more:
            kicked, more = self._do(asks.kick_queue(name, delay))
            total += kicked
        return total

    # -- limits -----------------------------------------------------------------------------------

    def constrain(
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
        """Limit the jobs that `match`, from now on; replaces a constraint of this id whole.

        `by`: a path, or several; each value found there has room of its own. `concurrency`: so many at once.
        `rate`: `{"limit": 100, "period": 60}`, starts in any so many seconds. Section 7 tells all of it.
        Returns the constraint's document. Raises Invalid, and Full at 1000 constraints.
        """
        limits = {"by": by, "concurrency": concurrency, "rate": rate, "cost": cost, "order": order}
        return self._do(asks.constraint("PUT", constraint_id, "", dict, match=match, **limits))

    def unconstrain(self, constraint_id: str) -> None:
        """Delete a constraint; what it held is free at once. Raises NotFound."""
        self._do(asks.constraint("DELETE", constraint_id, "", asks.nothing))

    def constraint(self, constraint_id: str) -> Document:
        """A constraint's definition, and how much of it is in use. Raises NotFound."""
        return self._do(asks.constraint("GET", constraint_id, "", dict))

    def constraints(self) -> list[Document]:
        """All constraints, in order of id."""
        return list(self._pages(asks.listing("constraints")))

    def usage(self, constraint_id: str) -> list[Document]:
        """The keys of a constraint that are in use. Raises NotFound."""
        return list(self._pages(asks.listing("usage", "keys", "constraint", constraint_id, "usage")))

    def hold(self, constraint_id: str, seconds: float, by: Any = None) -> int:
        """Start nothing under a constraint for so long; 0 seconds open it again.

        `by`: which value (or list of values), for a constraint that has `by`. Returns the moment until which
        it is closed, in ms since 1970. Raises NotFound, Invalid.
        """
        until_ms = asks.field("until_ms", int)
        return self._do(asks.constraint("POST", constraint_id, "hold", until_ms, seconds=seconds, by=by))

    # -- schedules --------------------------------------------------------------------------------

    def schedule(self, schedule_id: str, job: Mapping[str, Any], argument: Any = None, **options: Any) -> Document:
        """Create a recurring job, or replace it whole; its document.

        `job`: `{"name": …}` and the other fields of an enqueued one. `options`: `every` (seconds) or `cron`,
        and the others of section 16. Raises Invalid.
        """
        return self._do(asks.schedule(schedule_id, job, argument, options))

    def unschedule(self, schedule_id: str) -> None:
        """Delete a schedule; jobs that it has made stay. Raises NotFound."""
        self._do(Ask("DELETE", asks.place("schedule", schedule_id), asks.nothing))

    def get_schedule(self, schedule_id: str, *, next: int | None = None) -> Document:
        """A schedule; with `next`, also so many moments to come (0 to 100). Raises NotFound."""
        return self._do(Ask("GET", asks.place("schedule", schedule_id, next=next), dict))

    def schedules(self, *, next: int | None = None) -> list[Document]:
        """All schedules, in order of id."""
        return list(self._pages(asks.listing("schedules", next=next, count=20 if next else asks.PAGE)))

    # -- workers ----------------------------------------------------------------------------------

    def workers(self) -> list[Document]:
        """The registered workers."""
        return list(self._pages(asks.listing("workers")))

    def quiet_worker(self, worker_id: str) -> None:
        """Ask a registered worker to finish what it has and take no more. Raises NotFound."""
        self._do(Ask("POST", asks.place("worker", worker_id, "quiet"), asks.nothing))

    def stop_worker(self, worker_id: str) -> None:
        """Ask a registered worker to stop, as if it got SIGTERM. Raises NotFound."""
        self._do(Ask("POST", asks.place("worker", worker_id, "stop"), asks.nothing))

    def resume_worker(self, worker_id: str) -> None:
        """Have a worker that was asked to be quiet take jobs again. Raises NotFound."""
        self._do(Ask("POST", asks.place("worker", worker_id, "resume"), asks.nothing))

    # -- the whole --------------------------------------------------------------------------------

    def stats(
        self,
        by: str = "hour",
        *,
        queue: str | None = None,
        name: str | None = None,
        from_ms: int | None = None,
        to_ms: int | None = None,
    ) -> list[Document]:
        """What happened in each `minute`, `hour` or `day`, oldest first (section 17)."""
        query = {"by": by, "queue": queue, "name": name, "from_ms": from_ms, "to_ms": to_ms}
        return self._do(Ask("GET", asks.place("stats", **query), asks.field("stats", list)))

    def series(self, by: str = "hour", **period: Any) -> list[Document]:
        """Sums over a whole time, one for each pair of queue and name. `period`: the options of `stats`."""
        return list(self._pages(asks.listing("series", "series", "stats", "series", by=by, **period)))

    def config(self) -> Document:
        """All settings of the namespace."""
        return self._do(Ask("GET", "/config", dict))

    def configure(self, **settings: Any) -> Document:
        """Change settings, all or none; all of them afterwards. Raises Invalid."""
        return self._do(Ask("PATCH", "/config", dict, asks.pack(settings)))

    def describe_config(self) -> list[Document]:
        """What there is to set: name, value, default, type, unit, least, most, queues, meaning of each."""
        return self._do(Ask("GET", "/config?describe=1", asks.field("settings", list)))

    def export(self) -> Iterator[bytes]:
        """Everything the namespace has, as records for `import_records`. Raises Unavailable if cut off."""
        records = asks.Records()
        for piece in self._stream("/export", {}):
            yield from records.feed(piece)
        records.end()

    def import_records(self, records: Iterable[bytes], namespace: str) -> int:
        """Write records into another namespace of the master's Redis; how many keys.

        It must not be set up (Conflict). Raises Invalid. Repeating it completes an import that broke off.
        """
        return sum(self._do(asks.import_batch(namespace, batch)) for batch in asks.batches(records))
