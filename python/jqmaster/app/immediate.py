"""Jobs that run where they are enqueued, at once, without a server: for tests of the code around them."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jqmaster.app.link import Link
from jqmaster.app.task import Call
from jqmaster.app.transport import Prepared
from jqmaster.app.worker import Runner
from jqmaster.engine.options import NewJob
from jqmaster.engine.replies import Document, Enqueued, Job, job_of
from jqmaster.errors import NotFound
from jqmaster.worker.ending import FollowUp, JobFailed, Move, new_job
from jqmaster.worker.notes import current_job

if TYPE_CHECKING:
    from jqmaster.app.app import JQ

T = TypeVar("T")
TIMEOUT_S = 30.0


class MemoryLink(Link):
    """Runs calls and remembers how they ended. `raises`: what they raise comes out of `enqueue`."""

    def __init__(self, jq: JQ, *, raises: bool) -> None:
        self._memory = Memory()
        self._jq = jq
        self._raises = raises
        super().__init__(lambda: self._memory, jq.serializer)

    def enqueue(self, _calls: Sequence[Call[Any]], prepared: Sequence[Prepared], request: str | None) -> list[Enqueued]:
        return _by_hand(self._run_all(_calls, prepared, True))

    async def aenqueue(
        self, _calls: Sequence[Call[Any]], prepared: Sequence[Prepared], request: str | None
    ) -> list[Enqueued]:
        return await self._run_all(_calls, prepared, False)

    async def _run_all(self, calls: Sequence[Call[Any]], prepared: Sequence[Prepared], by_hand: bool) -> list[Enqueued]:
        pairs = zip(calls, prepared, strict=True)
        return [await self._run_one(call, spec, by_hand) for call, (spec, _) in pairs]

    async def _run_one(self, call: Call[Any], spec: Mapping[str, Any], by_hand: bool) -> Enqueued:
        """`by_hand`: the caller is plain code. Plain functions run right there, and others in a loop."""
        document = self._memory.add(spec, call.argument)
        # What it depends on are calls here, which have no ids.
        told = {name: value for name, value in document.items() if name != "depends"}
        job = job_of({**told, "token": ""}, call.argument)
        task = call.task if call.task.function is not None else self._jq.tasks.get(call.task.name)
        if task is None:
            raise LookupError(f"no function here for jobs named {call.task.name}")
        before = current_job.set(job)
        try:
            work = Runner(self._jq, 1, in_place=True).call(task, job)
            needs_loop = task.is_async or self._jq.middlewares
            result = outside_of_loops(work) if by_hand and needs_loop else await work
            result = await self._followed(result, by_hand)
            document["result"] = self._jq.serializer.dumps(result)
            document["status"] = "done"
        except Exception as error:
            cause = error.__cause__ if isinstance(error, JobFailed) and error.__cause__ else error
            if self._raises:
                raise cause from None
            value = error.error if isinstance(error, JobFailed) else None
            document |= {"status": "error", "reason": "other", "message": str(error)}
            document["error"] = self._jq.serializer.dumps(value)
        finally:
            current_job.reset(before)
        return Enqueued(document["id"], True)

    async def _followed(self, result: Any, by_hand: bool) -> Any:
        """What a result says is to follow runs at once, too; the result itself."""
        follow: Sequence[NewJob | Call[Any]] = ()
        if isinstance(result, FollowUp):
            follow = [one if isinstance(one, Call) else new_job(one, ()) for one in result.jobs]
            result = result.result
        if isinstance(result, Move):
            packed = self._jq.serializer.dumps(result.argument)
            moved: Call[Any] = Call(self._jq.task(result.name or current_job.get().name), packed, {})
            handle = await self._run_one(moved, moved.spec(), by_hand)
            result = self._jq.serializer.loads(self._memory.find(handle.id)["result"])
        for one in follow:
            call = one if isinstance(one, Call) else Call(self._jq.task(one.spec["name"]), one.argument, {})
            await self._run_one(call, call.spec(), by_hand)
        return result


class Memory:
    """A `Transport` to the jobs that ran here."""

    def __init__(self) -> None:
        self._jobs: dict[str, Document] = {}
        self._numbers = itertools.count(1)

    def add(self, spec: Mapping[str, Any], argument: bytes) -> Document:
        """A job that is about to run."""
        job_id = f"direct-{next(self._numbers)}"
        defaults = {"queue": spec["name"], "priority": 0, "timeout": 30.0, "attempt": 1, "retry_count": 0}
        document = {
            **defaults, **spec, "id": job_id, "argument": argument, "status": "running",
            "created_ms": round(time.time() * 1000),
        }  # fmt: skip
        self._jobs[job_id] = document
        return document

    def find(self, job_id: str) -> Document:
        """Raises NotFound."""
        if job_id not in self._jobs:
            raise NotFound(f"no such job: {job_id}")
        return self._jobs[job_id]

    async def enqueue(self, jobs: Sequence[Prepared], request: str | None) -> list[Enqueued]:
        raise NotImplementedError

    async def documents(self, ids: Sequence[str]) -> list[Document | None]:
        return [dict(self._jobs[job_id]) if job_id in self._jobs else None for job_id in ids]

    async def ended(self, job_id: str, timeout_s: float) -> str:
        return str(self.find(job_id)["status"])

    async def result(self, job_id: str) -> bytes | None:
        packed: bytes | None = self.find(job_id).get("result")
        return packed

    async def cancel(self, ids: Sequence[str], force: bool) -> list[str]:
        return [self._jobs[job_id]["status"] if job_id in self._jobs else "NOTFOUND" for job_id in ids]

    async def retry(self, ids: Sequence[str]) -> list[str]:
        return ["CONFLICT" if job_id in self._jobs else "NOTFOUND" for job_id in ids]

    async def change(self, changes: Sequence[Prepared]) -> list[str]:
        return ["CONFLICT" if spec["id"] in self._jobs else "NOTFOUND" for spec, _ in changes]

    async def explain(self, job_id: str) -> Document:
        found = self.find(job_id)
        return {name: found[name] for name in ("id", "status", "queue", "name")}

    async def history(self, job_id: str) -> Document:
        found = self.find(job_id)
        event = "failed" if found["status"] == "error" else found["status"]
        return {"id": job_id, "events": [{"event": event, "time_ms": found["created_ms"]}], "forgotten": 0}

    async def schedule(self, schedule_id: str, job: Prepared, when: Mapping[str, Any]) -> Document:
        return {"id": schedule_id, **when}

    async def schedules(self, schedule_id: str) -> Document | None:
        return None

    async def unschedule(self, schedule_id: str) -> None:
        return None

    async def constrain(self, constraint_id: str, match: Mapping[str, Any], limits: Mapping[str, Any]) -> Document:
        return {"id": constraint_id, "match": match, **limits}

    async def unconstrain(self, constraint_id: str) -> None:
        return None

    async def constraints(self, cursor: str) -> tuple[str, list[Document]]:
        return "", []

    async def usage(self, constraint_id: str, cursor: str) -> tuple[str, list[Document]]:
        return "", []

    async def hold(self, constraint_id: str, seconds: float, by: Any) -> int:
        return round((time.time() + seconds) * 1000)

    async def queue(self, name: str, changes: Mapping[str, Any]) -> Document:
        return {"name": name, **changes}

    async def pick(self, worker: str, queues: Sequence[str], count: int) -> tuple[bool, list[Job]]:
        return False, []

    async def waiting(self, state: str, cursor: str) -> tuple[str, list[Document]]:
        return "", []

    async def close(self) -> None:
        return None


def outside_of_loops(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end from plain code: here if no loop runs in this thread, else in another thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    return _in_a_thread(work)


def _by_hand(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`, which waits for nothing, without a loop."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    work.close()
    raise AssertionError("it waits for something")


def _in_a_thread(work: Coroutine[Any, Any, T]) -> T:
    found: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(asyncio.run(work))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return found[0]
