"""All that `JQ` and jobs can be asked, straight on Redis and by a master, plain and in coroutines."""

from __future__ import annotations

import inspect
import secrets
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgpack
import pytest

from jqmaster import JQ, Handle, Task
from jqmaster.engine.engine import Engine
from jqmaster.engine.http import checked
from jqmaster.errors import Conflict, Full, Internal, Invalid, JQError, Lost, NotFound, Unavailable, Version
from surface_support import Call, call, jq, own, put, run, server

__all__ = ["call", "jq", "own", "server"]

UNKNOWN = "0" * 14


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
    with pytest.raises(Invalid, match="queue"):
        await call("change", of=job, queue="*")


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
    first_ms, last_ms = group["first_ms"], group["last_ms"]
    [told] = await call("failures", "G", steps=2, from_ms=first_ms - 1000, to_ms=last_ms + 1, sample=3)
    assert sum(told["counts"]) == 4 and (told["looked"], told["names"], told["queues"]) == (3, [["a", 3]], [["a", 3]])
    assert await call("failures", "none") == []
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


async def test_workers_that_pull(jq: JQ, call: Call, own: Engine) -> None:
    await own.enqueue([({"name": "a"}, b"\xc0")])
    _, [job] = await own.pick("mail-1", "a")
    about = {"host": "h", "pid": 7, "version": "1", "knows": ["a"]}
    assert await own.register("mail-1", "a", announce=True, max_jobs=2, running=[job.id], **about) == "mail-1"
    [shown] = await call("workers", others=True)
    assert (shown["state"], shown["host"], shown["knows"]) == ("pulling", "h", ["a"])
    assert [one[0] for one in shown["running"]] == [job.id]
    assert await call("workers") == [] and await call("workers", ["mail-1", "unknown"]) == [shown]
    assert await call("kick_worker", "mail-1") == 1
    with pytest.raises(NotFound):
        await call("kick_worker", "unknown")


async def test_schedules(jq: JQ, call: Call) -> None:
    made = await call("repeat", "s", jq.call("a", {"k": 1}), cron="@daily", utc_offset=60)
    assert (made["id"], made["argument"], made["cron"]) == ("s", {"k": 1}, "@daily")
    assert len((await call("schedules", ["s", "t"], next=3))[0]["next"]) == 3
    assert len((await call("schedules", next=2))[0]["next"]) == 2
    assert await call("schedules") == [made] == await call("schedules", ["s"])
    job_id = await call("run_schedule", "s")
    [shown] = await call("schedules", ["s"], runs=20)
    assert (shown["runs"], shown["made"]) == ([{"id": job_id, "status": "queued"}], 0)
    with pytest.raises(NotFound):
        await call("run_schedule", "unknown")
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


async def test_marks(jq: JQ, call: Call) -> None:
    mark = await call("mark", "v1.4")
    assert mark == await call("mark", "v1.4")  # within a minute it is the same
    assert (mark["text"], "time_ms" in mark, "actor" in mark) == ("v1.4", True, True)
    early = await call("mark", "früher", mark["time_ms"] / 1000 - 3600)
    assert early["time_ms"] == mark["time_ms"] - 3_600_000
    assert await call("marks") == [mark, early]
    assert await call("marks", mark["time_ms"] / 1000) == [mark]
    with pytest.raises(Invalid) as refused:
        await call("mark", "x" * 201)
    assert refused.value.path == "text"


async def test_a_copy(jq: JQ, call: Call, own: Engine) -> None:
    jobs = await put(jq, 300)
    records = await call("export")
    copy = "{t" + secrets.token_hex(6) + "}"
    assert await call("import_records", records, copy) > 300
    [last] = await Engine(own.redis, copy).get([jobs[-1].id])
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
