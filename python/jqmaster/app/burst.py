"""Working until nothing is left to run: for tests, and for programs that are their own worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from jqmaster.app.immediate import MemoryLink, outside_of_loops
from jqmaster.app.worker import Runner, queues_of
from jqmaster.engine.replies import Beat, Job, Note
from jqmaster.worker.sources import HttpSource, RedisSource
from jqmaster.worker.worker import Key, Outcome, Worker

if TYPE_CHECKING:
    from jqmaster.app.app import JQ
    from jqmaster.worker.worker import Source

LOOK_S = 0.2
GONE_S = 5.0


def burst(jq: JQ, queues: Sequence[str] | None = None, **given: Any) -> int:
    """See `JQ.burst`."""
    return outside_of_loops(aburst(jq, queues, **given))


async def aburst(
    jq: JQ,
    queues: Sequence[str] | None = None,
    *,
    concurrency: int = 8,
    delayed: bool = False,
    raises: bool = True,
) -> int:
    """See `JQ.burst`."""
    if isinstance(jq.link, MemoryLink):
        return 0  # jobs have run where they were enqueued
    wanted = list(queues) if queues else queues_of(jq)
    runner = Runner(jq, concurrency)
    errors: dict[Key, BaseException] = {}
    runner.errors = errors
    failed: list[BaseException] = []
    attempts = 0

    def on_outcome(outcome: Outcome, state: str) -> None:
        nonlocal attempts
        attempts += 1
        error = errors.pop(outcome.job.held, None)
        if state == "error":
            cause = error or RuntimeError(outcome.spec.get("message", "failed"))
            cause.add_note(f"in job {outcome.job.id} ({outcome.job.name}), attempt {outcome.job.attempt}")
            failed.append(cause)

    inner: Source
    if jq.is_redis:
        inner = RedisSource.from_url(jq.url, jq.namespace, wanted, form=jq.form)
    else:
        inner = HttpSource(jq.url.split(","), wanted)
    source = _Burst(jq, inner, wanted, delayed)
    worker = source.worker = Worker(runner.functions(), source, concurrency=concurrency, on_outcome=on_outcome)
    try:
        async with runner.alive():
            await worker.run(source.empty)
    finally:
        await inner.stop()
    if source.problem is not None:
        raise source.problem
    if failed and raises:
        raise failed[0] if len(failed) == 1 else _group(failed)
    return attempts


def _group(failed: list[BaseException]) -> BaseException:
    return BaseExceptionGroup(f"{len(failed)} jobs failed", failed)


class _Burst:
    """A source that waits for no jobs, and says when there are none. All else is left to `inner`."""

    worker: Worker

    def __init__(self, jq: JQ, inner: RedisSource | HttpSource, queues: list[str], delayed: bool) -> None:
        self.empty = asyncio.Event()
        self.problem: Exception | None = None
        self._jq = jq
        self._inner = inner
        self._queues = queues
        self._states = ("retrying", "scheduled") if delayed else ("retrying",)
        self._held: dict[Key, float] = {}  # and since when the worker has not had it any more, 0: has it
        self._ended = asyncio.Event()

    async def fetch(self, count: int) -> list[Job]:
        try:
            while True:
                self._ended.clear()
                again, jobs = await self._jq.link.arun(lambda it: it.pick(self._inner.worker, self._queues, count))
                if jobs or again:
                    self._hold(jobs)
                    return jobs
                if self._held:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await self._ended.wait()
                    self._forget()
                elif not await self._hurry():
                    break
        except Exception as error:
            self.problem = error
        self.empty.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def finish(self, outcomes: list[Outcome], want: int, request: str) -> tuple[list[str], list[Job]]:
        states, jobs = await self._inner.finish(outcomes, want, request)
        self._hold(jobs)
        self._drop([outcome.job.held for outcome in outcomes])
        return states, jobs

    async def release(
        self, held: list[Key], *, delay: float = 0, hold: Mapping[str, float] | None = None,
        message: str = "",
    ) -> None:  # fmt: skip
        await self._inner.release(held, delay=delay, hold=hold, message=message)
        self._drop(held)

    @property
    def is_registered(self) -> bool:
        return self._inner.is_registered

    async def heartbeat(self, held: list[Key], notes: Mapping[Key, Note]) -> Beat:
        return await self._inner.heartbeat(held, notes)

    async def listen(self, told: Callable[[str], None]) -> None:
        await self._inner.listen(told)

    async def register_again(self) -> None:
        await self._inner.register_again()

    # -- parts ------------------------------------------------------------------------------------

    def _serves(self, queue: str) -> bool:
        return any(fnmatchcase(queue, wanted) for wanted in self._queues)

    def _hold(self, jobs: Sequence[Job]) -> None:
        self._held.update((job.held, 0.0) for job in jobs)

    def _drop(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self._held.pop(key, None)
        self._ended.set()

    def _forget(self) -> None:
        """What was cancelled while it ran never ends here: the worker just has it no more."""
        now = asyncio.get_running_loop().time()
        for key, since in list(self._held.items()):
            if self.worker.holds(key):
                self._held[key] = 0.0
            elif not since:
                self._held[key] = now
            elif now - since > GONE_S:
                del self._held[key]

    async def _hurry(self) -> bool:
        """Make jobs that wait for their time ready; whether there were any."""
        moved = False
        for state in self._states:
            cursor = ""
            while True:
                cursor, documents = await self._jq.link.arun(lambda it, s=state, c=cursor: it.waiting(s, c))  # type: ignore[misc]
                changes = [({"id": one["id"], "delay": 0}, b"") for one in documents if self._serves(one["queue"])]
                if changes:
                    states = await self._jq.link.arun(lambda it, c=changes: it.change(c))  # type: ignore[misc]
                    moved = moved or any(answer == "queued" for answer in states)
                if not cursor:
                    break
        return moved
