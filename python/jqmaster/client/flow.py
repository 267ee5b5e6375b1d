"""Fan out and in: jobs that are enqueued together, all or none, and looked at as one. A thin layer over `depends`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Generator, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from jqmaster.client import handle as handles
from jqmaster.client.handle import Handle, JobCancelled, JobError, batched
from jqmaster.client.link import Link, plain
from jqmaster.client.task import Call, calls_of
from jqmaster.engine.ended import ENDED
from jqmaster.engine.options import JobOptions
from jqmaster.engine.replies import Document

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Step = Call[Any] | Iterable[Call[Any]]

MOST_JOBS = 10_050  # of a flow, without its callbacks
MOST_LINKS = 100_000  # what they depend on, all together


class Flow(Generic[R_co]):
    """What `chain`, `group` and `chord` have enqueued. `await flow` is `await flow.aresult()`.

    `jobs`: handles of its jobs, in order; `callbacks`: of those for when it is done, or one failed, which count
    for neither its result nor its progress. Every method has an async twin with an `a` before its name.
    """

    __slots__ = ("_ends", "_is_list", "callbacks", "jobs", "link")

    def __init__(
        self, link: Link, jobs: Sequence[Handle[Any]], callbacks: Sequence[Handle[Any]], ends: int, is_list: bool
    ) -> None:
        self.link = link
        self.jobs = list(jobs)
        self.callbacks = list(callbacks)
        self._ends = self.jobs[-ends:]
        self._is_list = is_list

    def __repr__(self) -> str:
        return f"<flow of {len(self.jobs)} jobs>"

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.aresult().__await__()

    async def aresult(self, timeout: float | None = None) -> R_co:
        """The result of its last job, or of a group the results of all, once they have it; waits at most `timeout`
        seconds.

        Raises as `Handle.result`. When one of the jobs before failed or was cancelled, that is the one it tells.
        """
        try:
            results: Any = await handles.gather(self._ends, timeout, return_errors=False)
        except JobError as error:
            if error.reason != "dependency":
                raise
            raise await self._cause() or error from None
        return results if self._is_list else results[0]  # type: ignore[no-any-return]

    async def aprogress(self) -> Counter[str]:
        """How many of its jobs are in which state: `flow.progress()["done"]`. One whose record is gone is done."""
        return Counter(document["status"] if document else "done" for document in await self._documents())

    async def acancel(self, *, force: bool = False) -> int:
        """Cancel all that has not ended, callbacks included; how many jobs that were. `force` as of `Handle.cancel`.
        Of more than 1000 jobs in steps, those behind others first."""
        ids = [job.id for job in reversed((*self.jobs, *self.callbacks))]
        engine = (await self.link.open()).engine
        states = await batched(partial(engine.cancel, force=force or None), ids)
        return sum(state not in ENDED and not state.isupper() for state in states)

    result, progress, cancel = plain(aresult), plain(aprogress), plain(acancel)

    async def _documents(self) -> list[Document | None]:
        engine = (await self.link.open()).engine
        return await batched(engine.get, [job.id for job in self.jobs])

    async def _cause(self) -> Exception | None:
        """What the first job has to say that went wrong by itself."""
        for document in await self._documents():
            if document and document["status"] == "cancelled":
                return JobCancelled(document["id"])
            if document and document["status"] == "error" and document.get("reason") != "dependency":
                return handles.failure(handles.unpacked(document, self.link.serializer))
        return None


class FlowMethods:
    """What a `JQ` has of flows."""

    link: Link
    aenqueue_many: Any

    # Not coroutine functions: the calls are made where they come from, not in the loop.
    def achain(
        self,
        *steps: *tuple[*tuple[Step, ...], Call[R]],
        failed: Call[Any] | None = None,
        request: str | None = None,
    ) -> Coroutine[Any, Any, Flow[R]]:
        """Enqueue calls of which each depends on the one before; at most 10,050. A step may be a list of calls, which
        run side by side, up to 10,000, or empty; the last is one call, and its result that of the flow.

        A job finds the results of the step before by `dependency_results`. When one fails or is cancelled, those
        behind it end as errors, unless their `if_failed` says otherwise. `failed`: a call for when all have ended,
        and not all are done. `request` as of `enqueue_many`. Up to 1000 jobs, callbacks included, are enqueued all or
        none, more in batches of which the last has the end: a repeat with the same `request` completes what was
        broken off. Raises ValueError for more jobs, or where they depend on more than 100,000 all together.
        """
        return self._enqueued(steps, None, failed, request, is_list=False)

    def achord(
        self,
        calls: Iterable[Call[Any]],
        then: Call[R],
        *,
        failed: Call[Any] | None = None,
        request: str | None = None,
    ) -> Coroutine[Any, Any, Flow[R]]:
        """`chain` of two steps: `calls` side by side, then one that finds their results."""
        return self.achain(calls, then, failed=failed, request=request)

    def agroup(
        self,
        calls: Iterable[Call[R]],
        *,
        done: Call[Any] | None = None,
        failed: Call[Any] | None = None,
        request: str | None = None,
    ) -> Coroutine[Any, Any, Flow[list[R]]]:
        """Enqueue calls that run side by side; their results in order are that of the flow. `done`: a call for when
        all are done; it finds the results. All else as of `chain`."""
        return self._enqueued([calls], done, failed, request, is_list=True)

    chain, chord, group = plain(achain), plain(achord), plain(agroup)

    def _enqueued(
        self, steps: Sequence[Step], done: Call[Any] | None, failed: Call[Any] | None, request: str | None, *,
        is_list: bool,
    ) -> Coroutine[Any, Any, Flow[Any]]:  # fmt: skip
        copies: dict[Call[Any], Call[Any]] = {}
        jobs: list[Call[Any]] = []
        level: list[Call[Any]] = []
        links = 0
        for step in steps:
            calls = calls_of(step)
            links += len(calls) * len(level)
            if len(jobs) + len(calls) > MOST_JOBS or links > MOST_LINKS:
                most = f"{MOST_JOBS:,} jobs, which depend on {MOST_LINKS:,} others all together"
                raise ValueError(f"expected a flow of at most {most}")
            level = [_after(level, call, copies) for call in calls] or level
            jobs += level if calls else []
        callbacks = [] if done is None else [_after(level, done, copies)]
        if failed is not None and (jobs or callbacks):  # of nothing none can fail
            callbacks.append(_after([*jobs, *callbacks], failed, copies, if_failed="only"))

        async def enqueue() -> Flow[Any]:
            made = await self.aenqueue_many([*jobs, *callbacks], request=request)
            return Flow(self.link, made[: len(jobs)], made[len(jobs) :], len(level), is_list)

        return enqueue()


def _after(before: Sequence[Call[Any]], call: Call[Any], copies: dict[Call[Any], Call[Any]], **more: Any) -> Call[Any]:
    """The call, made dependent on those before. What was given stays as it is: it may be used again."""
    options: JobOptions = {**call.options}
    own = options.get("depends") or ()
    depends = [*(copies.get(job, job) if isinstance(job, Call) else job for job in own), *before]
    if depends:
        options["depends"] = depends
    if before and options.get("if_failed") is None:
        options["if_failed"] = "fail"
    options |= more  # type: ignore[typeddict-item]
    copy: Call[Any] = Call(call.task, call.argument, options)
    copies[call] = copy
    return copy
