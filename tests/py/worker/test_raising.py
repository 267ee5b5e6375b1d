"""Whatever a job raises is a failure of that attempt, in coroutines, threads and processes; no neighbour notices."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from jqmaster import JQ, JobError
from jqmaster.testing import working
from raising_jobs import coroutine, jobs, neighbour, process, thread
from surface_support import own, server

__all__ = ["own", "server"]

LONG_S = 60
KINDS = {"coroutine": coroutine, "thread": thread, "process": process}
SURROGATES = "\\udc80" * 9

# How it is raised: what the message is, or begins with; the group; what the traceback has.
RAISED: dict[str, tuple[str, str, str]] = {
    "exit": ("SystemExit: usage: …", "SystemExit", "SystemExit("),
    "interrupt": ("KeyboardInterrupt", "KeyboardInterrupt", "raise KeyboardInterrupt"),
    "stop iteration": ("RuntimeError: coroutine raised StopIteration", "RuntimeError", "next(iter(()))"),
    "generator exit": ("GeneratorExit", "GeneratorExit", "raise GeneratorExit"),
    "cancelled": ("CancelledError", "asyncio.exceptions.CancelledError", "raising_jobs.py"),
    "timeout": ("TimeoutError: no answer", "TimeoutError", 'raise TimeoutError("no answer")'),
    "stopped": ("JobStopped: it says so itself", "jqmaster.worker.notes.JobStopped", "raise JobStopped"),
    "own": ("Own: a and b", "raising_jobs.Own", 'raise Own("a", "b")'),
    "mute": ("Mute: (Mute, whose text raises Own)", "raising_jobs.Mute", "raise Mute"),
    "surrogate": ("OSError: caf\\udce9", "OSError", "caf\\udce9"),
    "huge": ("ValueError: xxx", "ValueError", 'ValueError("x" * 5_000_000)'),
    "recursion": ("RecursionError: maximum recursion depth", "RecursionError", "return raise_it(how)"),
    "group": ("BaseExceptionGroup: several (2 sub-exceptions)", "BaseExceptionGroup", "ValueError: a"),
    "chain": ("ValueError: number 2999", "ValueError", "characters are left out"),
    "cause": ("ValueError: bad row", "ValueError", "KeyError: 'key'\n\nThe above exception was the direct cause"),
}


@pytest.fixture
def jq(redis_url: str, namespace: str) -> Iterator[JQ]:
    with jobs.using(redis_url, namespace):
        yield jobs


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_raised_is_a_failure_of_that_attempt(jq: JQ, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with working(jq, concurrency=4):
        beside = neighbour.enqueue(3)
        handles = {how: KINDS[kind].enqueue(how) for how in RAISED}
        for how, (message, group, shown) in RAISED.items():
            handles[how].join(timeout=LONG_S)
            document = handles[how].document()
            assert (document["status"], document["reason"], document["attempt"]) == ("error", "other", 2), how
            assert document["message"].startswith(message) and len(document["message"]) <= 2000, how
            assert document["group"] == group, how
            trace = document["error"]["traceback"]
            assert "raising_jobs.py" in trace and shown in trace and len(trace) < 33_000, (how, trace[:2000])
            assert "jqmaster/worker" not in trace or how == "stop iteration", how
        assert beside.result(timeout=LONG_S) == "well"
        assert beside.document()["attempt"] == 1
        assert neighbour.enqueue(0).result(timeout=LONG_S) == "well", "the worker takes jobs"
    formatter = logging.Formatter()
    assert max(len(formatter.format(record).encode()) for record in caplog.records) < 100_000


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_job_says_of_its_failure_is_kept_as_far_as_it_can_be(jq: JQ, kind: str) -> None:
    hows = ("failed", "failed huge", "failed lock", "forgot")
    handles = [KINDS[kind].options(max_retry=0).enqueue(how) for how in hows]
    jq.burst(raises=False)
    odd, huge, lock, forgot = [handle.document() for handle in handles]
    assert (odd["message"], odd["group"][:14]) == (SURROGATES, "\\udc80 \\udc80 ") and len(odd["group"]) <= 255
    assert odd["error"] == "['\\udc80']"
    assert huge["message"] == "huge" and huge["error"] == "x" * 2000
    assert (lock["message"], lock["group"]) == ("lock", "locks") and lock["error"].startswith("<unlocked")
    assert (forgot["status"], forgot["reason"], forgot["group"]) == ("error", "other", "raising_jobs.Forgot")


def test_a_log_handler_that_fails_loses_no_ending(jq: JQ) -> None:
    class Full(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("no space left on device")

    handler = Full()
    logging.getLogger("jqmaster.jobs").addHandler(handler)
    try:
        handle = thread.options(max_retry=0).enqueue("timeout")
        jq.burst(raises=False)
        assert handle.document()["message"] == "TimeoutError: no answer"
    finally:
        logging.getLogger("jqmaster.jobs").removeHandler(handler)


@pytest.mark.parametrize("how", ["exit", "interrupt", "cancelled", "generator exit"])
def test_a_burst_raises_no_more_than_an_exception(jq: JQ, how: str) -> None:
    for one in KINDS.values():
        one.options(max_retry=0).enqueue(how)
    with pytest.raises(ExceptionGroup) as caught:
        jq.burst()
    assert [str(error).startswith(RAISED[how][0]) for error in caught.value.exceptions] == [True] * 3


def test_what_fails_around_the_function_is_a_failure_too(redis_url: str, namespace: str) -> None:
    jq = JQ(redis_url, namespace=namespace, max_retry=0)

    @jq.middleware
    async def exits(job: Any, call_next: Any) -> Any:
        result = await call_next()
        if job.name == "good":
            raise SystemExit("from middleware")
        return result

    @jq.job
    def good() -> int:
        return 1

    @jq.job
    def circular() -> Any:
        made: list[Any] = []
        made.append(made)
        return made

    @jq.job
    def odd_follower() -> Any:
        from jqmaster import FollowUp

        return FollowUp(1, ["no job"])  # type: ignore[list-item]

    @jq.job
    async def cancels_itself() -> None:
        import asyncio

        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)

    handles = [task.enqueue() for task in (good, circular, odd_follower, cancels_itself)]
    with working(jq):
        for handle in handles:
            with pytest.raises(JobError) as caught:
                handle.result(timeout=LONG_S)
            assert caught.value.reason == "other"
    assert handles[0].document()["message"] == "SystemExit: from middleware"
    assert "cannot be packed" in handles[1].document()["message"]
    assert handles[3].document()["group"] == "asyncio.exceptions.CancelledError"
