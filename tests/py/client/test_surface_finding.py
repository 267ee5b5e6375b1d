"""Finding jobs and everything else as `JQ` is asked for them, straight on Redis and by a master, plain and in
coroutines."""

from __future__ import annotations

import asyncio

import pytest

from jqmaster import JQ
from jqmaster.errors import Invalid
from surface_support import Call, call, jq, own, put, server

__all__ = ["call", "jq", "own", "server"]


async def test_finding_jobs(jq: JQ, call: Call) -> None:
    jobs = await jq.aenqueue_many(jq.new_job("a", n, tags=["t", f"n{n % 2}"]) for n in range(5))
    ids = [job.id for job in jobs]
    assert [job["id"] for job in await call("jobs", tag="t")] == ids
    assert [job["id"] for job in await call("jobs", tag="n1", newest=True)] == [ids[3], ids[1]]
    assert "argument" not in (await call("jobs", status=["queued"], brief=True))[0]
    assert await call("each", "tags") == [("n0", 3), ("n1", 2), ("t", 5)]
    assert len(await call("jobs", name="a", queue="a", status=None)) == 5
    for wrong in ({"name": ""}, {"status": "lost"}):
        with pytest.raises(Invalid):
            await call("jobs", **wrong)
    with pytest.raises(TypeError, match=r"no such condition: queu, did you mean queue\?"):
        await call("jobs", queu="a")


async def test_many_large_documents(jq: JQ, call: Call) -> None:
    """A call of the engine tells of some of them."""
    ids = [(await jq.aenqueue("a", "x" * 1_500_000)).id for _ in range(7)]
    assert [job["id"] for job in await call("call", "get", ids=iter(ids))] == ids


async def test_a_list_that_is_left_early_is_closed(jq: JQ) -> None:
    await put(jq, 3)
    found = jq.jobs()
    assert (await asyncio.to_thread(next, found))["argument"] == 0
    await asyncio.to_thread(found.close)
    assert await asyncio.to_thread(next, found, None) is None


async def test_more_than_a_page(jq: JQ, call: Call) -> None:
    await put(jq, 2100, tags=["t"])
    assert [job["argument"] for job in await call("jobs", tag="t")] == list(range(2100))
    step = await call("call", "cancel", where={"queue": "a"}, count=10)
    assert (step.changed, bool(step.cursor)) == (10, True)
    assert await call("call", "cancel", where={"queue": "a"}) == ("", 2090)
    assert {job["status"] for job in await call("jobs", brief=True)} == {"cancelled"}
