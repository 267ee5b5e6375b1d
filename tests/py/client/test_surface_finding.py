"""Finding jobs and everything else as `JQ` is asked for them, straight on Redis and by a master, plain and in
coroutines."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jqmaster import JQ
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid
from surface_support import Call, call, jq, own, put, run, server

__all__ = ["call", "jq", "own", "server"]


async def test_finding_jobs(jq: JQ, call: Call) -> None:
    jobs = await jq.aenqueue_many(jq.new_job("a", n, tags=["t", f"n{n % 2}"]) for n in range(5))
    ids = [job.id for job in jobs]
    assert [(job["id"], job["argument"]) for job in await call("jobs", tag="t")] == list(
        zip(ids, range(5), strict=True)
    )
    assert [job["id"] for job in await call("jobs", tag="n1", newest=True)] == [ids[3], ids[1]]
    assert "argument" not in (await call("jobs", status=["queued"], brief=True))[0]
    assert await call("each", "tags") == [("n0", 3), ("n1", 2), ("t", 5)]
    assert len(await call("jobs", name="a", queue="a", status=None)) == 5
    for method in ("jobs", "discard_where"):
        for wrong in ({"name": ""}, {"status": "lost"}):
            with pytest.raises(Invalid):
                await call(method, **wrong)
        with pytest.raises(TypeError, match=r"no such condition: queu, did you mean queue\?"):
            await call(method, queu="a")


async def test_finding_jobs_by_who_ran_them_for_how_long_and_what_is_in_them(jq: JQ, call: Call, own: Engine) -> None:
    first, second, third = [
        (await jq.aenqueue_many([jq.new_job("a", {"customer": {"id": n}, "note": f"for acme {n}"})]))[0]
        for n in range(3)
    ]
    ran = await run(own, "a")
    assert ran == first.id

    async def ids(**where: Any) -> list[str]:
        return [job["id"] for job in await call("jobs", **where)]

    assert await ids(match={"argument.customer.id": {"ge": 1}}) == [second.id, third.id]
    assert await ids(argument="acme 2", match={"queue": "a*"}) == [third.id]
    assert await ids(worker="w") == [first.id]
    assert await ids(slower_ms=60_000) == []
    await own.pick("w", "a")
    assert await ids(recent=True) == [second.id, first.id, third.id]
    page = await own.jobs({"match": {"argument.customer.id": 2}}, looked=True)
    assert (page.looked, [one["id"] for one in page.documents]) == (3, [third.id])
    with pytest.raises(Invalid) as refused:
        await call("jobs", match={"customer": 1})
    assert "customer" in str(refused.value)


async def test_searching(jq: JQ, own: Engine) -> None:
    search = (await jq.aengine()).search
    await jq.aenqueue_many([jq.new_job("mail.send", {"customer": "acme"}, tags=["email"])])
    await jq.aconstrain("per-mail", {"name": "mail.*"}, concurrency=1)
    await jq.arepeat("mails", jq.new_job("mail.send"), every=3600)
    worker = await own.register("mailer-1", ["mail.send"])
    await own.register("mailer-2", ["mail.send"], announce=True)
    found = await search("MAIL")
    assert (found["queues"], found["tags"]) == (["mail.send"], ["email"])
    assert (found["constraints"], found["schedules"]) == (["per-mail"], ["mails"])
    assert found["workers"] == [{"id": "mailer-2", "name": "mailer-2"}, {"id": worker, "name": "mailer-1"}]
    assert (found["groups"], found["more"]) == ([], [])
    await put(jq, 3)
    await jq.aenqueue_many([jq.new_job("ab")])
    cut = await search("a", count=1)
    assert cut["queues"] == ["a"] and "queues" in cut["more"]
    for text in ("", "x" * 256):
        with pytest.raises(Invalid):
            await search(text)


async def test_a_list_that_is_left_early_is_closed(jq: JQ) -> None:
    await put(jq, 3)
    found = jq.jobs()
    assert (await asyncio.to_thread(next, found))["argument"] == 0
    await asyncio.to_thread(found.close)
    assert await asyncio.to_thread(next, found, None) is None


async def test_more_than_a_page(jq: JQ, call: Call) -> None:
    await put(jq, 2100, tags=["t"])
    assert [job["argument"] for job in await call("jobs", tag="t")] == list(range(2100))
    assert await call("cancel_where", queue="a") == 2100
    assert {job["status"] for job in await call("jobs", brief=True)} == {"cancelled"}
