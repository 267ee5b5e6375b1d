"""Methods of the blocking client about jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from jqmaster.client import asks
from jqmaster.client.asks import Ask, Document, Enqueued, Event

T = TypeVar("T")


class Asking:
    """How the methods reach the master."""

    def _do(self, ask: Ask[T]) -> T:
        raise NotImplementedError

    def _stream(self, path: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        """An answer's lines or pieces as they come."""
        raise NotImplementedError

    def _pages(self, ask: Callable[[str], Ask[Any]]) -> Iterator[Any]:
        cursor = ""
        while True:
            cursor, found = self._do(ask(cursor))
            yield from found
            if not cursor:
                return

    def _steps(self, ask: Callable[[str], Ask[tuple[str, int]]]) -> int:
        cursor, total = "", 0
        while True:
            cursor, changed = self._do(ask(cursor))
            total += changed
            if not cursor:
                return total

    def _events(self, path: str, after: str | None) -> Iterator[Event]:
        lines = asks.EventLines()
        for line in self._stream(path, asks.event_headers(after)):
            event = lines.feed(line)
            if event is not None:
                yield event


class JobMethods(Asking):
    """For those who enqueue, and those who look after jobs. Sections named are those of docs/protocol.md."""

    def enqueue(self, name: str, argument: Any = None, **options: Any) -> str:
        """Enqueue a job and return its id. `options`: the fields of section 3.

        With `unique`, the id may be that of a job that was there (`enqueue_unique` tells).
        """
        return self._do(asks.enqueue(name, argument, options))

    def enqueue_many(self, jobs: Iterable[Mapping[str, Any]], *, request: str | None = None) -> list[str]:
        """Enqueue up to 1000 jobs, maps with `name`, `argument` and options: all or none. Returns their ids.

        Integers in `depends` are indexes of earlier jobs among them. Repeating a call with the same `request`
        token, after Unavailable, enqueues nothing twice.
        """
        return [enqueued.id for enqueued in self._do(asks.enqueue_many(jobs, request))]

    def enqueue_unique(self, name: str, unique: str, argument: Any = None, **options: Any) -> Enqueued:
        """Enqueue a job unless one with this key is there: (id, whether it was created).

        `if_exists`: what becomes of the second, `keep` (default), `replace` or `latest` (section 11).
        `unique_for`: the key is kept so many seconds after the job's end as well.
        """
        one = {"name": name, "argument": argument, "unique": unique, **options}
        [enqueued] = self._do(asks.enqueue_many([one], None))
        return enqueued

    def get(self, job_id: str) -> Document:
        """All there is to know about a job. Raises NotFound."""
        return self._do(asks.job("GET", job_id, "", dict))

    def result(self, job_id: str) -> Any:
        """The result, None if there is none (yet, or any more). The first read starts its grace period."""
        return self._do(asks.job("GET", job_id, "result", asks.whole))

    def cancel(self, job_id: str, *, force: bool = False, dependents: str | None = None) -> None:
        """Cancel a job. Raises NotFound, and Conflict when it has ended or may not be stopped.

        `dependents`, jobs that wait for it: `leave` (default), `cancel`, or `refuse` (Conflict).
        """
        self._do(asks.cancel(job_id, force, dependents))

    def explain(self, job_id: str) -> Document:
        """Why a job waits: what holds it, what is ahead of it, when it may start. Raises NotFound."""
        return self._do(asks.job("GET", job_id, "explain", dict))

    def history(self, job_id: str) -> Document:
        """What happened to a job: `{id, events, forgotten}`, of its last 20 attempts. Raises NotFound."""
        return self._do(asks.job("GET", job_id, "history", dict))

    # -- changing them ----------------------------------------------------------------------------

    def change(self, job_id: str, **changes: Any) -> str:
        """Change a waiting job's `priority`, `delay` or `run_at`, `max_retry`, `timeout`, `tags`, `argument`.

        Of one that runs or has ended only `tags`. Returns its state. Raises NotFound, Conflict, Invalid.
        """
        return self._do(Ask("PATCH", asks.place("job", job_id), asks.status, asks.pack(changes)))

    def change_many(self, changes: Iterable[Mapping[str, Any]]) -> list[str]:
        """The same for many, maps with `id`: per job its state, `NOTFOUND` or `CONFLICT`."""
        body = asks.pack({"jobs": [dict(change) for change in changes]})
        return self._do(Ask("POST", "/jobs/change", asks.answers, body))

    def depend(
        self,
        job_id: str,
        *,
        add: Sequence[str] | None = None,
        remove: Sequence[str] | None = None,
        if_failed: str | None = None,
    ) -> str:
        """Change what a job that was never started waits for; its state. Raises NotFound, Conflict."""
        more = None if add is None else list(add)
        less = None if remove is None else list(remove)
        return self._do(asks.job("POST", job_id, "depends", asks.status, add=more, remove=less, if_failed=if_failed))

    def kick(self, job_id: str, *, delay: float | None = None) -> str:
        """Take a running job from its worker; it waits again. Its state then. Raises NotFound, Conflict."""
        return self._do(asks.job("POST", job_id, "kick", asks.status, delay=delay))

    def kick_many(self, ids: Iterable[str], *, delay: float | None = None) -> list[str]:
        """The same for up to 1000: per job its state, `NOTFOUND` or `CONFLICT`."""
        return self._do(asks.each("kick", ids, delay=delay))

    def retry(self, job_id: str) -> str:
        """Have a job that failed, was cancelled or waits for a retry run again. Raises NotFound, Conflict."""
        return self._do(asks.job("POST", job_id, "retry", asks.status))

    def retry_many(self, ids: Iterable[str]) -> list[str]:
        """The same for up to 1000: per job `queued`, `NOTFOUND` or `CONFLICT`."""
        return self._do(asks.each("retry", ids))

    def retry_where(self, **where: Any) -> int:
        """The same for all that match: `queue`, `status`, `name`, `tag`, `group`, `from_ms`, … (section 14).

        Returns how many.
        """
        return self._steps(asks.steps("retry", where))

    def discard(self, job_id: str) -> str:
        """Remove all there is of a job that does not run; the state it had. Raises NotFound, Conflict."""
        return self._do(asks.job("DELETE", job_id, "record", asks.status))

    def discard_many(self, ids: Iterable[str]) -> list[str]:
        """The same for up to 1000: per job the state it had, `NOTFOUND` or `CONFLICT`."""
        return self._do(asks.each("discard", ids))

    def discard_where(self, **where: Any) -> int:
        """The same for all that match; how many. Conditions as for `retry_where`."""
        return self._steps(asks.steps("discard", where))

    def cancel_many(self, ids: Iterable[str], *, force: bool | None = None, dependents: str | None = None) -> list[str]:
        """Cancel up to 1000 jobs: per job the state it was in, `NOTFOUND` or `CONFLICT`."""
        return self._do(asks.each("cancel", ids, force=force, dependents=dependents))

    def cancel_where(self, *, force: bool | None = None, **where: Any) -> int:
        """Cancel all that match; how many. Conditions as for `retry_where`."""
        return self._steps(asks.steps("cancel", where, force=force))

    # -- finding them -----------------------------------------------------------------------------

    def jobs(self, *, newest: bool = False, brief: bool = False, **where: Any) -> Iterator[Document]:
        """All jobs that match, page by page. Conditions as for `retry_where`; `status` may be a list.

        `brief`: without argument, result and error. `newest`: the order within a state (a tag, a group) is
        turned round.
        """
        return self._pages(asks.search({"newest": newest, "brief": brief, **where}))

    def failures(self) -> list[Document]:
        """The jobs that failed for good by group: `group, count, first_ms, last_ms, id, message` of each."""
        return list(self._pages(asks.listing("failures")))

    def tags(self, top: int | None = None) -> list[tuple[str, int]]:
        """All tags in order, with how many jobs have each; or the `top` most used."""
        return [(one["tag"], one["count"]) for one in self._pages(asks.tags(top))]

    # -- following them ---------------------------------------------------------------------------

    def track(self, job_id: str, *, on: bool = True) -> str:
        """Have each transition of a job published in Redis (section 15), or no more. Returns its state."""
        return self._do(asks.job("POST", job_id, "track", asks.status, on=on))

    def job_events(self, job_id: str) -> Iterator[Event]:
        """The job's state now, then each transition, until it has ended. Raises NotFound, Unavailable."""
        return self._events(asks.place("job", job_id, "events"), None)

    def events(self, *, after: str | None = None) -> Iterator[Event]:
        """Every transition of every job from now on, or behind the event `after`, as far as they are kept.

        Goes on until it is closed. Raises Conflict when the setting `events_max` is 0, and Unavailable when
        the connection is lost: then go on after the last event's `id`.
        """
        return self._events("/events", after)
