"""A job that waits for another one holds its worker's slot: it has to ask for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from app_support import jq, working
from jqmaster import JQ, Handle, JobError
from parts import LONG_S

__all__ = ["jq"]

WAYS: dict[str, Callable[[JQ, Handle[Any]], Any]] = {
    "result": lambda jq, handle: handle.result(),
    "result, bounded": lambda jq, handle: handle.result(timeout=LONG_S),
    "join": lambda jq, handle: handle.join(),
    "for": lambda jq, handle: [state.status for state in handle],
    "states": lambda jq, handle: list(handle.states()),
    "gather": lambda jq, handle: jq.gather([handle]),
    "gather with errors": lambda jq, handle: jq.gather([handle], return_errors=True),
    "group": lambda jq, handle: jq.group([jq.new_job("other")]).result(),
    "chain": lambda jq, handle: jq.chain(jq.new_job("other")).result(timeout=LONG_S),
}


async def _followed(handle: Handle[Any]) -> Any:
    async for state in handle:
        last = state
    return last


async def _awaited(handle: Handle[Any]) -> Any:
    return await handle


AWAITED: dict[str, Callable[[JQ, Handle[Any]], Any]] = {
    "await": lambda jq, handle: _awaited(handle),
    "in a task": lambda jq, handle: asyncio.create_task(_awaited(handle)),
    "result": lambda jq, handle: handle.aresult(timeout=LONG_S),
    "join": lambda jq, handle: handle.ajoin(),
    "async for": lambda jq, handle: _followed(handle),
    "gather": lambda jq, handle: jq.agather([handle], return_errors=True),
}


def _fails_for(error: JobError) -> bool:
    advice = ("ResumeAfter([handle])", "in_job=True", "slot")
    return "WaitsInJob" in error.message and all(part in error.message for part in advice)


def test_a_job_that_would_wait_for_another_fails_with_advice(jq: JQ) -> None:
    @jq.job(max_retry=0)
    def plain(way: str) -> None:
        WAYS[way](jq, jq.enqueue("other"))

    @jq.job(max_retry=0)
    async def awaited(way: str) -> None:
        await AWAITED[way](jq, await jq.aenqueue("other"))

    jobs = [*plain.map(WAYS), *awaited.map(AWAITED)]
    with working(jq, concurrency=2):
        results: list[Any] = jq.gather(jobs, LONG_S, return_errors=True)
    names = [*WAYS, *(f"awaited: {way}" for way in AWAITED)]
    assert [name for name, error in zip(names, results, strict=True) if not _fails_for(error)] == []


def test_a_job_that_asks_for_it_waits(jq: JQ) -> None:
    @jq.job
    def other() -> int:
        return 1

    @jq.job(max_retry=0)
    def plain() -> list[Any]:
        handle = other.enqueue()
        return [
            handle.result(timeout=LONG_S, in_job=True),
            other.enqueue().join(in_job=True),
            list(other.enqueue().states(in_job=True))[-1].status,
            *jq.gather([other.enqueue()], in_job=True),
            jq.chain(other.job()).result(in_job=True),
        ]

    @jq.job(max_retry=0)
    async def awaited() -> list[Any]:
        handle = await other.aenqueue()
        last = [state async for state in (await other.aenqueue()).astates(in_job=True)][-1]
        return [await handle.aresult(in_job=True), last.status]

    with working(jq):
        assert plain.enqueue().result(timeout=LONG_S) == [1, "done", "done", 1, 1]
        assert awaited.enqueue().result(timeout=LONG_S) == [1, "done"]
