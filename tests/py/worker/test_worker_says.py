"""What functions say besides a result: progress, checkpoints, what follows; and what workers are asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jqmaster import JQ
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Note
from jqmaster.server.server import Server
from jqmaster.worker.ending import FollowUp, Move
from jqmaster.worker.notes import Notebook, checkpoint
from parts import enqueue, eventually, status, until
from surface_support import own, server
from test_worker import WAYS, working

__all__ = ["own", "server"]


# Progress and checkpoints


def test_what_could_not_be_told_counts_less_than_what_was_said_since() -> None:
    notebook = Notebook(lambda: None)
    notebook.write(Note(progress=1, message="one"))
    untold = notebook.take()
    assert untold is not None
    notebook.write(Note(progress=2))
    notebook.put_back(untold)
    assert notebook.take() == Note(progress=2, message="one")


@pytest.mark.parametrize("way", WAYS)
async def test_the_next_attempt_goes_on_from_the_checkpoint(way: str, server: Server, own: Engine) -> None:
    seen: list[Any] = []

    async def count(argument: dict[str, int]) -> None:
        seen.append(argument)
        if argument["done"] < 3:
            checkpoint({"done": argument["done"] + 1})
            raise ConnectionError("gone")

    async with working(way, server, {"count": count}):
        job_id = await enqueue(own, "count", {"done": 0}, retry_base=0)
        await until(own, job_id, "done")
    assert seen == [{"done": number} for number in range(4)]


# What follows


@pytest.mark.parametrize("way", WAYS)
async def test_what_cannot_follow_is_a_failure(way: str, server: Server, own: Engine) -> None:
    wrong = {
        "move": lambda: Move("a*"), "nowhere": lambda: Move(), "job": lambda: FollowUp(1, ["x"]),
        "unknown": lambda: FollowUp(1, [JQ().new_job("x", depends=["f" * 14])]),
        "many": lambda: FollowUp(1, [JQ().new_job("x")] * 1001),
    }  # fmt: skip

    def follow(argument: str) -> Any:
        return wrong[argument]()

    async with working(way, server, {"follow": follow, "well": print}):
        ids = {kind: await enqueue(own, "follow", kind, max_retry=0) for kind in wrong}
        beside = [await enqueue(own, "well") for _ in range(8)]
        for kind, job_id in ids.items():
            document = await until(own, job_id, "error")
            assert document["message"] and document["reason"] == "other", kind
            assert kind != "many" or "expected at most 1000 jobs that are" in document["message"]  # type: ignore[operator]
        for job_id in beside:  # reported in the same calls
            assert (await until(own, job_id, "done"))["retry_count"] == 0
    assert (await own.jobs({"name": "x"})).documents == []


# What workers are asked


@pytest.mark.parametrize("way", WAYS)
async def test_a_quiet_worker_takes_no_more(
    way: str, server: Server, own: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jqmaster.worker.attempts.ALIVE_EVERY_S", 0.05)
    go_on, started = asyncio.Event(), asyncio.Event()

    async def wait(argument: Any) -> None:
        started.set()
        await go_on.wait()

    jq = JQ(server.url)
    async with working(way, server, {"wait": wait}, register=True) as worker:
        [document] = await eventually(lambda: _workers(own))
        first = await enqueue(own, "wait")
        await started.wait()
        await jq.aoperations.worker(document["id"], "quiet")
        second = await enqueue(own, "wait")
        go_on.set()
        await until(own, first, "done")
        assert (await _workers(own))[0]["state"] == "quiet"
        assert await status(own, second) == "queued"
        await jq.aoperations.worker(document["id"], "resume")
        await until(own, second, "done")
        assert not worker.task.done()


@pytest.mark.parametrize("way", ["redis"])
async def test_a_worker_that_is_asked_to_stop_finishes_what_it_has(way: str, server: Server, own: Engine) -> None:
    go_on, started = asyncio.Event(), asyncio.Event()

    async def wait(argument: Any) -> None:
        started.set()
        await go_on.wait()

    async with working(way, server, {"wait": wait}, register=True) as worker:
        [document] = await eventually(lambda: _workers(own))
        job_id = await enqueue(own, "wait")
        await started.wait()
        await own.worker(document["id"], "stop")
        other = await enqueue(own, "wait")
        go_on.set()
        await until(own, job_id, "done")
        await asyncio.wait_for(worker.task, 60)
        assert await status(own, other) == "queued"
        assert await _workers(own) == []


async def _workers(engine: Engine) -> list[dict[str, Any]]:
    return (await engine.workers()).documents


@pytest.mark.parametrize("ends", ["cancel", "kick"])
async def test_a_worker_on_redis_hears_at_once_that_a_job_is_gone(ends: str, server: Server, own: Engine) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def wait(argument: Any) -> None:
        started.set()
        try:
            # Far longer than the test: no heartbeat is due.
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    async with working("redis", server, {"wait": wait}):
        job_id = await enqueue(own, "wait", timeout=100_000)
        await started.wait()
        await (own.cancel([job_id]) if ends == "cancel" else own.kick([job_id], delay=1000))
        await asyncio.wait_for(stopped.wait(), 60)
