"""Jobs that run where they are enqueued, at once, without a server: for tests of the code around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jqmaster.client.registry import Registry
from jqmaster.client.task import Call
from jqmaster.client.transport import Transport
from jqmaster.connection import plainly
from jqmaster.engine.options import NewJob
from jqmaster.engine.replies import Document, Enqueued, Result, job_of
from jqmaster.errors import NotFound, Unavailable
from jqmaster.worker.ending import FollowUp, Move, failure_of
from jqmaster.worker.notes import Notebook, outside_of_loops


class Memory(Transport):
    """Transport and engine, as far as there are any without a server: runs calls and remembers how they ended.
    `raises`: what they raise comes out of `enqueue`."""

    def __init__(self, jq: Registry, *, raises: bool) -> None:
        self.engine: Any = self
        self._jq = jq
        self._raises = raises
        self._jobs: dict[str, Document] = {}

    def __getattr__(self, name: str) -> Any:
        raise Unavailable(f"{name}: jobs run where they are enqueued, there is no server to ask")

    async def enqueue(self, calls: Sequence[Call[Any]], jobs: Sequence[NewJob], _request: Any) -> list[Enqueued]:
        ids: list[str] = []
        for call, (spec, _) in zip(calls, jobs, strict=True):
            depends = [ids[job] if isinstance(job, int) else job for job in spec.get("depends", ())]
            ids.append(await self._run(call, spec | ({"depends": depends} if depends else {})))
        return [Enqueued(job_id, True) for job_id in ids]

    async def get(self, ids: Sequence[str]) -> list[Document | None]:
        return [dict(self._jobs[job_id]) if job_id in self._jobs else None for job_id in ids]

    async def ended(self, job_id: str, _timeout_s: float) -> str:
        if job_id not in self._jobs:
            raise NotFound(f"no such job: {job_id}")
        return str(self._jobs[job_id]["status"])

    async def result(self, job_id: str) -> Result:
        return Result(self._jobs[job_id]["status"], self._jobs[job_id].get("result"))

    async def _run(self, call: Call[Any], spec: dict[str, Any]) -> str:
        """Its id, once it has ended. For plain code plain functions run in its thread, others in a loop of their
        own."""
        task = call.task if call.task.function is not None else self._jq.tasks.get(call.task.name)
        if task is None:
            raise LookupError(f"no function here for jobs named {call.task.name}")
        job_id = f"direct-{len(self._jobs) + 1}"
        document = {"queue": spec["name"], "priority": 0, "timeout": 30.0, "attempt": 1, "retry_count": 0, "token": ""}
        document = self._jobs[job_id] = document | {**spec, "id": job_id, "argument": call.argument}
        if spec.get("if_failed") == "only":  # it is for when those before it fail, and these raise
            document["status"] = "skipped"
            return job_id
        job = job_of(document, call.argument)
        try:
            with Notebook(lambda: None).opened(job), plainly.outside():
                needs_loop = plainly.is_plain() and (task.is_async or self._jq.middlewares)
                result = await task.attempt(job) if not needs_loop else outside_of_loops(task.attempt(job))
            if isinstance(result, FollowUp | Move):
                raise Unavailable(f"{task.name} says what follows: there is no server to ask, use jq.burst()")
            document |= {"status": "done", "result": self._jq.serializer.dumps(result)}
        except Exception as error:
            if self._raises:
                raise
            failure = failure_of(error)
            document |= {"status": "error", "reason": "other", "error": failure.error}
            document["message"] = failure.spec["message"]
        return job_id
