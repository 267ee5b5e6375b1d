"""Workers of a `JQ`: burst, retries, middleware, hooks, processes, schedules, logs, command line."""

from __future__ import annotations

import datetime
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app_support import jq, working
from jqmaster import (
    JQ,
    FollowUp,
    JobError,
    JobFailed,
    JobFilter,
    JobReleased,
    JsonLines,
    Move,
    checkpoint,
    current_job,
    progress,
)
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


def test_a_burst_sees_what_the_last_job_frees_while_it_looks(jq: JQ) -> None:
    @jq.job
    def step(number: int) -> None: ...

    calls = [step.job(0)]
    for number in range(1, 60):
        calls.append(step.options(depends=calls[-1:]).job(number))
    handles = jq.enqueue_many(calls)
    assert jq.burst() == 60
    assert handles[-1].status() == "done"


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


async def test_a_burst_in_a_loop(jq: JQ) -> None:
    @jq.job
    async def add(a: int) -> int:
        return a + 1

    handle = await add.aenqueue(1)
    assert await jq.aburst() == 1
    assert await handle == 2
    await add.aenqueue(2)
    assert jq.burst() == 1


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


def test_a_job_says_itself_whether_to_try_again(jq: JQ) -> None:
    @jq.job(max_retry=5)
    def fail() -> None:
        raise JobFailed("closed", retry=False, error={"code": 7})

    handle = fail.enqueue()
    jq.burst(raises=False)
    with pytest.raises(JobError) as caught:
        handle.result(timeout=60)
    assert (caught.value.message, caught.value.error) == ("closed", {"code": 7})


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


def test_a_result_that_cannot_be_packed(jq: JQ) -> None:
    @jq.job
    def odd() -> object:
        return object()

    handle = odd.enqueue()
    jq.burst(raises=False)
    assert "the result of odd cannot be packed" in handle.document()["message"]
    assert handle.document()["attempt"] == 1


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


def test_follow_ups_moves_and_releases(jq: JQ) -> None:
    ran: list[str] = []

    @jq.job
    def second(text: str) -> str:
        ran.append(text)
        return text

    @jq.job
    def first() -> Any:
        return FollowUp("ok", [second.job("x"), second.options(priority=-1).job("y")])

    @jq.job
    def dated() -> Any:
        now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        one = second.job("one")
        return FollowUp(now, [one, second.options(depends=[one], priority=-1).job("two")])

    @jq.job
    async def moves() -> Any:
        return Move("second", {"text": "moved"})

    @jq.job
    def put_off() -> None:
        if current_job.get().attempt == 1:
            raise JobReleased("not now")

    handle = first.enqueue()
    jq.burst(concurrency=1)
    assert handle.result(timeout=60) == "ok"
    assert ran == ["y", "x"]
    handle = dated.enqueue()
    jq.burst(concurrency=1)
    assert handle.result(timeout=60).year == 2026
    assert ran[2:] == ["one", "two"]
    moved = moves.enqueue()
    released = put_off.enqueue()
    jq.burst()
    assert moved.result(timeout=60) == "moved"
    assert (released.document()["attempt"], released.document()["retry_count"]) == (2, 0)


def test_progress_and_checkpoints(jq: JQ) -> None:
    @jq.job(retry_base=3600)
    def import_rows(start: int) -> int:
        if start == 0:
            progress(50, "half")
            checkpoint({"start": 10})
            raise ConnectionError("away")
        return start

    handle = import_rows.enqueue(0)
    jq.burst()
    assert handle.result(timeout=60) == 10
    document = handle.document()
    assert (document["progress"], document["progress_message"]) == (50, "half")


# -- logs -----------------------------------------------------------------------------------------


def test_log_lines_tell_the_job(jq: JQ) -> None:
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Keep()
    handler.addFilter(JobFilter())
    handler.setFormatter(JsonLines())
    log = logging.getLogger("test.app.worker")
    log.addHandler(handler)

    @jq.job
    def work() -> None:
        log.warning("at it", extra={"step": 1})

    @jq.job
    async def work_too() -> None:
        log.warning("at it", extra={"step": 2})

    try:
        handles = [work.enqueue(), work_too.enqueue()]
        jq.burst()
        log.warning("outside")
    finally:
        log.removeHandler(handler)
    found = [json.loads(line) for line in lines]
    assert {(one["job_id"], one["job_attempt"], one["step"]) for one in found[:2]} == {
        (handles[0].id, 1, 1),
        (handles[1].id, 1, 2),
    }
    assert "job_id" not in found[2] and found[2]["message"] == "outside"
