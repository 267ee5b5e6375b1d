"""Jobs that run where they are enqueued, at once, without a server: for tests of the code around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack

from jqmaster.client.link import Transport
from jqmaster.client.registry import Registry
from jqmaster.connection import plainly
from jqmaster.engine.calling import pack
from jqmaster.engine.options import NewJob
from jqmaster.engine.replies import Document, Enqueued, Result, job_of
from jqmaster.errors import NotFound, Unavailable
from jqmaster.worker.ending import FollowUp, Move
from jqmaster.worker.notes import Notebook, outside_of_loops


class Memory(Transport):
    """Transport and engine, as far as there are any without a server: runs jobs and remembers their results."""

    def __init__(self, jq: Registry) -> None:
        self.engine: Any = self
        self._jq = jq
        self._jobs: dict[str, Document] = {}

    def __getattr__(self, name: str) -> Any:
        raise Unavailable(f"{name}: jobs run where they are enqueued, there is no server to ask")

    async def enqueue(self, jobs: Sequence[NewJob], request: str | None) -> list[Enqueued]:
        ids: list[str] = []
        for spec, argument in jobs:
            depends = [ids[job] if isinstance(job, int) else job for job in spec.get("depends", ())]
            ids.append(await self._run(msgpack.unpackb(pack(spec | {"depends": depends})), argument))
        return [Enqueued(job_id, True) for job_id in ids]

    async def get(self, ids: Sequence[str]) -> list[Document | None]:
        return [dict(self._jobs[job_id]) if job_id in self._jobs else None for job_id in ids]

    async def ended(self, job_id: str, timeout_s: float) -> str:
        if job_id not in self._jobs:
            raise NotFound(f"no such job: {job_id}")
        return str(self._jobs[job_id]["status"])

    async def result(self, job_id: str) -> Result:
        return Result(self._jobs[job_id]["status"], self._jobs[job_id]["result"])

    async def _run(self, spec: dict[str, Any], argument: bytes) -> str:
        """Its id, once it has ended. For plain code plain functions run in its thread, others in a loop of their
        own."""
        task, job_id = self._jq.tasks.get(spec["name"]), f"direct-{len(self._jobs) + 1}"
        if task is None:
            raise LookupError(f"no function here for jobs named {spec['name']}")
        document = {"queue": task.queue, "priority": 0, "timeout": 30.0, "attempt": 1, "retry_count": 0, "token": ""}
        document |= {**spec, "id": job_id, "argument": argument, "status": "skipped", "result": None}
        self._jobs[job_id] = document
        if spec.get("if_failed") == "only":  # it is for when those before it fail, and these raise
            return job_id
        job = job_of(document, argument)
        needs_loop = plainly.is_plain() and (task.is_async or self._jq.middlewares)
        with Notebook(lambda: None).opened(job), plainly.outside():
            result = await task.attempt(job) if not needs_loop else outside_of_loops(task.attempt(job))
        if isinstance(result, FollowUp | Move):
            raise Unavailable(f"{task.name} says what follows: there is no server to ask, use jq.burst()")
        document |= {"status": "done", "result": self._jq.serializer.dumps(result)}
        return job_id
