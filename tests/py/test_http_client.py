"""Constraints through both clients, and a worker that answers "not now"."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from jqmaster.client import AsyncClient, Client

from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Invalid, NotFound
from jqmaster.master.server import ServeOptions, Server
from jqmaster.worker.run import WorkOptions, work
from jqmaster.worker.worker import Function, JobReleased
from parts import enqueue, eventually, status, until

WAYS = ("redis", "http", "push", "synchronous")
MATCH = {"name": "mail"}


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
    """Calls a client's method by name."""
    if request.param == "blocking":
        with Client(server.url) as client:
            yield lambda method, *args, **more: asyncio.to_thread(getattr(client, method), *args, **more)
    else:
        async with AsyncClient(server.url) as other:
            yield lambda method, *args, **more: getattr(other, method)(*args, **more)


async def last_event(engine: Engine, job: str) -> dict[str, Any]:
    """Of a job's history, how its last attempt ended."""
    events = (await engine.history(job))["events"]
    return next(event for event in reversed(events) if event["event"] == "released")


async def test_a_constraint_from_beginning_to_end(call: Call) -> None:
    rate = {"limit": 100, "period": 60}
    made = await call("constrain", "mail/ä", MATCH, by="argument.who", concurrency=5, rate=rate, cost=2)
    assert (made["id"], made["match"], made["rate"], made["cost"]) == ("mail/ä", MATCH, rate, 2)
    assert await call("constraint", "mail/ä") == made
    assert await call("constraints") == [made]
    assert await call("usage", "mail/ä") == []
    replaced = await call("constrain", "mail/ä", match={"tags": "a"}, concurrency=1, order="strict")
    assert (replaced["concurrency"], replaced["order"]) == (1, "strict") and "rate" not in replaced
    await call("unconstrain", "mail/ä")
    assert await call("constraints") == []


async def test_what_is_refused(call: Call) -> None:
    with pytest.raises(Invalid, match=r"match\.argument\.size\.lt"):
        await call("constrain", "c", {"argument.size": {"lt": []}}, concurrency=1)
    with pytest.raises(Invalid, match="concurrency"):
        await call("constrain", "c", MATCH)
    for method, *arguments in (("unconstrain", "c"), ("constraint", "c"), ("usage", "c"), ("hold", "c", 1),
                               ("explain", "00000000000001")):  # fmt: skip
        with pytest.raises(NotFound):
            await call(method, *arguments)


async def test_hold_and_explain(call: Call, own: Engine) -> None:
    await call("constrain", "c", MATCH, by="argument.who", concurrency=1)
    until_ms = await call("hold", "c", 1000, by="a")
    job = await call("enqueue", "mail", {"who": "a"})
    assert (await own.pick("w", "mail")).jobs == []
    explained = await call("explain", job)
    assert (explained["status"], explained["held"]) == ("queued", True)
    assert explained["constraints"][0]["opens_ms"] == until_ms == explained["start_ms"]
    await call("hold", "c", 0, by="a")
    assert [job.id for job in (await own.pick("w", "mail")).jobs] == [job]
    [key] = await call("usage", "c")
    assert (key["by"], key["running"]) == ("a", 1)


async def test_usage_of_more_than_a_page(call: Call, own: Engine) -> None:
    await call("constrain", "c", MATCH, by="argument", concurrency=1)
    # One of the values is text that is not UTF-8.
    await own.enqueue([({"name": "mail"}, b"\xcd" + number.to_bytes(2, "big")) for number in range(1000)])
    await own.enqueue([({"name": "mail"}, b"\xa1\xff")])
    while (await own.pick("w", "mail", 1000)).next_ms == 0:
        pass
    keys = await call("usage", "c")
    assert {key["by"] for key in keys} == {*range(1000), "\udcff"} and len(keys) == 1001


async def test_many_constraints_are_listed(call: Call) -> None:
    for number in range(20):
        await call("constrain", f"c{number:02}", MATCH, concurrency=1)
    assert [one["id"] for one in await call("constraints")] == [f"c{number:02}" for number in range(20)]


# "Not now"


