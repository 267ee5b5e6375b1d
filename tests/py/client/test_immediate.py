"""Jobs that run where they are enqueued."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from app_support import jq
from jqmaster import JQ, JobFailed, current_job
from jqmaster.errors import NotFound

__all__ = ["jq"]


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
    assert seen == [("fail", 1), ("add", 1)]


def test_immediate_jobs_run_in_the_caller_s_thread() -> None:
    jq = JQ("redis://127.0.0.1:9")

    @jq.job
    async def inner() -> int:
        return 1

    @jq.job
    def outer() -> list[int]:
        return [threading.get_ident(), asyncio.run(inner()), inner.enqueue().result()]

    @jq.job
    def total() -> int:
        return sum(jq.dependency_results())

    with jq.immediate():
        assert outer.enqueue().result() == [threading.get_ident(), 1, 1]
        assert jq.chain([inner.job(), inner.job()], total.job(), failed=total.job()).result() == 2
        assert jq.burst() == 0
        with pytest.raises(NotFound):
            jq.handle("direct-99").result()
