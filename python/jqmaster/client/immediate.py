"""Jobs that run where they are enqueued, at once, without a server: for tests of the code around them."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from jqmaster.client.calling import Serializer
from jqmaster.client.link import Link
from jqmaster.client.registry import Registry
from jqmaster.client.task import Call, Task
from jqmaster.client.transport import News, Prepared
from jqmaster.client.worker import Runner
from jqmaster.engine.calling import contract_of, given, taken
from jqmaster.engine.engine import Operations
from jqmaster.engine.options import seconds
from jqmaster.engine.replies import Document, Enqueued, Event, Note, Page, job_of
from jqmaster.errors import Conflict, Invalid, NotFound, Unavailable
from jqmaster.worker.ending import FollowUp, Move, ResumeAfter, new_job
from jqmaster.worker.failure import failure_of
from jqmaster.worker.notes import Notebook, current_job, in_a_loop

T = TypeVar("T")

_is_plain: contextvars.ContextVar[bool] = contextvars.ContextVar("is_plain", default=False)


class MemoryLink(Link):
    """Runs calls and remembers how they ended. `raises`: what they raise comes out of `enqueue`."""

    waits = False

    def __init__(self, jq: Registry, *, raises: bool) -> None:
        self._memory = Memory(jq, raises)
        super().__init__(lambda: self._memory, jq.serializer)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        before = _is_plain.set(True)
        try:
            return _by_hand(work)
        finally:
            _is_plain.reset(before)

    async def open(self) -> Memory:
        return self._memory


class Memory:
    """A `Transport` to the jobs that ran here."""

    def __init__(self, jq: Registry, raises: bool) -> None:
        self.engine = MemoryEngine()
        self._jq = jq
        self._raises = raises

    async def enqueue(
        self, calls: Sequence[Call[Any]], jobs: Sequence[Prepared], request: str | None
    ) -> list[Enqueued]:
        done: list[Enqueued] = []
        for call, (spec, _) in zip(calls, jobs, strict=True):
            done.append(await self._run_one(call, _with_ids(spec, done)))
        return done

    async def ended(self, job_id: str, timeout_s: float) -> str:
        return str(self.engine.find(job_id)["status"])

    async def result(self, job_id: str) -> bytes | None:
        packed: bytes | None = self.engine.find(job_id).get("result")
        return packed

    def events(self, job_id: str | None, after: str | None = None) -> AsyncIterator[Event]:
        raise _no_server("events")

    def news(self, job_id: str) -> AbstractAsyncContextManager[News]:
        raise _no_server("events")

    def export(self) -> AsyncIterator[bytes]:
        raise _no_server("export")

    async def import_records(self, records: Iterable[bytes], namespace: str) -> int:
        raise _no_server("import")

    async def close(self) -> None:
        return None

    async def _run_one(self, call: Call[Any], spec: Mapping[str, Any]) -> Enqueued:
        """For plain code plain functions run right there, and others in a loop."""
        by_hand = _is_plain.get()
        document = self.engine.add(spec, call.argument)
        policy = spec.get("if_failed")
        others = await self.engine.get(*spec.get("depends", ())) if policy in ("fail", "only") else []
        failed = [other for other in others if other and other["status"] == "error"]
        if policy == "only" and not failed:
            document["status"] = "skipped"
            return Enqueued(document["id"], True)
        if policy == "fail" and failed:
            message = f"job {failed[0]['id']}, on which it depends, failed"
            document |= {"status": "error", "reason": "dependency", "message": message}
            return Enqueued(document["id"], True)
        task = call.task if call.task.function is not None else self._jq.tasks.get(call.task.name)
        if task is None:
            raise LookupError(f"no function here for jobs named {call.task.name}")
        plain_before = _is_plain.set(False)
        try:
            result = await self._attempted(task, document, by_hand)
            document["result"] = self._jq.serializer.dumps(result)
            document["status"] = "done"
        except Exception as error:
            if self._raises:
                raise
            failure = failure_of(error)
            document |= {"status": "error", "reason": "other", "message": failure.message, "error": failure.error}
        finally:
            _is_plain.reset(plain_before)
        return Enqueued(document["id"], True)

    async def _attempted(self, task: Task[..., Any], document: Document, by_hand: bool) -> Any:
        """The result of a job, whose function is called again when it waited for others."""
        while True:
            job = job_of({**document, "token": ""}, document["argument"])
            with _Notebook(document, self._jq.serializer).opened(job):
                work = Runner(self._jq, 1, 1, in_place=True).call(task, job)
                needs_loop = task.is_async or self._jq.middlewares
                try:
                    result = outside_of_loops(work) if by_hand and needs_loop else await work
                    _is_plain.set(by_hand)
                    return await self._followed(task.sent(result))
                except ResumeAfter as said:
                    new, depends = said.parts()
                    _is_plain.set(by_hand)
                    made = await self._follow(new)
                    document["depends"] = [made[one].id if isinstance(one, int) else one for one in depends]
                    document["attempt"] += 1
                    document["argument"] = said.checkpoint or document["argument"]
                    _is_plain.set(False)

    async def _follow(self, jobs: Sequence[Any]) -> list[Enqueued]:
        news = [new_job(one, jobs) for one in jobs]
        calls = [
            one if isinstance(one, Call) else Call(self._jq.task(new.spec["name"]), new.argument, {})
            for one, new in zip(jobs, news, strict=True)
        ]
        return await self.enqueue(calls, news, None)

    async def _followed(self, result: Any) -> Any:
        """What a result says is to follow runs at once, too; the result itself."""
        follow: Sequence[Any] = ()
        if isinstance(result, FollowUp):
            follow, result = result.jobs, result.result
        if isinstance(result, Move):
            packed = self._jq.serializer.dumps(result.argument)
            moved: Call[Any] = Call(self._jq.task(result.name or current_job.get().name), packed, {})
            handle = await self._run_one(moved, moved.spec())
            result = self._jq.serializer.loads(self.engine.find(handle.id)["result"])
        await self._follow(follow)
        return result


class _Notebook(Notebook):
    """What a job says goes into its document at once."""

    def __init__(self, document: Document, serializer: Serializer) -> None:
        super().__init__(lambda: None)
        self.dumps = serializer.dumps
        self._document = document

    def write(self, note: Note) -> None:
        said = given(progress=note.progress, progress_message=note.message, argument=note.argument)
        self._document.update(said)


class MemoryEngine(Operations):
    """The operations that make sense with jobs that have run already."""

    def __init__(self) -> None:
        self._jobs: dict[str, Document] = {}
        self._numbers = itertools.count(1)

    def add(self, spec: Mapping[str, Any], argument: bytes) -> Document:
        """A job that is about to run."""
        job_id = f"direct-{next(self._numbers)}"
        defaults = {"queue": spec["name"], "priority": 0, "timeout": 30.0, "attempt": 1, "retry_count": 0}
        document = {
            **defaults,
            **spec,
            "id": job_id,
            "argument": argument,
            "status": "running",
            "created_ms": round(time.time() * 1000),
        }
        self._jobs[job_id] = document
        return document

    def find(self, job_id: str) -> Document:
        """Raises NotFound."""
        if job_id not in self._jobs:
            raise NotFound(f"no such job: {job_id}")
        return self._jobs[job_id]

    async def call(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        given = taken(contract_of(operation), arguments, named)
        ids = given.get("ids", ())
        match operation:
            case "get":
                return [dict(self._jobs[job_id]) if job_id in self._jobs else None for job_id in ids]
            case "cancel" if given.get("atomic") and ids:
                raise Conflict(f"it has ended ({self.find(ids[0])['status']}): {ids[0]}", "ids[0]")
            case "cancel":
                return [self._jobs[job_id]["status"] if job_id in self._jobs else "NOTFOUND" for job_id in ids]
            case "retry":
                return ["CONFLICT" if job_id in self._jobs else "NOTFOUND" for job_id in ids]
            case "change":
                return ["CONFLICT" if spec["id"] in self._jobs else "NOTFOUND" for spec, _ in given["jobs"]]
            case "explain":
                found = self.find(given["id"])
                return {name: found[name] for name in ("id", "status", "queue", "name")}
            case "history":
                found = self.find(given["id"])
                event = "failed" if found["status"] == "error" else found["status"]
                events = [{"event": event, "time_ms": found["created_ms"]}]
                return {"id": found["id"], "events": events, "forgotten": 0}
            case "hold":
                return round((time.time() + seconds(given["seconds"])) * 1000)
            case "schedules" | "constraints" | "usage":
                return Page("", [])
            case "unschedule" | "unconstrain":
                return None
            case "free":
                raise NotFound("no job has the key: here each ends before the next is enqueued")
            case "schedule" | "queue" | "constrain":
                return given
        raise _no_server(operation)


def _with_ids(spec: Mapping[str, Any], done: Sequence[Enqueued]) -> dict[str, Any]:
    """`spec` with ids instead of indexes among those that ran before."""
    depends = spec.get("depends", ())
    if any(isinstance(one, int) and one >= len(done) for one in depends):
        raise Invalid("expected jobs further ahead", "depends")
    ids = [done[one].id if isinstance(one, int) else one for one in depends]
    return {**spec, **({"depends": ids} if ids else {})}


def _no_server(operation: str) -> Unavailable:
    return Unavailable(f"{operation}: jobs run where they are enqueued, there is no server to ask")


def outside_of_loops(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end from plain code: here if no loop runs in this thread, else in another thread."""
    if not in_a_loop():
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, work).result()


def _by_hand(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`, which waits for nothing, without a loop."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    work.close()
    raise AssertionError("it waits for something")