@asynccontextmanager
async def working(way: str, server: Server, functions: dict[str, Function]) -> AsyncIterator[None]:
    stop = asyncio.Event()
    options = WorkOptions(
        functions=functions, redis_url=server.redis_url if way == "redis" else None,
        namespace=server.options.namespace, masters=[server.url],
        push=way in ("push", "synchronous"), synchronous=way == "synchronous", concurrency=1,
    )  # fmt: skip
    task = asyncio.create_task(work(options, stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 20)


@pytest.mark.parametrize("way", WAYS)
async def test_a_function_that_says_not_now_closes_its_key(way: str, server: Server, own: Engine) -> None:
    async with AsyncClient(server.url) as jq:
        await jq.constrain("per-customer", MATCH, by="argument.who", concurrency=5)

        async def mail(argument: dict[str, Any]) -> None:
            if argument["who"] == "a":
                raise JobReleased("the server is busy", hold={"per-customer": 1000})

        first = await enqueue(own, "mail", {"who": "a"})
        second = await enqueue(own, "mail", {"who": "a"})
        other = await enqueue(own, "mail", {"who": "b"})
        async with working(way, server, {"mail": mail}):
            await until(own, other, "done")
            [document] = [key for key in await jq.usage("per-customer") if key["by"] == "a"]
            assert document["running"] == 0 and document["hold_ms"] == document["opens_ms"]
            assert (await last_event(own, first))["message"] == "the server is busy"
        attempts = []
        for job in (first, second):
            [shown] = await own.get(job)
            assert shown is not None and (shown["status"], shown["retry_count"]) == ("queued", 0)
            attempts.append(shown["attempt"])
        assert attempts == [1, 0]


@pytest.mark.parametrize("way", WAYS)
async def test_a_function_may_put_its_job_off(way: str, server: Server, own: Engine) -> None:
    def mail(argument: Any) -> None:
        raise JobReleased(delay=1000)

    async with working(way, server, {"mail": mail}):
        job = await enqueue(own, "mail")
        shown = await until(own, job, "scheduled")
        assert (shown["retry_count"], shown["attempt"]) == (0, 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gone", ["gone", "also: gone"])
async def test_a_hold_on_what_is_gone_puts_the_job_off(way: str, gone: str, server: Server, own: Engine) -> None:
    def mail(argument: Any) -> None:
        raise JobReleased("429", delay=1, hold={gone: 2000, "there": 1000})

    async with AsyncClient(server.url) as jq, working(way, server, {"mail": mail}):
        await jq.constrain("there", MATCH, concurrency=5)
        job = await enqueue(own, "mail")
        shown = await until(own, job, "scheduled")
        assert shown["due_ms"] - shown["started_ms"] >= 2_000_000
        said = (await last_event(own, job))["message"]
        assert said.startswith("429 (not held: NOTFOUND hold.") and f"no such constraint: {gone}" in said
        # A path with a blank in it names nothing exactly; then this job alone waits.
        assert ("opens_ms" in await jq.constraint("there")) is (gone == "gone")


@pytest.mark.parametrize("way", WAYS)
async def test_a_wrong_release_puts_the_job_off(way: str, server: Server, own: Engine) -> None:
    wrong: dict[str, tuple[dict[str, Any], str]] = {
        "negative": ({"hold": {"c": -1}}, "INVALID hold.c: expected seconds from 0 to 31536000, got -1"),
        "no number": ({"hold": {"c": "5s"}}, 'got "5s"'),
        "no value": ({"hold": {"c": object()}}, "not held"),
        "bad id": ({"hold": {"\udcff": 1}}, "not held"),
        "delay": ({"delay": "soon", "hold": {"c": 1}}, "put off for 10 s: INVALID delay: expected seconds"),
        "both": ({"delay": -1, "hold": {"c": math.nan}}, "not held"),
        "too many": ({"hold": {str(number): 1 for number in range(11)}}, "expected 1 to 10 constraints"),
    }

    def mail(argument: str) -> None:
        raise JobReleased("429 \udcff", **wrong[argument][0])

    async with AsyncClient(server.url) as jq, working(way, server, {"mail": mail}):
        await jq.constrain("c", {"name": "other"}, concurrency=5)
        for kind, (_, says) in wrong.items():
            job = await enqueue(own, "mail", kind, max_retry=0)
            shown = await until(own, job, "scheduled")
            assert 900 <= shown["due_ms"] - shown["started_ms"] <= 20_000
            said = (await last_event(own, job))["message"]
            assert said.startswith("429 ?") and says in said, kind


@pytest.mark.parametrize("way", WAYS)
async def test_a_release_may_be_for_timedeltas(way: str, server: Server, own: Engine) -> None:
    async with AsyncClient(server.url) as jq:
        await jq.constrain("c", MATCH, concurrency=5)

        def mail(argument: Any) -> None:
            raise JobReleased("later", delay=timedelta(minutes=5), hold={"c": timedelta(hours=1)})

        async with working(way, server, {"mail": mail}):
            job = await enqueue(own, "mail")
            shown = await until(own, job, "scheduled")
        assert shown["due_ms"] - shown["started_ms"] >= 300_000
        constraint = await jq.constraint("c")
        assert constraint["hold_ms"] - shown["started_ms"] >= 3_600_000
        assert (await last_event(own, job))["message"] == "later"


@pytest.mark.parametrize("way", ["redis", "http"])
async def test_a_full_worker_goes_on_after_not_now(way: str, server: Server, own: Engine) -> None:
    async def mail(argument: int) -> None:
        if argument % 2:
            raise JobReleased(delay=1000)

    jobs = [await enqueue(own, "mail", number) for number in range(30)]
    async with working(way, server, {"mail": mail}):
        await eventually(lambda: _are(own, jobs[0::2], "done"))
        await eventually(lambda: _are(own, jobs[1::2], "scheduled"))


async def _are(engine: Engine, jobs: list[str], state: str) -> bool:
    return {await status(engine, job) for job in jobs} == {state}


# Whoever waits for jobs learns that there is room


@pytest.mark.parametrize("way", WAYS)
async def test_jobs_start_when_their_window_opens(way: str, server: Server, own: Engine) -> None:
    async def mail(argument: Any) -> None:
        pass

    async with AsyncClient(server.url) as jq, working(way, server, {"mail": mail}):
        await jq.constrain("rate", MATCH, rate={"limit": 1, "period": 0.2})
        jobs = [await enqueue(own, "mail") for _ in range(4)]
        await eventually(lambda: _are(own, jobs, "done"))


@pytest.mark.parametrize("opened_by", ["hold", "unconstrain", "constrain", "resume"])
@pytest.mark.parametrize("way", WAYS)
async def test_held_jobs_start_when_somebody_opens(way: str, opened_by: str, server: Server, own: Engine) -> None:
    async def mail(argument: Any) -> None:
        pass

    async with AsyncClient(server.url) as jq, working(way, server, {"mail": mail, "idle": mail}):
        await jq.constrain("c", MATCH, concurrency=1)
        await jq.hold("c", 1000)
        if opened_by == "resume":
            await own.queue("mail", paused=True)
        jobs = [await enqueue(own, "mail") for _ in range(3)]
        # One that is not held has run: whoever runs them has looked at those that are.
        await until(own, await enqueue(own, "idle"), "done")
        assert await _are(own, jobs, "queued")
        if opened_by == "unconstrain":
            await jq.unconstrain("c")
        elif opened_by == "constrain":
            await jq.constrain("c", {"name": "other"}, concurrency=1)
        else:
            await jq.hold("c", 0)
            await own.queue("mail", paused=False)
        await eventually(lambda: _are(own, jobs, "done"))


@pytest.mark.parametrize("way", ["redis", "http", "push"])
async def test_room_that_comes_back_goes_to_the_next_worker(way: str, server: Server, own: Engine) -> None:
    most = under_way = 0

    async def mail(argument: Any) -> None:
        nonlocal most, under_way
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    async with AsyncClient(server.url) as jq:
        await jq.constrain("c", MATCH, by="argument", concurrency=1)
        await jq.constrain("all", MATCH, concurrency=2)
        async with working(way, server, {"mail": mail}), working(way, server, {"mail": mail}):
            jobs = [await enqueue(own, "mail", number % 3) for number in range(60)]
            await eventually(lambda: _are(own, jobs, "done"), 30)
    assert most <= 2
