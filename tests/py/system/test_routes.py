"""Queues with a route: jobs of one value share a partition, and limits by it hold in the whole system."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import msgpack
import pytest

from cli_support import Said, call  # noqa: F401 (fixture)
from jqmaster.errors import Conflict, Invalid, NotFound
from jqmaster.system import bringing, calls
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of, unpack
from jqmaster.system.resizing import add, route
from jqmaster.system.routing import segments_of, value_of
from jqmaster.worker.run import WorkOptions, work
from systems import walked

COUNT = 4
NIL = msgpack.packb(None)
PATH = "argument.customer"
BY = {"match": {"queue": "mail"}, "by": PATH, "concurrency": 2}


@pytest.fixture
async def engine(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    await calls.create(redis_url, namespace, COUNT)
    await route(redis_url, namespace, "mail", PATH)
    engine = SystemEngine(redis_url, namespace)
    yield engine
    await engine.close()


def mail(customer: Any, **fields: Any) -> tuple[dict[str, Any], bytes]:
    return {"name": "mail", **fields}, msgpack.packb({"customer": customer})


# -- values --------------------------------------------------------------------------------------------

ARGUMENTS = [
    *map(msgpack.packb, (None, 5, "acme", [], {}, {"a": {}}, {"a": None}, [{"b": "x"}], {"a": {"c": 1}})),
    *(msgpack.packb({"a": {"b": one}}) for one in (
        "acme", "", "5", "é", 5, 5.0, -5, 0, -0.0, 2**53, 2**63, 2**64 - 1, -(2**63), 1.5, 1e20, float("nan"),
        True, False, None, [1], {"b": 1}, msgpack.ExtType(5, b"acme"),
    )),
    msgpack.packb({"a": [1, {"b": "acme"}], "b": 0}),
    b"\x82\xa1a\x81\xa1b\xa4acme\xa1a\x81\xa1b\xa1x",  # a key that is there twice: the first counts
    b"\x81\xa1a\x81\xa1b\xa2\xff\xfe",  # no UTF-8
    msgpack.packb({"a": {"b": 5}}) + b"\x05",  # not one value
    b"\x81\xa1a",
    msgpack.packb({"a": {"b": "acme", "filler": "x" * 20_000}}),
    msgpack.packb({b"a": {"b": "acme"}}),
    msgpack.packb({"a": {1: "one"}}),
]  # fmt: skip


def test_what_counts_as_a_value() -> None:
    def of(argument: Any, path: str = "argument.a.b") -> bytes:
        return value_of(path, "q", argument if isinstance(argument, bytes) else msgpack.packb(argument))

    assert of({"a": {"b": "acme"}}) == b"acme"
    assert [of({"a": {"b": one}}) for one in (5, 5.0, "5", 2**64 - 1)] == [b"5", b"5", b"5", b"18446744073709551615"]
    assert {of({"a": {"b": one}}) for one in (None, True, 1.5, [1], b"acme")} == {b""}
    assert of({"a": [{"b": "x"}]}, "argument.a.0.b") == b"x" and of({"a": {1: "x"}}, "argument.a.1") == b"x"
    assert of({"a.b": {"\\": "x"}}, r"argument.a\.b.\\") == b"x"
    assert of(b"\x82\xa1a\xa1x\xa1a\xa1y", "argument.a") == b"x"
    assert of({"a": 1}, "queue") == b"q"


LONG = ["argument." + "a." * 32 + "a", "argument." + "a" * 1024]


@pytest.mark.parametrize(
    "path", ["", "name", "argument", "argument.", "argument..a", "argument.a.", "arg.a", "argument.a\\b", *LONG]
)
def test_what_is_no_route(path: str) -> None:
    with pytest.raises(Invalid, match="path"):
        segments_of(path)


@pytest.mark.parametrize("path", ["argument.a.b", "argument.a.1", "argument.a.1.b", "argument.0.b"])
async def test_what_the_engine_takes_for_one_value_has_one_bucket(engine: SystemEngine, path: str) -> None:
    one = (await engine.partitions())[0]
    await one.constrain("c", {"name": "a"}, by=path, concurrency=1)
    values: dict[str, set[bytes]] = {}
    for argument in ARGUMENTS:
        [made] = await one.enqueue([({"name": "a"}, argument)])
        [shown] = (await one.explain(made.id))["constraints"]
        values.setdefault(repr(shown["by"]), set()).add(value_of(path, "a", argument))
    assert len(values) > 1
    assert all(len(found) == 1 for found in values.values()), values


# -- routing -------------------------------------------------------------------------------------------


async def test_jobs_of_one_value_share_a_partition(engine: SystemEngine) -> None:
    made = await engine.enqueue([mail(f"c{number % 8}", unique=f"u{number}") for number in range(64)])
    places = [{partition_of(one.id) for one in made[number::8]} for number in range(8)]
    assert all(len(one) == 1 for one in places) and len(set.union(*places)) > 1
    record = await calls.read(engine.url, engine.root)
    assert places == [{record.home(f"c{number}".encode())} for number in range(8)]
    [other] = await engine.enqueue([mail("c1", name="other", queue="mail", depends=[made[0].id])])
    assert {partition_of(other.id)} == places[1]  # whatever it depends on


async def test_a_queue_can_be_kept_together(engine: SystemEngine) -> None:
    await route(engine.url, engine.root, "one", "queue")
    await engine.look()
    made = [one for number in range(10) for one in await engine.enqueue([({"name": "one"}, msgpack.packb(number))])]
    assert len({partition_of(one.id) for one in made}) == 1


async def test_who_knows_of_no_route_yet_learns_of_it(engine: SystemEngine) -> None:
    await engine.partitions()
    await route(engine.url, engine.root, "later", PATH)
    made = [(await engine.enqueue([mail("acme", name="later")]))[0] for _ in range(10)]
    assert len({partition_of(one.id) for one in made}) == 1


def other_customer(engine: SystemEngine, than: str) -> str:
    assert engine.record is not None
    home = engine.record.home(than.encode())
    return next(f"x{n}" for n in itertools.count() if engine.record.home(f"x{n}".encode()) != home)


async def test_what_would_lead_elsewhere_is_refused(engine: SystemEngine) -> None:
    await engine.partitions()
    other = other_customer(engine, "acme")
    with pytest.raises(Invalid, match=r"jobs\[1\].queue"):
        await engine.enqueue([mail("acme"), mail(other, depends=[0])])
    [made] = await engine.enqueue([({"name": "plain"}, NIL)])
    with pytest.raises(Invalid, match="queue"):
        await engine.change([({"id": made.id, "queue": "mail"}, b"")])
    with pytest.raises(Invalid, match="queue"):
        await engine.retry([made.id], queue="mail")
    [routed] = await engine.enqueue([mail("acme")])
    same = msgpack.packb({"customer": "acme", "more": 1})
    assert await engine.change([({"id": routed.id}, same), ({"id": made.id}, same)]) == ["queued", "queued"]
    with pytest.raises(Invalid, match=r"jobs\[1\].argument"):
        await engine.change([({"id": made.id}, same), ({"id": routed.id}, msgpack.packb({"customer": other}))])
    [job] = (await (await engine.of(made.id)).pick("w", "plain")).jobs
    place = partition_of(job.id)
    assert engine.record is not None
    elsewhere = next(f"x{n}" for n in itertools.count() if engine.record.home(f"x{n}".encode()) != place)
    outcome = {"id": job.id, "token": job.token, "type": "success"}
    with pytest.raises(Invalid, match=r"outcomes\[0\].enqueue\[1\].depends\[0\]"):
        await engine.finish("w", [(outcome, NIL, [mail(elsewhere), ({"name": "plain", "depends": [0]}, NIL)])])
    assert (await engine.get(made.id))[0]["status"] == "running"


async def test_what_follows_a_job_goes_where_its_route_leads(engine: SystemEngine) -> None:
    values: list[Any] = ["acme", "é", "", 5, -3, 2.0, 2.5, None, True, ["x"], {"y": 1}, b"bytes", 2**63]
    arguments = [msgpack.packb({"customer": value}) for value in values] + [NIL]
    await engine.enqueue([({"name": "plain"}, NIL)])
    [job] = (await engine.pick("w", "plain")).jobs
    follow = [({"name": "mail"}, argument) for argument in arguments]
    await engine.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL, follow)])
    for _ in range(2):
        await Courier(engine).carry_all()
    found = await walked(partial(engine.jobs, {"queue": "mail"}), 100)
    assert engine.record is not None
    places = Counter((partition_of(one["id"]), one["argument"]) for one in found)
    assert places == Counter((engine.record.home(value_of(PATH, "mail", one)), one) for one in arguments)


async def test_unique_keys_hold_within_a_value(engine: SystemEngine) -> None:
    await engine.partitions()
    other = other_customer(engine, "acme")
    first = await engine.enqueue([mail("acme", unique="u")])
    again = await engine.enqueue([mail("acme", unique="u")])
    elsewhere = await engine.enqueue([mail(other, unique="u")])
    assert first[0].id == again[0].id != elsewhere[0].id
    assert await engine.free("u") in (first[0].id, elsewhere[0].id)
    assert (await engine.enqueue([mail("acme", unique="u")]))[0].created
    await engine.free("u")
    with pytest.raises(NotFound):
        await engine.free("u")


async def test_a_route_changes_while_there_are_no_jobs(engine: SystemEngine) -> None:
    [made] = await engine.enqueue([mail("acme")])
    for path in ("queue", None):
        with pytest.raises(Conflict, match="1 jobs"):
            await route(engine.url, engine.root, "mail", path)
    assert (await route(engine.url, engine.root, "mail", PATH)).generation == 2  # as it is
    await engine.cancel([made.id])
    await engine.constrain("c", BY["match"], by=PATH, concurrency=2)
    with pytest.raises(Conflict, match="constraint c"):
        await route(engine.url, engine.root, "mail", None)
    await engine.unconstrain("c")
    record = await route(engine.url, engine.root, "mail", None)
    assert record.routes == {} and record.generation == 3
    with pytest.raises(Invalid, match="path"):
        await route(engine.url, engine.root, "mail", "customer")


async def test_a_route_comes_behind_those_that_partition_0_lost(engine: SystemEngine) -> None:
    """As after a failover: of two records of one generation partitions would keep either."""
    first = (await engine.partitions())[0]
    before: Any = await first.redis.get(f"{first.namespace}:system")
    await route(engine.url, engine.root, "a", PATH)
    await first.redis.mset({f"{first.namespace}:system": before, f"{first.namespace}:generation": 2})
    record = await route(engine.url, engine.root, "b", PATH)
    assert record.generation == 4 and record.routes == dict.fromkeys(("mail", "a", "b"), PATH)
    for one in await engine.partitions():
        kept: Any = await one.redis.get(f"{one.namespace}:system")
        assert unpack(kept) == record


# -- limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "match", "limits"),
    [
        ("by", {"name": "mail"}, {"by": PATH, "concurrency": 1}),
        ("by", {"queue": "ma*"}, {"by": PATH, "concurrency": 1}),
        ("by", {"queue": ["mail", "other"]}, {"by": PATH, "concurrency": 1}),
        ("by", {"queue": {"ne": "mail"}}, {"by": PATH, "concurrency": 1}),
        ("by", {"queue": "mail"}, {"by": "argument.country", "concurrency": 1}),
        ("by", {"queue": ["mail", "one"]}, {"by": PATH, "concurrency": 1}),
        ("by", {"queue": "mail"}, {"order": "strict", "concurrency": 1}),
        ("cost", {"queue": "other"}, {"cost": 1, "rate": {"limit": 5, "period": 1}}),
        ("rate.smooth", {"queue": "other"}, {"rate": {"limit": 5, "period": 1, "smooth": True}}),
    ],
)
async def test_what_no_route_keeps_together_is_refused(
    engine: SystemEngine, field: str, match: Any, limits: dict[str, Any]
) -> None:
    await route(engine.url, engine.root, "one", "queue")
    await engine.look()
    with pytest.raises(Invalid) as refusal:
        await engine.constrain("c", match, **limits)
    assert refusal.value.path in (field, "by", "order"), refusal.value
    assert (await engine.constraints()).documents == []


@pytest.mark.parametrize("by", [PATH, [PATH, "argument.country"]])
async def test_a_limit_by_a_value_holds_in_the_whole_system(engine: SystemEngine, by: Any) -> None:
    """Whatever workers do, and with nobody who balances: each partition knows all of a key."""
    await engine.constrain("c", {"queue": "mail"}, by=by, concurrency=2)
    customers = [f"c{number}" for number in range(6)]
    chance = random.Random(1)
    jobs = [mail(chance.choice(customers)) for _ in range(90)]
    for at in range(0, len(jobs), 9):
        await engine.enqueue(jobs[at : at + 9])
    runs: Counter[str] = Counter()
    most: Counter[str] = Counter()
    left, stop = len(jobs), asyncio.Event()

    async def function(argument: Any) -> None:
        nonlocal left
        customer = argument["customer"]
        runs[customer] += 1
        most[customer] = max(most[customer], runs[customer])
        await asyncio.sleep(chance.uniform(0.005, 0.02))
        runs[customer] -= 1
        left -= 1
        if not left:
            stop.set()

    options = WorkOptions({"mail": function}, redis_url=engine.url, system=engine.root, concurrency=8)
    async with asyncio.timeout(60):
        await asyncio.gather(*(work(options, stop) for _ in range(3)))
    assert most == dict.fromkeys(customers, 2)
    [document] = (await engine.constraints(["c"])).documents
    assert "share" not in document and document["running"] == 0


async def test_order_holds_in_the_whole_system(engine: SystemEngine) -> None:
    await route(engine.url, engine.root, "one", "queue")
    await engine.look()
    await engine.constrain("c", {"queue": "one"}, order="strict", concurrency=1)
    for number in range(20):
        await engine.enqueue([({"name": "one", "max_retry": 0}, msgpack.packb(number))])
    seen: list[int] = []
    stop = asyncio.Event()

    async def function(argument: int) -> None:
        await asyncio.sleep(0.001)
        seen.append(argument)
        if argument == 19:
            stop.set()

    options = WorkOptions({"one": function}, redis_url=engine.url, system=engine.root, concurrency=4)
    async with asyncio.timeout(60):
        await asyncio.gather(*(work(options, stop) for _ in range(3)))
    assert seen == list(range(20))


async def test_a_partition_that_missed_it_or_comes_later_gets_such_a_constraint(engine: SystemEngine) -> None:
    await engine.constrain("c", {"queue": "mail"}, by=PATH, concurrency=1, order="strict")
    await (await engine.partitions())[2].unconstrain("c")
    assert await bringing.sync(engine) == [[], [], ["constraint c"], []]
    assert await bringing.sync(engine) == [[]] * COUNT
    await add(engine.url, engine.root, 1)
    await engine.look()
    told = [(await one.constraints(["c"])).documents for one in await engine.partitions()]
    assert [[one["by"], one["concurrency"], one["order"]] for [one] in told] == [[PATH, 1, "strict"]] * (COUNT + 1)


# -- the command line ----------------------------------------------------------------------------------


def test_routes_by_the_command_line(call: Callable[..., Said], redis_url: str, namespace: str) -> None:
    asyncio.run(calls.create(redis_url, namespace, COUNT))

    def told(*arguments: str) -> Said:
        return call("system", *arguments, "--redis", redis_url, "--namespace", namespace)

    assert told("route", "mail", PATH).out == f"mail has the route {PATH}, generation 2\n"
    assert f"queue mail: route {PATH}" in told("show").out
    assert told("show", "--json").document["routes"] == {"mail": PATH}
    said = told("route", "mail")
    assert said.code != 0 and "--none" in said.err
    said = told("route", "mail", "customer")
    assert said.code != 0 and "argument.customer" in said.err
    assert told("route", "mail", "--none").out == "mail has no route, generation 3\n"
