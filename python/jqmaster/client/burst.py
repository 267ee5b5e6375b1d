"""Working until nothing is left to run: for tests, and for programs that are their own worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgpack

from jqmaster.client.handle import batched
from jqmaster.client.immediate import Memory
from jqmaster.client.registry import Registry
from jqmaster.client.worker import Runner, queues_of
from jqmaster.engine.engine import Operations
from jqmaster.engine.options import several
from jqmaster.engine.replies import Job
from jqmaster.worker.attempts import Attempts
from jqmaster.worker.ending import Outcome
from jqmaster.worker.notes import outside_of_loops
from jqmaster.worker.sources import EngineSource
from jqmaster.worker.worker import Worker

LOOK_S = 0.2


def burst(jq: Registry, queues: Sequence[str] | None = None, **options: Any) -> int:
    """See `JQ.burst`."""
    return outside_of_loops(aburst(jq, queues, **options))


async def aburst(
    jq: Registry,
    queues: Sequence[str] | None = None,
    *,
    concurrency: int = 8,
    delayed: bool = False,
    raises: bool = True,
) -> int:
    """See `JQ.burst`."""
    transport = await jq.link.open()
    if isinstance(transport, Memory):
        return 0  # jobs have run where they were enqueued
    wanted = list(several(queues, "queues")) if queues else queues_of(jq)
    runner = Runner(jq, concurrency)
    failed: list[Exception] = []
    attempts = 0

    def on_outcome(outcome: Outcome, state: str) -> None:
        nonlocal attempts
        attempts += 1
        if state == "error":
            cause = _cause(outcome)
            cause.add_note(f"in job {outcome.job.id} ({outcome.job.name}), attempt {outcome.job.attempt}")
            failed.append(cause)

    source = _BurstSource(jq, transport.engine, wanted, ("retrying", "scheduled") if delayed else ("retrying",))
    worker = Worker(runner.functions(), source, runner.threads, concurrency=concurrency, on_outcome=on_outcome)
    source.attempts = worker.attempts
    try:
        async with runner.alive():
            await worker.run(source.empty)
    finally:
        await source.stop()
    if source.problem is not None:
        raise source.problem
    if failed and raises:
        raise failed[0] if len(failed) == 1 else ExceptionGroup(f"{len(failed)} jobs failed", failed)
    return attempts


def _cause(outcome: Outcome) -> Exception:
    """What a function raised. What is no Exception would end more than the burst; what was raised in a process stays
    there."""
    if isinstance(outcome.raised, Exception):
        return outcome.raised
    error = RuntimeError(outcome.spec.get("message", "failed"))
    error.__cause__ = outcome.raised
    told = msgpack.unpackb(outcome.blob) if outcome.raised is None else None  # in a process
    if isinstance(told, dict):
        error.add_note(told["traceback"])
    return error


class _BurstSource(EngineSource):
    """A source that waits for no jobs, and says when there are none."""

    attempts: Attempts

    def __init__(self, jq: Registry, engine: Operations, queues: Sequence[str], states: Sequence[str]) -> None:
        """`states`: of jobs that are not waited for."""
        super().__init__(engine, queues)
        self.empty = asyncio.Event()
        self.problem: Exception | None = None
        self._jq, self._states = jq, states

    async def fetch(self, count: int) -> list[Job]:
        try:
            while True:
                was_busy = not self.attempts.is_idle  # what ends meanwhile may leave more to run
                next_ms, jobs = await self._engine.pick(self.worker, count=count, **self._wish)
                if jobs or not next_ms:
                    return jobs
                if was_busy:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await self.attempts.until(lambda: self.attempts.is_idle)
                elif not await self._hurry():
                    break
        except Exception as error:
            self.problem = error
        self.empty.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def _hurry(self) -> bool:
        """Make jobs that wait for their time ready; whether there were any."""
        ids = [
            job["id"]
            async for job in self._jq.ajobs(brief=True, status=self._states)
            if any(fnmatchcase(job["queue"], wanted) for wanted in self._wish["queues"])
        ]
        return "queued" in await batched(self._at_once, ids)

    async def _at_once(self, ids: Sequence[str]) -> list[str]:
        return await self._engine.change([({"id": job_id, "delay": 0}, b"") for job_id in ids])
