"""Workers of a `JQ`: burst, retries, middleware, hooks, processes, schedules, logs, command line."""

from __future__ import annotations

import asyncio
import datetime
import queue
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app_support import jq, working
from jqmaster import JQ, JobError, JobFailed, JobStopped, checkpoint, current_job, progress
from topologies import until

__all__ = ["jq"]


def test_a_burst_runs_until_nothing_is_left(jq: JQ) -> None:
    ran: list[int] = []

    @jq.job
    def count_down(number: int) -> None:
        ran.append(number)
        if number:
            count_down.enqueue(number - 1)

    count_down.enqueue(3)
    waits = count_down.options(delay=3600).enqueue(0)
    assert jq.burst() == 4
    assert ran == [3, 2, 1, 0]
    assert waits.status() == "scheduled"
    assert jq.burst(delayed=True) == 1
    assert jq.burst() == 0


def test_a_burst_does_not_wait_for_retries(jq: JQ) -> None:
    @jq.job(retry_base=3600)
    def flaky() -> int:
        attempt = current_job.get().attempt
        if attempt < 3:
            raise ConnectionError("down")
        return attempt

    handle = flaky.enqueue()
    assert jq.burst() == 3
    assert handle.result(timeout=60) == 3


def test_a_burst_raises_what_failed(jq: JQ) -> None:
    @jq.job(max_retry=0)
    def fail(what: str) -> None:
        raise ValueError(what)

    fail.enqueue("a")
    with pytest.raises(ValueError, match="a"):
        jq.burst()
    fail.map(["b", "c"])
    with pytest.raises(ExceptionGroup, match="2 jobs failed"):
        jq.burst()
    fail.enqueue("d")
    assert jq.burst(raises=False) == 1


@pytest.mark.parametrize(("error", "attempts"), [(ConnectionError, 3), (ValueError, 1), (BrokenPipeError, 1)])
def test_exceptions_decide_about_retries(jq: JQ, error: type[Exception], attempts: int) -> None:
    @jq.job(max_retry=2, retry_on=(ConnectionError,), give_up_on=(BrokenPipeError,))
    def fail() -> None:
        raise error("no")

    handle = fail.enqueue()
    with pytest.raises(error):
        jq.burst()
    assert handle.document()["attempt"] == attempts
    with pytest.raises(JobError, match=f"{error.__name__}: no"):
        handle.result(timeout=60)


@pytest.mark.parametrize(
    ("given", "least", "most"), [(500, 500, 560), (datetime.timedelta(hours=1), 3600, 3660), (-3, 50, 160)]
)
def test_a_job_says_itself_when_to_try_again(jq: JQ, given: Any, least: float, most: float) -> None:
    @jq.job(retry_base=100)
    def busy() -> None:
        raise JobFailed("429", retry_in=given)

    handle = busy.enqueue()
    with working(jq):
        until(lambda: handle.status() == "retrying")
    document = handle.document()
    assert document["message"] == "429" and document["retry_count"] == 1
    assert least <= (document["due_ms"] - document["started_ms"]) / 1000 < most


def test_an_argument_that_does_not_fit_is_not_tried_again(jq: JQ) -> None:
    @jq.job
    def add(a: int) -> int:
        return a

    handle = jq.enqueue("add", {"b": 1})
    with pytest.raises(JobFailed, match="does not fit"):
        jq.burst()
    document = handle.document()
    assert (document["attempt"], document["message"]) == (
        1, "the argument does not fit add(a: 'int') -> 'int': missing a required argument: 'a'",
    )  # fmt: skip


def test_middleware_goes_around_every_job(jq: JQ) -> None:
    seen: list[str] = []

    @jq.middleware
    async def outer(job: Any, call_next: Any) -> Any:
        seen.append(f"outer {job.name}")
        try:
            return await call_next() + 1
        finally:
            seen.append("out")

    @jq.middleware
    async def inner(job: Any, call_next: Any) -> Any:
        seen.append("inner")
        return await call_next() * 10

    @jq.job
    def number(n: int) -> int:
        seen.append("job")
        return n

    handle = number.enqueue(4)
    jq.burst()
    assert handle.result(timeout=60) == 41
    assert seen == ["outer number", "inner", "job", "out"]


async def test_a_worker_that_has_stopped_says_so_when_it_is_to_work_again() -> None:
    jq = JQ("redis://127.0.0.1:9")
    jq.job(name="a")(lambda: None)
    worker, stop = jq.worker(), asyncio.Event()
    stop.set()
    assert await worker.serve(stop) is False
    with pytest.raises(RuntimeError, match="make another"):
        await worker.serve(stop)


async def test_a_worker_that_is_cancelled_again_while_it_stops_leaves_nothing_behind(jq: JQ) -> None:
    """Else the program that it is part of would never end."""
    begun, ends = asyncio.Event(), asyncio.Event()

    @jq.job(timeout=60)
    async def waits() -> None:
        begun.set()
        await ends.wait()

    await waits.aenqueue()
    before = asyncio.all_tasks()
    working = asyncio.create_task(jq.worker().serve(asyncio.Event()))
    await begun.wait()
    for _ in range(2):
        working.cancel()
        await asyncio.sleep(0.1)
    ends.set()
    await asyncio.wait(asyncio.all_tasks() - before, timeout=30)
    assert asyncio.all_tasks() == before


def test_a_lifespan(jq: JQ) -> None:
    seen: list[str] = []

    @jq.lifespan
    async def resources() -> AsyncIterator[dict[str, int]]:
        seen.append("open")
        yield {"answer": 42}
        seen.append("close")

    @jq.job
    def ask() -> int:
        return int(jq.state["answer"])

    handle = ask.enqueue()
    jq.burst()
    assert handle.result(timeout=60) == 42
    assert seen == ["open", "close"]


@pytest.mark.parametrize("says", ["progress", "checkpoint"])
def test_a_thread_learns_at_what_it_says_that_its_job_was_cancelled(says: str, jq: JQ) -> None:
    begun, ended = threading.Event(), queue.SimpleQueue[BaseException]()

    @jq.job(timeout=1)
    def works() -> None:
        begun.set()
        try:
            while True:
                progress(1) if says == "progress" else checkpoint(None)
                time.sleep(0.02)
        except Exception:
            raise AssertionError("it is no Exception") from None
        except BaseException as error:
            ended.put(error)
            raise

    with working(jq):
        handle = works.enqueue()
        assert begun.wait(60) and handle.cancel()
        stopped = ended.get(timeout=60)
    assert isinstance(stopped, JobStopped) and str(stopped) == "CANCELLED"
