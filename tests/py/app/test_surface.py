"""All that `JQ` and jobs can be asked, straight on Redis and by a master, plain and in coroutines."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgpack
import pytest

from jqmaster import JQ, Handle, Task
from jqmaster.engine.engine import Engine
from jqmaster.engine.request import checked
from jqmaster.errors import Conflict, Full, Internal, Invalid, JQError, Lost, NotFound, Unavailable, Version
from surface_support import Call, call, jq, own, server

__all__ = ["call", "jq", "own", "server"]

UNKNOWN = "0" * 14


async def put(jq: JQ, count: int = 1, **options: Any) -> list[Any]:
    """So many jobs named `a`, their numbers as arguments."""
    return await jq.aenqueue_many(jq.call("a", number, **options) for number in range(count))


async def run(own: Engine, queue: str, **outcome: Any) -> str:
    [job] = (await own.pick("w", queue)).jobs
    said = {"id": job.id, "token": job.token, "type": "success", **outcome}
    await own.finish("w", [(said, b"\xc0")])
    return job.id


async def done(jq: JQ, own: Engine) -> Handle[Any]:
    """One that has ended."""
    job = await jq.aenqueue("ends")
    await run(own, "ends")
    return job


TWINS = [
    pytest.param(kind, name, id=f"{kind.__name__}.{name}")
    for kind in (JQ, Handle, Task)
    for name in dir(kind)
    if name[:1] != "_" and hasattr(kind, "a" + name)
]


@pytest.mark.parametrize(("kind", "name"), TWINS)
def test_twins_have_the_same_signature_and_text(kind: type, name: str) -> None:
    plain, twin = getattr(kind, name), getattr(kind, "a" + name)
    assert list(inspect.signature(plain).parameters.values()) == list(inspect.signature(twin).parameters.values())
    assert (plain.__name__, plain.__qualname__) == (name, twin.__qualname__.replace(".a" + name, "." + name))
    assert not inspect.iscoroutinefunction(plain) and not inspect.isasyncgenfunction(plain)
    assert name == "burst" or plain.__doc__ == twin.__doc__ is not None


def test_no_method_that_asks_is_without_its_twin() -> None:
    members = [(kind, name, getattr(kind, name)) for kind in (JQ, Handle) for name in dir(kind) if name[:1] != "_"]
    asking = [
        (kind, name)
        for kind, name, one in members
        if name != "aengine" and (inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one))
    ]
    assert len(asking) > 40
    assert [(kind, name) for kind, name in asking if name[:1] != "a" or not hasattr(kind, name[1:])] == []


async def test_changing_jobs(jq: JQ, call: Call, own: Engine) -> None:
    [job] = await put(jq)
    assert await call("change", of=job, priority=-2, delay=timedelta(seconds=50)) == "scheduled"
    assert await call("change", [job, UNKNOWN], argument=None) == ["scheduled", "NOTFOUND"]
    shown = await call("get", job.id)
    assert (shown["priority"], shown["argument"]) == (-2, None)
    await call("change", of=job, delay=0)
    await own.pick("w", "a")
    with pytest.raises(Conflict, match="only the tags"):
        await call("change", of=job, priority=1)
    with pytest.raises(NotFound):
        await call("change", of=jq.handle(UNKNOWN), priority=1)
    with pytest.raises(Invalid, match="priority"):
        await call("change", of=job, priority="x")


async def test_kicking_jobs(jq: JQ, call: Call, own: Engine) -> None:
    jobs = await put(jq, 3)
    await own.pick("w", "a", 3)
    assert await call("kick", of=jobs[0], delay=100) == "scheduled"
    assert await call("kick", jobs[:2]) == ["CONFLICT", "queued"]
    assert await call("kick_queue", "a", delay=100) == 1
    with pytest.raises(NotFound):
        await call("kick_queue", "nope")
    with pytest.raises(Conflict):
        await call("kick", of=jobs[0])


async def test_retrying_and_removing_jobs(jq: JQ, call: Call, own: Engine) -> None:
    jobs = await put(jq, 4, max_retry=0)
    for _ in jobs:
        await run(own, "a", type="failure", group="G", message="no")
    [group] = await call("failures")
    assert (group["group"], group["count"], group["id"]) == ("G", 4, jobs[-1].id)
    await call("retry", of=jobs[0])
    assert await call("retry", [jobs[0].id, jobs[1], UNKNOWN]) == ["CONFLICT", "queued", "NOTFOUND"]
    assert await call("retry_where", group="G") == 2
    assert await call("discard", of=jobs[0]) == "queued"
    assert await call("discard", jobs[:2]) == ["NOTFOUND", "queued"]
    assert await call("discard_where", queue="a", status=["queued", "error"]) == 2
    assert await call("jobs") == []


async def test_taking_jobs_to_another_queue(jq: JQ, call: Call, own: Engine) -> None:
    jobs = await put(jq, 3, max_retry=0)
    assert await call("change", of=jobs[0], queue="b") == "queued"
    assert await call("change", jobs[0], queue="a") == ["queued"]
    for _ in jobs:
        await run(own, "a", type="failure", group="G")
    await call("retry", of=jobs[0], queue="b")
    assert await call("retry", jobs[1], queue="c") == ["queued"]
    assert await call("retry_where", queue="a", to="d") == 1
    assert [(await call("get", job.id))["queue"] for job in jobs] == ["b", "c", "d"]
    with pytest.raises(Invalid, match="queue"):
        await call("change", of=jobs[0], queue="b*")


async def test_cancelling_jobs(jq: JQ, call: Call, own: Engine) -> None:
    first = jq.call("a")
    jobs = await jq.aenqueue_many([first, jq.call("a", depends=[first]), jq.call("a")])
    with pytest.raises(Conflict):
        await call("cancel", of=jobs[0], dependents="refuse")
    assert await call("cancel", of=jobs[0], dependents="cancel") is True
    await own.tick()
    assert await call("status", of=jobs[1]) == "cancelled"
    with pytest.raises(NotFound) as missing:
        await call("cancel", [jobs[2], UNKNOWN], atomic=True)
    assert missing.value.path == "ids[1]"
    with pytest.raises(Conflict, match="has ended"):
        await call("cancel", [jobs[2], await done(jq, own)], atomic=True)
    assert await call("cancel", [jobs[2], UNKNOWN], force=True) == ["queued", "NOTFOUND"]
    one, two = jq.call("a", 1), jq.call("a", 2)
    named = await jq.aenqueue_many([one, two, jq.call("a", depends=[one, two])])
    assert await call("cancel", named, atomic=True, dependents="refuse") == ["queued", "queued", "blocked"]
    assert await call("cancel", [], atomic=True) == []
    await put(jq, 3)
    assert await call("cancel_where", name="a", force=True, status="queued") == 3


async def test_unique_keys(jq: JQ, call: Call) -> None:
    [first] = await put(jq, unique="k/1", unique_within=timedelta(minutes=1))
    [again] = await put(jq, unique="k/1")
    assert (again.id, again.created) == (first.id, False)
    assert (await call("get", first.id))["unique_within"] == 60
    assert await call("free", "k/1") == first.id
    assert "unique" not in await call("get", first.id)
    with pytest.raises(NotFound, match="k/1"):
        await call("free", "k/1")
    [other] = await put(jq, unique="k/1")
    assert other.created


async def test_dependencies(jq: JQ, call: Call) -> None:
    call_ = jq.call("a")
    first, second = await jq.aenqueue_many([call_, jq.call("a", depends=[call_])])
    assert (await call("document", of=second))["waits_for"] == [first.id]
    [other] = await put(jq)
    assert await call("depend", of=second, add=[other], remove=[first.id], if_failed="run") == "blocked"
    assert (await call("document", of=second))["waits_for"] == [other.id]
    with pytest.raises(Conflict):
        await call("depend", of=other, add=[second])


async def test_finding_jobs(jq: JQ, call: Call) -> None:
    jobs = await jq.aenqueue_many(jq.call("a", n, tags=["t", f"n{n % 2}"]) for n in range(5))
    ids = [job.id for job in jobs]
    assert [(job["id"], job["argument"]) for job in await call("jobs", tag="t")] == list(
        zip(ids, range(5), strict=True)
    )
    assert [job["id"] for job in await call("jobs", tag="n1", newest=True)] == [ids[3], ids[1]]
    assert "argument" not in (await call("jobs", status=["queued"], brief=True))[0]
    assert await call("tags") == [("n0", 3), ("n1", 2), ("t", 5)]
    assert await call("tags", top=1) == [("t", 5)]
    assert len(await call("jobs", name="a", queue="a", status=None)) == 5
    for wrong in ({"name": ""}, {"queu": "a"}, {"status": "lost"}):
        for method in ("jobs", "discard_where"):
            with pytest.raises(Invalid):
                await call(method, **wrong)


async def test_finding_jobs_by_who_ran_them_for_how_long_and_what_is_in_them(jq: JQ, call: Call, own: Engine) -> None:
    first, second, third = [
        (await jq.aenqueue_many([jq.call("a", {"customer": {"id": n}, "note": f"for acme {n}"})]))[0] for n in range(3)
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


async def test_searching(jq: JQ, call: Call, own: Engine) -> None:
    [waits] = await jq.aenqueue_many([jq.call("mail.send", {"customer": "acme"}, tags=["email"])])
    await jq.aconstrain("per-mail", {"name": "mail.*"}, concurrency=1)
    await jq.arepeat("mails", jq.call("mail.send"), every=3600)
    worker = await own.register("mailer-1", ["mail.send"])
    found = await call("search", "MAIL")
    assert (found["queues"], found["names"], found["tags"]) == (["mail.send"], ["mail.send"], ["email"])
    assert (found["constraints"], found["schedules"]) == (["per-mail"], ["mails"])
    assert found["workers"] == [{"id": worker, "name": "mailer-1"}]
    assert (found["jobs"], found["groups"], found["more"]) == ([], [], [])
    assert [job["id"] for job in (await call("search", "customer:acme"))["jobs"]] == [waits.id]
    by_id = await call("search", f" {waits.id} ")
    assert [job["name"] for job in by_id["jobs"]] == ["mail.send"] and "argument" not in by_id["jobs"][0]
    await put(jq, 3)
    cut = await call("search", "a", count=1)
    assert cut["queues"] == ["a"] and "queues" in cut["more"]
    for text in ("", "  ", "x" * 256, "slower:soon"):
        with pytest.raises(Invalid):
            await call("search", text)


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
    assert set(await call("cancel", [job["id"] for job in await call("jobs", brief=True)])) == {"cancelled"}


async def test_history_and_tracking(jq: JQ, call: Call, own: Engine) -> None:
    [job] = await put(jq)
    assert await call("track", of=job) == "queued"
    assert (await call("get", job.id))["track"] is True
    await call("track", of=job, on=False)
    assert "track" not in await call("get", job.id)
    await run(own, "a")
    assert [event["event"] for event in await call("history", of=job)] == ["enqueued", "started", "done"]
    for unknown in (UNKNOWN, "nonsense"):
        for method in ("get", "status", "explain", "history", "join"):
            with pytest.raises(NotFound):
                await (call(method, unknown) if method == "get" else call(method, of=jq.handle(unknown)))
    for method in ("track", "retry", "discard", "kick"):
        with pytest.raises(NotFound):
            await call(method, of=jq.handle(UNKNOWN))


async def test_queues(jq: JQ, call: Call) -> None:
    assert (await call("queue", "a/b", max_waiting=5, set={"retry_base": 2}))["settings"] == {"retry_base": 2}
    fair = [{"by": "argument", "weights": {"x": 2}}]
    assert (await call("queue", "a/b", unset=["retry_base"], fair=fair))["fair"] == fair
    assert (await call("queue", "a/b", paused=True))["paused"] is True
    assert (await call("queue", "a/b", paused=False))["paused"] is False
    assert await call("queue", "a/b") == (await call("queues"))[0]
    await call("forget", "a/b")
    assert await call("queues") == []
    with pytest.raises(NotFound):
        await call("forget", "a/b")


async def test_schedules(jq: JQ, call: Call) -> None:
    made = await call("repeat", "s", jq.call("a", {"k": 1}), cron="@daily", utc_offset=60)
    assert (made["id"], made["argument"], made["cron"]) == ("s", {"k": 1}, "@daily")
    assert len((await call("schedules", ["s", "t"], next=3))[0]["next"]) == 3
    assert len((await call("schedules", next=2))[0]["next"]) == 2
    assert await call("schedules") == [made] == await call("schedules", ["s"])
    await call("unschedule", "s")
    assert await call("schedules", ["s"]) == [] == await call("schedules")
    with pytest.raises(NotFound):
        await call("unschedule", "s")
    with pytest.raises(Invalid, match="cron"):
        await call("repeat", "s", jq.call("a"), cron="x")


async def test_webhooks(jq: JQ, call: Call, own: Engine) -> None:
    secret = "whsec_" + "A" * 32
    made = await call("subscribe", "w/1", "http://h/?x", {"name": "mail.*"}, on=["error"], secrets=[secret])
    assert made == {"id": "w/1", "url": "http://h/?x", "match": {"name": "mail.*"}, "on": ["error"], "secrets": 1}
    assert await call("webhooks") == [made]
    assert await call("subscribe", "notify", secrets=[secret]) == {"id": "notify", "secrets": 1}
    with pytest.raises(Invalid, match="url"):
        await call("subscribe", "x", "h", {"name": "a"})
    with pytest.raises(TypeError, match="conditions"):
        await call("subscribe", "x", "http://h/", "mail")
    await call("unsubscribe", "w/1")
    with pytest.raises(NotFound):
        await call("unsubscribe", "w/1")
    [job] = await own.enqueue([({"name": "a", "notify": "http://h/"}, b"\xc0")])
    assert (await call("get", job.id))["notify"] == "http://h/"


async def test_a_schedule_in_a_time_zone(jq: JQ, call: Call) -> None:
    rule = "CET-1CEST,M3.5.0,M10.5.0/3"
    march_s = 1_900_000_000  # the 17th, 2030
    made = await call("repeat", "s", jq.call("a"), cron="30 2 * 3,10 sun", timezone="Europe/Berlin", start=march_s)
    assert (made["timezone"], made["tz"]) == ("Europe/Berlin", rule)
    berlin = ZoneInfo("Europe/Berlin")
    [shown] = await call("schedules", ["s"], next=6)
    clocks = [datetime.fromtimestamp(at / 1000, berlin).strftime("%m-%d %H:%M%z") for at in shown["next"]]
    assert clocks[:3] == ["03-24 02:30+0100", "03-31 03:00+0200", "10-06 02:30+0200"]
    assert clocks[5] == "10-27 02:30+0200"  # the first time of two
    for zone, problem in (("Europe/Nowhere", "Europe/Nowhere"), ("Africa/Casablanca", "same rule every year")):
        with pytest.raises(Invalid, match=problem) as refused:
            await call("repeat", "s", jq.call("a"), cron="@daily", timezone=zone)
        assert refused.value.path == "timezone"


async def test_workers(call: Call, own: Engine) -> None:
    worker = await own.register("w", "a")
    for request, asked in (("quiet", "quiet"), ("stop", "stop"), ("resume", "")):
        await call("tell_worker", worker, request)
        assert [one["request"] for one in await call("workers")] == [asked]
        with pytest.raises(NotFound):
            await call("tell_worker", "w" + UNKNOWN, request)


async def test_statistics_and_settings(jq: JQ, call: Call, own: Engine) -> None:
    await put(jq)
    await run(own, "a")
    [hour] = await call("stats", queue="a")
    assert (hour["enqueued"], hour["done"]) == (1, 1)
    [pair] = await call("series", "minute", name="a")
    assert (pair["queue"], pair["done"]) == ("a", 1)
    assert (await call("configure", done_max=7))["done_max"] == 7 == (await call("config"))["done_max"]
    after = await call("configure", done_max=None, retry_base=3)
    assert (after["done_max"], after["retry_base"]) == (10000, 3)
    with pytest.raises(Invalid, match="done_mx") as wrong:
        await call("configure", retry_base=1, done_mx=None)
    assert (await call("config"))["retry_base"] == 3 and wrong.value.path in ("unset[0]", "done_mx")
    assert "done_max" in [one["name"] for one in await call("describe_config")]


async def test_a_copy(jq: JQ, call: Call, own: Engine) -> None:
    jobs = await put(jq, 300)
    records = await call("export")
    copy = "{c" + secrets.token_hex(6) + "}"
    assert await call("import_records", records, copy) > 300
    [last] = await Engine(own.redis, copy).get(jobs[-1].id)
    assert last is not None and last["argument"] == msgpack.packb(299)
    with pytest.raises(Conflict):
        await call("import_records", records[:1], own.namespace)


@pytest.mark.parametrize(
    ("status", "code", "raised"),
    [
        (400, "INVALID", Invalid), (404, "NOTFOUND", NotFound), (409, "CONFLICT", Conflict), (409, "LOST", Lost),
        (429, "FULL", Full), (503, "VERSION", Version), (503, "UNAVAILABLE", Unavailable),
        (500, "INTERNAL", Internal),
    ],
)  # fmt: skip
def test_answers_that_are_errors_are_raised(status: int, code: str, raised: type[JQError]) -> None:
    with pytest.raises(JQError) as caught:
        checked(status, msgpack.packb({"error": {"code": code, "message": "why"}}))
    assert (type(caught.value), caught.value.message) == (raised, "why")
