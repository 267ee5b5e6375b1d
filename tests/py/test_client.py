"""Every method of both clients, against a real master."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgpack
import pytest

from jqmaster.client import AsyncClient, Client, Event, asks
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Conflict, Full, Internal, Invalid, JQError, NotFound, Unavailable
from jqmaster.master.server import ServeOptions, Server
from parts import eventually

UNKNOWN = "0" * 14


@pytest.fixture
async def server(redis_url: str, namespace: str) -> AsyncIterator[Server]:
    async with Server(ServeOptions(redis_url=redis_url, namespace=namespace, port=0)) as server:
        yield server


@pytest.fixture
async def own(redis_url: str, namespace: str, server: Server) -> AsyncIterator[Engine]:
    async with connect(redis_url) as redis:
        yield Engine(redis, namespace)


Call = Callable[..., Awaitable[Any]]


@pytest.fixture(params=["blocking", "asyncio"])
async def call(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[Call]:
    """Calls a client's method by name. What it gives one by one comes as a list."""
    if request.param == "blocking":
        with Client(server.url) as client:

            def ask(method: str, *args: Any, **more: Any) -> Any:
                answer = getattr(client, method)(*args, **more)
                return list(answer) if inspect.isgenerator(answer) else answer

            yield lambda method, *args, **more: asyncio.to_thread(ask, method, *args, **more)
    else:
        async with AsyncClient(server.url) as other:

            async def ask_other(method: str, *args: Any, **more: Any) -> Any:
                answer = getattr(other, method)(*args, **more)
                if inspect.isasyncgen(answer):
                    return [one async for one in answer]
                return await answer

            yield ask_other


async def run(own: Engine, queue: str, **outcome: Any) -> str:
    [job] = (await own.pick("w", queue)).jobs
    said = {"id": job.id, "token": job.token, "type": "success", **outcome}
    await own.finish("w", [(said, b"\xc0")])
    return job.id


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, Any]:
        return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}

    blocking, other = methods(Client), methods(AsyncClient)
    assert blocking.keys() == other.keys()
    for name, method in blocking.items():
        mine, theirs = inspect.signature(method).parameters, inspect.signature(other[name]).parameters
        assert list(mine.values()) == list(theirs.values()), name
        assert other[name].__doc__ == (f"As `Client.{name}`." if name != "close" else None), name
        assert method.__doc__ or name == "close", name


async def test_a_unique_job(call: Call) -> None:
    first = await call("enqueue_unique", "a", "k", 1)
    again = await call("enqueue_unique", "a", "k", 2, if_exists="replace")
    assert (first.created, again) == (True, (first.id, False))
    assert (await call("get", first.id))["argument"] == 2


async def test_changing_jobs(call: Call, own: Engine) -> None:
    job = await call("enqueue", "a", [1])
    assert await call("change", job, priority=-2, delay=50) == "scheduled"
    assert await call("change_many", [{"id": job, "argument": None}, {"id": UNKNOWN, "priority": 1}]) == [
        "scheduled",
        "NOTFOUND",
    ]
    shown = await call("get", job)
    assert (shown["priority"], shown["argument"]) == (-2, None)
    await call("change", job, delay=0)
    await own.pick("w", "a")
    with pytest.raises(Conflict):
        await call("change", job, priority=1)
    with pytest.raises(NotFound):
        await call("change", UNKNOWN, priority=1)
    with pytest.raises(Invalid, match="priority"):
        await call("change", job, priority="x")


async def test_kicking_jobs(call: Call, own: Engine) -> None:
    jobs = await call("enqueue_many", [{"name": "a"}] * 3)
    await own.pick("w", "a", 3)
    assert await call("kick", jobs[0], delay=100) == "scheduled"
    assert await call("kick_many", jobs[:2]) == ["CONFLICT", "queued"]
    assert await call("kick_queue", "a", delay=100) == 1
    with pytest.raises(Conflict):
        await call("kick", jobs[0])


