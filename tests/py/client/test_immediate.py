"""Jobs that run where they are enqueued."""

from __future__ import annotations

import asyncio
import threading
import traceback
from typing import Any

import pytest

from app_support import jq
from jqmaster import JQ, FollowUp, JobError, JobFailed, checkpoint, current_job, progress
from jqmaster.errors import NotFound

__all__ = ["jq"]


def test_direct_jobs_need_no_server() -> None:
    jq = JQ("redis://127.0.0.1:9", direct=True)

    @jq.job
    def add(a: int, b: int) -> int:
        return a + b

    @jq.job(max_retry=3)
    async def fail() -> int:
        raise ValueError("no")

    handle = add.enqueue(1, b=2)
    assert (handle.result(), handle.status(), handle.document()["argument"]) == (3, "done", {"a": 1, "b": 2})
    assert jq.gather(add.map([(1, 1), (2, 2)])) == [2, 4]
    with pytest.raises(JobError, match="ValueError: no"):
        fail.enqueue().result()
    assert handle.cancel() is False
    with pytest.raises(NotFound):
        jq.handle("direct-99").result()


def test_immediate_jobs_raise_where_they_are_enqueued() -> None:
    jq = JQ("redis://127.0.0.1:9")
    seen: list[Any] = []

    @jq.middleware
    async def around(job: Any, call_next: Any) -> Any:
        seen.append((job.name, current_job.get().attempt))
        return await call_next()

    @jq.job
    def fail() -> int:
        raise ValueError("no")

    @jq.job
    def add(a: int) -> int:
        return a + 1

    with jq.immediate():
        with pytest.raises(ValueError, match="no"):
            fail.enqueue()
        with pytest.raises(JobFailed, match="does not fit"):
            jq.enqueue("add", {"b": 2})
        assert jq.enqueue("add", [2]).result() == 3
    with jq.immediate(raises=False), pytest.raises(JobError):
        fail.enqueue().result()
    assert seen == [("fail", 1), ("add", 1), ("fail", 1)]


def test_immediate_jobs_run_in_the_caller_s_thread() -> None:
    jq = JQ(direct=True)

    @jq.job
    async def inner() -> int:
        return 1

    @jq.job
    def outer() -> list[int]:
        return [threading.get_ident(), asyncio.run(inner()), inner.enqueue().result()]

    assert outer.enqueue().result() == [threading.get_ident(), 1, 1]
    assert jq.burst() == 0


async def test_immediate_jobs_in_a_loop() -> None:
    jq = JQ("redis://127.0.0.1:9")
    ran: list[str] = []

    @jq.job
    async def second(text: str) -> str:
        ran.append(text)
        return text.upper()

    @jq.job
    async def first() -> Any:
        return FollowUp("done", [second.job("b")])

    @jq.job
    async def depends() -> list[str]:
        return list(current_job.get().depends)

    @jq.job
    async def goes_on() -> FollowUp[None]:
        one = second.job("d")
        return FollowUp(None, [one, depends.options(depends=[one]).job()])

    with jq.immediate():
        one = second.job("e")
        given, waits = await jq.aenqueue_many([one, depends.options(depends=[one, "some"]).job()])
        assert await waits.aresult() == [given.id, "some"]
        await goes_on.aenqueue()
        ran.clear()
        assert await (await first.aenqueue()).aresult() == "done"
        assert second.enqueue("a").result() == "A"
    assert ran == ["b", "a"]


def test_what_they_say_is_in_their_documents(jq: JQ) -> None:
    @jq.job
    def inner() -> None:
        progress(1)

    @jq.job(max_retry=0)
    async def outer(row: int) -> None:
        progress(row, "begun")
        await inner.aenqueue()
        progress(row + 0.5)
        checkpoint({"row": row + 2})
        raise JobFailed("no more")

    @jq.job
    def plain(row: int) -> None:
        progress(row, "é" * 1000)

    def said(of: Any, *arguments: Any) -> dict[str, Any]:
        handle = of.enqueue(*arguments)
        jq.burst(raises=False)
        document = handle.document()
        return {name: document[name] for name in ("progress", "progress_message", "argument") if name in document}

    calls = [(outer, 4), (plain, 7), (inner,)]
    by_the_server = [said(*call) for call in calls]
    with jq.immediate(raises=False):
        assert [said(*call) for call in calls] == by_the_server
    assert by_the_server[0] == {"progress": 4.5, "progress_message": "begun", "argument": {"row": 6}}
    with pytest.raises(LookupError):
        progress(1)


def test_the_traceback_of_a_failure_tells_of_that_alone(jq: JQ) -> None:
    @jq.job(max_retry=0)
    def plain() -> None:
        raise ValueError("odd")

    @jq.job(max_retry=0)
    async def awaited() -> None:
        raise ValueError("odd")

    def burst_of(task: Any) -> None:
        task.enqueue()
        jq.burst()

    def immediately(task: Any) -> None:
        with jq.immediate():
            task.enqueue()

    for way in (burst_of, immediately):
        for task in (plain, awaited):
            with pytest.raises(ValueError, match="odd") as caught:
                way(task)
            text = "".join(traceback.format_exception(caught.value))
            assert "RuntimeError" not in text and "During handling" not in text, (way, task)
