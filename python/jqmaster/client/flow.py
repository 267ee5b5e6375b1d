"""Fan out and in: jobs that are enqueued together, all or none, and looked at as one. A thin layer over `depends`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from jqmaster.client.handle import Handle, JobError, batched
from jqmaster.client.link import plain
from jqmaster.client.task import Call, calls_of
from jqmaster.engine.ended import ENDED
from jqmaster.engine.options import JobOptions
from jqmaster.engine.replies import Document

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Step = Call[Any] | Iterable[Call[Any]]

MOST_JOBS = 10_050  # of a flow, without its callbacks
MOST_LINKS = 100_000  # what they depend on, all together


@dataclass(slots=True, eq=False)
class Flow(Generic[R_co]):
    """What `chain` and `group` have enqueued. `await flow` is `await flow.aresult()`.

    `jobs`: handles of its jobs, in order; `callbacks`: that of `failed`, which counts for neither its result nor its
    progress. Every method has an async twin with an `a` before its name.
    """

    jobs: list[Handle[Any]]
    callbacks: list[Handle[Any]]
    _jq: Any
    _ends: list[Handle[Any]]
    _is_list: bool

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.aresult().__await__()

    async def aresult(self, timeout: float | None = None) -> R_co:
        """The result of its last job, or of a group the results of all, once they have it; waits at most `timeout`
        seconds.

        Raises as `Handle.result`. When one of the jobs before failed or was cancelled, that is the one it tells.
        """
        try:
            results: Any = await self._jq.agather(self._ends, timeout)
        except JobError as error:
            if error.reason != "dependency":
                raise
            for job, document in zip(self.jobs, await self._documents(), strict=True):
                if document and document["status"] in ("error", "cancelled"):
                    await job.aresult()
            raise
        return results if self._is_list else results[0]  # type: ignore[no-any-return]

    async def aprogress(self) -> Counter[str]:
        """How many of its jobs are in which state: `flow.progress()["done"]`. One whose record is gone is done."""
        return Counter(document["status"] if document else "done" for document in await self._documents())

    async def acancel(self, *, force: bool = False) -> int:
        """Cancel all that has not ended, callbacks included; how many jobs that were. `force` as of `Handle.cancel`.
        Of more than 1000 jobs in steps, those behind others first."""
        ids = [job.id for job in reversed((*self.jobs, *self.callbacks))]
        states = await batched(partial((await self._jq.aengine()).cancel, force=force or None), ids)
        return sum(state not in ENDED and not state.isupper() for state in states)

    result, progress, cancel = plain(aresult), plain(aprogress), plain(acancel)

    async def _documents(self) -> list[Document | None]:
        return await batched((await self._jq.aengine()).get, [job.id for job in self.jobs])


class FlowMethods:
    """What a `JQ` has of flows."""

    aenqueue_many: Any

    async def achain(
        self, *steps: *tuple[*tuple[Step, ...], Call[R]], failed: Call[Any] | None = None, request: str | None = None
    ) -> Flow[R]:
        """Enqueue calls of which each depends on the one before; at most 10,050. A step may be a list of calls, which
        run side by side, up to 10,000, or empty; the last is one call, and its result that of the flow.

        A job finds the results of the step before by `dependency_results`. When one fails or is cancelled, those
        behind it end as errors, unless their `if_failed` says otherwise. `failed`: a call for when all have ended,
        and not all are done. `request` as of `enqueue_many`. Up to 1000 jobs, callbacks included, are enqueued all or
        none, more in batches of which the last has the end: a repeat with the same `request` completes what was
        broken off. Raises ValueError for more jobs, or where they depend on more than 100,000 all together.
        """
        return await self._flow(steps, failed, request, is_list=False)

    async def agroup(
        self, calls: Iterable[Call[R]], *, failed: Call[Any] | None = None, request: str | None = None
    ) -> Flow[list[R]]:
        """Enqueue calls that run side by side; their results in order are that of the flow. All else as of `chain`."""
        return await self._flow([calls], failed, request, is_list=True)

    chain, group = plain(achain), plain(agroup)

    async def _flow(
        self, steps: Sequence[Step], failed: Call[Any] | None, request: str | None, *, is_list: bool
    ) -> Flow[Any]:
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
        # Of nothing none can fail.
        callbacks = [_after(jobs, failed, copies, if_failed="only")] if failed is not None and jobs else []
        made = await self.aenqueue_many([*jobs, *callbacks], request=request)
        ends = made[len(jobs) - len(level) : len(jobs)]
        return Flow(made[: len(jobs)], made[len(jobs) :], self, ends, is_list)


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
