"""What the library asks for, and the way straight to the scripts in Redis. `transport_http`: by a master."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from jqmaster.connection.coalesce import Coalescer
from jqmaster.connection.together import Together
from jqmaster.engine import durable as durables
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine, connect, pack
from jqmaster.engine.replies import Document, Enqueued, Job
from jqmaster.engine.scripts import Form
from jqmaster.errors import NotFound

Prepared = tuple[dict[str, Any], bytes]  # a job's spec, its argument packed

PAGE = 100


class Transport(Protocol):
    """Calls on the portal's loop. All raise the classes of `jqmaster.errors`; what is packed stays bytes."""

    async def enqueue(self, jobs: Sequence[Prepared], request: str | None) -> list[Enqueued]:
        """Up to 1000 jobs: all or none."""

    async def documents(self, ids: Sequence[str]) -> list[Document | None]:
        """Up to 1000 jobs' documents; `argument`, `result` and `error` in them are bytes."""

    async def ended(self, job_id: str, timeout_s: float) -> str:
        """The state once it is done, error or cancelled, or after so long. Raises NotFound."""

    async def result(self, job_id: str) -> bytes | None:
        """The result of a job that is done, if it was kept. Raises NotFound."""

    async def cancel(self, ids: Sequence[str], force: bool) -> list[str]:
        """Per job the state it was in, NOTFOUND or CONFLICT."""

    async def retry(self, ids: Sequence[str]) -> list[str]:
        """Per job `queued`, NOTFOUND or CONFLICT."""

    async def change(self, changes: Sequence[Prepared]) -> list[str]:
        """Per job its state, NOTFOUND or CONFLICT. An empty argument leaves the job's own."""

    async def explain(self, job_id: str) -> Document: ...

    async def history(self, job_id: str) -> Document: ...

    async def schedule(self, schedule_id: str, job: Prepared, when: Mapping[str, Any]) -> Document:
        """Creates or replaces a recurring job."""

    async def schedules(self, schedule_id: str) -> Document | None:
        """A schedule as it stands."""

    async def unschedule(self, schedule_id: str) -> None: ...

    async def constrain(self, constraint_id: str, match: Mapping[str, Any], limits: Mapping[str, Any]) -> Document: ...

    async def unconstrain(self, constraint_id: str) -> None: ...

    async def constraints(self, cursor: str) -> tuple[str, list[Document]]:
        """A page of the constraints."""

    async def usage(self, constraint_id: str, cursor: str) -> tuple[str, list[Document]]:
        """A page of the keys of a constraint that are in use."""

    async def hold(self, constraint_id: str, seconds: float, by: Any) -> int:
        """The moment until which the key is closed; `by` may be ABSENT."""

    async def queue(self, name: str, changes: Mapping[str, Any]) -> Document:
        """A queue's document after `changes`, which may be none."""

    async def pick(self, worker: str, queues: Sequence[str], count: int) -> tuple[bool, list[Job]]:
        """Jobs to run now, and whether to ask again at once. Waits for nothing."""

    async def waiting(self, state: str, cursor: str) -> tuple[str, list[Document]]:
        """A page of the jobs in a state, without arguments."""

    async def close(self) -> None:
        """Close the connections; bounded."""


class RedisTransport:
    """By the scripts, with no master in between."""

    def __init__(self, url: str, namespace: str, form: Form = "auto", *, recreate: bool = False) -> None:
        self._redis = connect(url)
        self._engine = Engine(self._redis, namespace, form=form, recreate=recreate)
        self._enqueuing = Coalescer(self._engine)
        self._results: Together[str, list[Any]] = Together(self._ask_results)
        self._ended = Ended(self._engine, self._redis)

    async def enqueue(self, jobs: Sequence[Prepared], request: str | None) -> list[Enqueued]:
        asked = durables.taken([spec for spec, _ in jobs])
        if asked is not None:
            return await self._engine.enqueue(jobs, request=request, durable=asked)
        if len(jobs) == 1 and request is None and _stands_alone(jobs[0][0]):
            # Many tasks that enqueue one job each share calls.
            spec, argument = jobs[0]
            job_id, created = await self._enqueuing.enqueue(pack(spec, "jobs[0]"), argument)
            return [Enqueued(job_id.decode(), bool(created))]
        return await self._engine.enqueue(jobs, request=request)

    async def documents(self, ids: Sequence[str]) -> list[Document | None]:
        return await self._engine.get(*ids)

    async def ended(self, job_id: str, timeout_s: float) -> str:
        state = await self._ended.wait(job_id.encode(), timeout_s)
        if state is None:
            raise NotFound(f"no such job: {job_id}")
        return state

    async def result(self, job_id: str) -> bytes | None:
        reply = await self._results.get(job_id)
        return reply[1] if len(reply) > 1 else None

    async def cancel(self, ids: Sequence[str], force: bool) -> list[str]:
        return await self._engine.cancel(ids, force=force)

    async def retry(self, ids: Sequence[str]) -> list[str]:
        return await self._engine.retry(ids)

    async def change(self, changes: Sequence[Prepared]) -> list[str]:
        return await self._engine.change(changes)

    async def explain(self, job_id: str) -> Document:
        return await self._engine.explain(job_id)

    async def history(self, job_id: str) -> Document:
        return await self._engine.history(job_id)

    async def schedule(self, schedule_id: str, job: Prepared, when: Mapping[str, Any]) -> Document:
        return await self._engine.schedule(schedule_id, *job, **when)

    async def schedules(self, schedule_id: str) -> Document | None:
        page = await self._engine.schedules([schedule_id])
        return page.documents[0] if page.documents else None

    async def unschedule(self, schedule_id: str) -> None:
        await self._engine.unschedule(schedule_id)

    async def constrain(self, constraint_id: str, match: Mapping[str, Any], limits: Mapping[str, Any]) -> Document:
        return await self._engine.constrain(constraint_id, match, **limits)

    async def unconstrain(self, constraint_id: str) -> None:
        await self._engine.unconstrain(constraint_id)

    async def constraints(self, cursor: str) -> tuple[str, list[Document]]:
        page = await self._engine.constraints(cursor=cursor or None, count=PAGE)
        return page.cursor, page.documents

    async def usage(self, constraint_id: str, cursor: str) -> tuple[str, list[Document]]:
        page = await self._engine.usage(constraint_id, cursor=cursor or None, count=PAGE)
        return page.cursor, page.documents

    async def hold(self, constraint_id: str, seconds: float, by: Any) -> int:
        return await self._engine.hold(constraint_id, seconds, by=by)

    async def queue(self, name: str, changes: Mapping[str, Any]) -> Document:
        return await self._engine.queue(name, **changes)

    async def pick(self, worker: str, queues: Sequence[str], count: int) -> tuple[bool, list[Job]]:
        picked = await self._engine.pick(worker, list(queues), count)
        return picked.next_ms == 0, picked.jobs

    async def waiting(self, state: str, cursor: str) -> tuple[str, list[Document]]:
        page = await self._engine.jobs({"status": state}, brief=True, cursor=cursor or None, count=PAGE)
        return page.cursor, page.documents

    async def _ask_results(self, ids: Sequence[str]) -> list[Any]:
        return await self._engine.pipeline([("result", [job_id]) for job_id in ids])

    async def close(self) -> None:
        try:
            await self._ended.stop()
        finally:
            await self._redis.aclose()


def _stands_alone(spec: Mapping[str, Any]) -> bool:
    """Whether it can go with strangers: an index in `depends` would point among them."""
    return all(isinstance(one, str) for one in spec.get("depends", ()))