async def test_retrying_and_removing_jobs(call: Call, own: Engine) -> None:
    jobs = await call("enqueue_many", [{"name": "a", "max_retry": 0}] * 4)
    for _ in jobs:
        await run(own, "a", type="failure", group="G", message="no")
    [group] = await call("failures")
    assert (group["group"], group["count"], group["id"]) == ("G", 4, jobs[-1])
    assert await call("retry", jobs[0]) == "queued"
    assert await call("retry_many", [jobs[0], jobs[1], UNKNOWN]) == ["CONFLICT", "queued", "NOTFOUND"]
    assert await call("retry_where", group="G") == 2
    assert await call("discard", jobs[0]) == "queued"
    assert await call("discard_many", [jobs[0], jobs[1]]) == ["NOTFOUND", "queued"]
    assert await call("discard_where", queue="a", status=["queued", "error"]) == 2
    assert await call("jobs") == []


async def test_cancelling_jobs(call: Call, own: Engine) -> None:
    jobs = await call("enqueue_many", [{"name": "a"}, {"name": "a", "depends": [0]}, {"name": "a"}])
    with pytest.raises(Conflict):
        await call("cancel", jobs[0], dependents="refuse")
    await call("cancel", jobs[0], dependents="cancel")
    await own.tick()
    assert (await call("get", jobs[1]))["status"] == "cancelled"
    assert await call("cancel_many", [jobs[2], UNKNOWN], force=True) == ["queued", "NOTFOUND"]
    await call("enqueue_many", [{"name": "b"}] * 3)
    assert await call("cancel_where", name="b", force=True) == 3


async def test_dependencies(call: Call) -> None:
    [first, second] = await call("enqueue_many", [{"name": "a"}, {"name": "a", "depends": [0]}])
    assert (await call("get", second))["waits_for"] == [first]
    other = await call("enqueue", "a")
    assert await call("depend", second, add=[other], remove=[first], if_failed="run") == "blocked"
    assert (await call("get", second))["waits_for"] == [other]
    with pytest.raises(Conflict):
        await call("depend", other, add=[second])


async def test_finding_jobs(call: Call) -> None:
    jobs = await call("enqueue_many", [{"name": "a", "tags": ["t", f"n{n % 2}"], "argument": n} for n in range(5)])
    assert [job["id"] for job in await call("jobs", tag="t")] == jobs
    assert [job["id"] for job in await call("jobs", tag="n1", newest=True)] == [jobs[3], jobs[1]]
    assert "argument" not in (await call("jobs", status=["queued"], brief=True, count=2))[0]
    assert await call("tags") == [("n0", 3), ("n1", 2), ("t", 5)]
    assert await call("tags", top=1) == [("t", 5)]
    assert len(await call("jobs", name="a", queue="a")) == 5
    assert [job["id"] for job in await call("peek", "a", 2)] == jobs[:2]
    for wrong in ({"name": ""}, {"queu": "a"}, {"status": "lost"}):
        for method in ("jobs", "discard_where"):
            with pytest.raises(Invalid):
                await call(method, **wrong)


async def test_history_and_tracking(call: Call, own: Engine) -> None:
    job = await call("enqueue", "a")
    assert await call("track", job) == "queued"
    assert (await call("get", job))["track"] is True
    await call("track", job, on=False)
    assert "track" not in await call("get", job)
    await run(own, "a")
    assert [event["event"] for event in (await call("history", job))["events"]] == [
        "enqueued",
        "started",
        "done",
    ]
    for method in ("history", "track", "retry", "discard", "kick"):
        with pytest.raises(NotFound):
            await call(method, UNKNOWN)


async def test_queues(call: Call) -> None:
    assert (await call("set_queue", "a/b", max_waiting=5, set={"retry_base": 2}))["settings"] == {"retry_base": 2}
    fair = [{"by": "argument", "weights": {"x": 2}}]
    assert (await call("set_queue", "a/b", unset=["retry_base"], fair=fair))["fair"] == fair
    assert (await call("pause", "a/b"))["paused"] is True
    assert (await call("resume", "a/b"))["paused"] is False
    assert await call("queue", "a/b") == (await call("queues"))[0]
    await call("enqueue_many", [{"name": "a/b"}] * 3 + [{"name": "a/b", "delay": 9}])
    assert await call("purge", "a/b", ["scheduled"]) == 1
    assert await call("purge", "a/b") == 3
    await call("forget", "a/b")
    with pytest.raises(NotFound):
        await call("queue", "a/b")


async def test_schedules(call: Call) -> None:
    made = await call("schedule", "s", {"name": "a"}, {"k": 1}, cron="@daily", utc_offset=60)
    assert (made["id"], made["argument"], made["cron"]) == ("s", {"k": 1}, "@daily")
    assert len((await call("get_schedule", "s", next=3))["next"]) == 3
    assert len((await call("schedules", next=2))[0]["next"]) == 2
    [listed] = await call("schedules")
    assert listed == made == await call("get_schedule", "s")
    await call("unschedule", "s")
    for method in ("get_schedule", "unschedule"):
        with pytest.raises(NotFound):
            await call(method, "s")
    with pytest.raises(Invalid, match="cron"):
        await call("schedule", "s", {"name": "a"}, cron="x")


async def test_workers(call: Call, own: Engine) -> None:
    worker = await own.register("w", "a")
    for method, request in (("quiet_worker", "quiet"), ("stop_worker", "stop"), ("resume_worker", "")):
        await call(method, worker)
        assert [one["request"] for one in await call("workers")] == [request]
        with pytest.raises(NotFound):
            await call(method, "w" + UNKNOWN)


async def test_statistics_and_settings(call: Call, own: Engine) -> None:
    await call("enqueue", "a")
    await run(own, "a")
    [hour] = await call("stats", queue="a")
    assert (hour["enqueued"], hour["done"]) == (1, 1)
    [pair] = await call("series", "minute", name="a")
    assert (pair["queue"], pair["done"]) == ("a", 1)
    assert (await call("configure", done_max=7))["done_max"] == 7 == (await call("config"))["done_max"]
    assert "done_max" in [one["name"] for one in await call("describe_config")]


async def test_a_copy(call: Call, own: Engine) -> None:
    jobs = await call("enqueue_many", [{"name": "a", "argument": n} for n in range(300)])
    records = await call("export")
    copy = "{c" + secrets.token_hex(6) + "}"
    assert await call("import_records", records, copy) > 300
    [last] = await Engine(own.redis, copy).get(jobs[-1])
    assert last is not None and last["argument"] == msgpack.packb(299)
    with pytest.raises(Conflict):
        await call("import_records", records[:1], own.namespace)


# Events


def follow(server: Server, kind: str, got: list[Event], method: str, *args: Any, **more: Any) -> asyncio.Task[None]:
    """Adds what comes to `got`, in the background."""

    def blocking() -> None:
        with Client(server.url) as client:
            for event in getattr(client, method)(*args, **more):
                got.append(event)
                if event.data.get("name") == "last":
                    return

    async def other() -> None:
        async with AsyncClient(server.url) as client:
            async for event in getattr(client, method)(*args, **more):
                got.append(event)
                if event.data.get("name") == "last":
                    return

    return asyncio.ensure_future(asyncio.to_thread(blocking) if kind == "blocking" else other())


KINDS = pytest.mark.parametrize("kind", ["blocking", "asyncio"])


@KINDS
async def test_a_job_is_followed_to_its_end(kind: str, server: Server, own: Engine) -> None:
    [job] = await own.enqueue([({"name": "a", "max_retry": 1, "retry_base": 0}, b"\xc0")])
    got: list[Event] = []
    following = follow(server, kind, got, "job_events", job.id)
    await eventually(lambda: got)
    await run(own, "a", type="failure")
    await eventually(lambda: len(got) >= 3)
    await own.tick()
    await run(own, "a")
    await asyncio.wait_for(following, 20)
    states = [event.data["state"] for event in got]
    assert states[0] == "queued" and states[-1] == "done" and "retrying" in states
    assert {event.data["id"] for event in got} == {job.id}


@KINDS
async def test_who_follows_an_ended_job_is_told_at_once(kind: str, server: Server, own: Engine) -> None:
    [job] = await own.enqueue([({"name": "a"}, b"\xc0")])
    await run(own, "a")
    got: list[Event] = []
    await asyncio.wait_for(follow(server, kind, got, "job_events", job.id), 20)
    assert [event.data["state"] for event in got] == ["done"]
    with pytest.raises(NotFound):
        await follow(server, kind, got, "job_events", UNKNOWN)


@KINDS
async def test_everything_is_followed(kind: str, server: Server, own: Engine) -> None:
    got: list[Event] = []
    with pytest.raises(Conflict, match="events_max"):
        await follow(server, kind, got, "events")
    await own.config({"events_max": 10_000})
    await own.enqueue([({"name": "first"}, b"\xc0")])
    [first] = await eventually(lambda: _stream(own))
    following = follow(server, kind, got, "events", after="0-0")
    await eventually(lambda: got)
    for _ in range(1500):
        await own.enqueue([({"name": "a"}, b"\xc0")])
    await own.enqueue([({"name": "last"}, b"\xc0")])
    await asyncio.wait_for(following, 30)
    names = [event.data["name"] for event in got]
    assert names == ["first", *["a"] * 1500, "last"]
    assert got[0].id == first
    # Whoever comes back goes on where they were.
    again: list[Event] = []
    await asyncio.wait_for(follow(server, kind, again, "events", after=got[1000].id), 20)
    assert again == got[1001:]


async def _stream(own: Engine) -> list[str]:
    return [entry[0].decode() for entry in await own.redis.xrange(f"{own.namespace}:events")]


@KINDS
async def test_a_gap_is_told(kind: str, server: Server, own: Engine) -> None:
    await own.config({"events_max": 1000})
    await own.enqueue([({"name": "last"}, b"\xc0")])
    got: list[Event] = []
    await follow(server, kind, got, "events", after="1-0")
    assert [event.kind for event in got] == ["missed", "message"]


@KINDS
async def test_followers_are_let_go_when_the_server_stops(
    kind: str, server: Server, own: Engine, redis_url: str
) -> None:
    await own.config({"events_max": 1000})
    [job] = await own.enqueue([({"name": "a"}, b"\xc0")])
    got: list[Event] = []
    both = [follow(server, kind, got, "events", after="0-0"), follow(server, kind, got, "job_events", job.id)]
    await eventually(lambda: len(got) == 2)
    await asyncio.wait_for(server.stop(), 8)
    for one in both:
        await asyncio.wait_for(one, 8)


@KINDS
async def test_events_survive_a_lost_connection_to_redis(kind: str, server: Server, own: Engine) -> None:
    await own.config({"events_max": 1000})
    [job] = await own.enqueue([({"name": "a"}, b"\xc0")])
    got: list[Event] = []
    of_job: list[Event] = []
    following = follow(server, kind, got, "events", after="0-0")
    job_following = follow(server, kind, of_job, "job_events", job.id)
    await eventually(lambda: got and of_job)
    await own.redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await own.redis.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
    await run(own, "a")
    await own.enqueue([({"name": "last"}, b"\xc0")])
    await asyncio.wait_for(following, 20)
    await asyncio.wait_for(job_following, 20)
    assert [event.data["state"] for event in got] == ["queued", "running", "done", "queued"]
    assert of_job[-1].data["state"] == "done"


@pytest.mark.parametrize(
    ("status", "code", "raised"),
    [
        (400, "INVALID", Invalid), (404, "NOTFOUND", NotFound), (409, "CONFLICT", Conflict), (409, "LOST", Internal),
        (429, "FULL", Full), (503, "VERSION", Unavailable), (503, "UNAVAILABLE", Unavailable),
        (500, "INTERNAL", Internal),
    ],
)  # fmt: skip
def test_answers_that_are_errors_are_raised(status: int, code: str, raised: type[JQError]) -> None:
    with pytest.raises(JQError) as caught:
        asks.content(status, asks.pack({"error": {"code": code, "message": "why"}}))
    assert (type(caught.value), caught.value.message) == (raised, "why")
