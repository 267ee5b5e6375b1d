"""`doctor`: each thing that may be wrong, as a finding that says what to do."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import msgpack
import pytest

from cli_support import Cli, call, straight  # noqa: F401 (fixtures)
from jqmaster import JQ
from jqmaster.doctor import doctor, redis_side
from jqmaster.doctor.facts import Source, gather, needs_value
from jqmaster.doctor.finding import Finding
from jqmaster.doctor.redis_side import Server
from jqmaster.engine.engine import Engine
from settable import SettableEngine

NIL = b"\xc0"


async def found(engine: SettableEngine) -> dict[str, Finding]:
    """What is wrong, or noteworthy, by check; the last of each."""
    facts = await gather(Source(engine), engine.now_ms)
    return {one.check: one for one in doctor.check.of(facts) if one.level != "ok"}


async def test_a_fresh_namespace_is_well(settable: SettableEngine) -> None:
    assert await found(settable) == {}


async def test_a_queue_that_nobody_serves(settable: SettableEngine) -> None:
    await settable.enqueue([({"name": "mail"}, NIL)] * 3)
    assert await found(settable) == {}  # it is young
    await settable.advance(60)
    finding = (await found(settable))["unserved"]
    assert finding.level == "problem" and finding.about == "mail" and "3 jobs" in finding.title
    assert (finding.since_ms, finding.as_of_ms) == (settable.now_ms - 60_000, settable.now_ms)
    assert "mail" in finding.do
    await settable.register("w", ["mail"])
    assert await found(settable) == {}, "it is not far behind yet"


async def test_a_job_that_no_worker_knows(settable: SettableEngine) -> None:
    await settable.enqueue([({"name": "new", "queue": "mail"}, NIL)])
    await settable.advance(3600)
    await settable.register("w", ["mail"], announce=True, refused=["new"])
    known = await found(settable)
    assert "unserved" not in known and "late" not in known
    finding = known["unknown"]
    assert finding.level == "problem" and finding.about == "mail" and "named new" in finding.title
    await settable.register("v", ["mail"], announce=True)
    assert "unknown" not in await found(settable)


async def test_a_queue_that_is_far_behind(settable: SettableEngine) -> None:
    await settable.enqueue([({"name": "mail"}, NIL)])
    await settable.advance(3600)
    await settable.register("w", ["mail"])
    late = (await found(settable))["late"]
    assert late.level == "warning" and late.values["cause"] == "workers"
    await settable.constrain("c", {"name": "mail"}, rate={"limit": 1, "period": 60})
    await settable.hold("c", 600)
    late = (await found(settable))["late"]
    assert late.values["cause"] == "constraints" and "limits show c" in late.do


async def test_a_paused_queue_with_waiting_jobs(settable: SettableEngine) -> None:
    await settable.enqueue([({"name": "mail"}, NIL)])
    await settable.queue("mail", paused=True)
    await settable.advance(60)
    wrong = await found(settable)
    assert wrong.keys() == {"paused"} and "resume mail" in wrong["paused"].do


async def test_a_full_queue(settable: SettableEngine) -> None:
    await settable.queue("mail", max_waiting=1)
    await settable.enqueue([({"name": "mail"}, NIL)])
    assert (await found(settable))["full"].level == "problem"


async def test_leases_and_delays_that_nobody_attends_to(settable: SettableEngine) -> None:
    await settable.enqueue([({"name": "a"}, NIL), ({"name": "b", "delay": 5}, NIL)])
    await settable.pick("w", "a")
    await settable.advance(60)
    facts = await gather(Source(settable), settable.now_ms)
    titles = " ".join(one.title for one in doctor.check.of(facts) if one.check == "sweeping")
    assert "queue a: a lapsed lease" in titles and "queue b: a scheduled job" in titles
    await settable.tick()
    wrong = await found(settable)
    assert "sweeping" not in wrong and "1 lease lapsed" in wrong["lapsed"].title


async def test_a_job_that_waits_for_one_that_failed(settable: SettableEngine) -> None:
    [first] = await settable.enqueue([({"name": "a", "max_retry": 0}, NIL)])
    [second] = await settable.enqueue([({"name": "b", "depends": [first.id]}, NIL)])
    [job] = (await settable.pick("w", "a")).jobs
    outcome = {"id": job.id, "token": job.token, "type": "failure", "message": "no"}
    await settable.finish("w", [(outcome, NIL)])
    await settable.tick()
    wrong = await found(settable)
    assert wrong["blocked"].about == second.id and f"retry {first.id}" in wrong["blocked"].do
    assert wrong["failures"].level == "note"


async def test_a_constraint_that_never_finds_what_it_asks_for(settable: SettableEngine) -> None:
    right = {"name": "mail", "argument.to.0.country": "DE", "argument.a\\.b": 1, "argument.7": {"ge": 1}}
    wrong = {"name": {"eq": "mail"}, "argument.to.1.country": ["DE"], "argument.plan": {"ne": "free"}}
    rate = {"limit": 10, "period": 60}
    await settable.constrain("right", right, rate=rate, cost="argument.size")
    await settable.constrain("wrong", wrong, rate=rate, cost="argument.sice", by="argument.custmer")
    await settable.constrain("absent", {"argument.plan": {"exists": False}, "not": {"argument.x": 1}}, concurrency=1)
    await settable.constrain("others", {"name": "mail.*", "argument.x": 1}, concurrency=1)
    argument = msgpack.packb({"to": [{"country": "FR"}], "a.b": 2, 7: 0, "size": 3})
    await settable.enqueue([({"name": "mail"}, argument)] * 2)
    assert await found(settable) == {}, "of two jobs one cannot tell"
    await settable.enqueue([({"name": "mail"}, argument), ({"name": "mail"}, NIL)])
    facts = await gather(Source(settable), settable.now_ms)
    notes = [finding for finding in doctor.check.of(facts) if finding.level == "note"]
    assert [(one.check, one.about, one.values) for one in notes] == [
        ("paths", "wrong", {"field": "match", "path": "argument.to.1.country", "jobs": 4}),
        ("paths", "wrong", {"field": "cost", "path": "argument.sice", "jobs": 4}),
        ("paths", "wrong", {"field": "by", "path": "argument.custmer", "jobs": 4}),
    ]
    assert [one.means for one in notes] == ["It limits none of them.", "Each counts 1.", "They share one key."]


async def test_a_constraint_that_is_held_for_long(settable: SettableEngine) -> None:
    await settable.constrain("c", {"name": "mail"}, by="argument", concurrency=1)
    await settable.hold("c", 7200, by="ann")
    finding = (await found(settable))["constraints"]
    assert "2 h" in finding.title and """limits hold c 0 --by '"ann"'""" in finding.do


async def test_a_strict_key_kept_by_a_job_that_failed(settable: SettableEngine) -> None:
    await settable.constrain("c", {"name": "mail"}, concurrency=1, order="strict")
    await settable.enqueue([({"name": "mail", "retry_base": 3600}, NIL)] * 2)
    [job] = (await settable.pick("w", "mail")).jobs
    outcome = {"id": job.id, "token": job.token, "type": "failure", "message": "no"}
    await settable.finish("w", [(outcome, NIL)])
    await settable.pick("w", "mail")
    assert f"others wait for job {job.id}" in (await found(settable))["constraints"].title


async def test_schedules_that_never_come(settable: SettableEngine) -> None:
    now_s = settable.now_ms / 1000
    await settable.schedule("over", {"name": "a"}, every=60, end=now_s - 1000, start=now_s - 5000)
    await settable.tick()
    assert (await found(settable))["schedules"].about == "over"
    await settable.schedule("often", {"name": "a"}, every=60)
    await settable.advance(600)
    assert "often" in (await found(settable))["sweeping"].title


async def test_a_group_of_failures_that_grows(settable: SettableEngine) -> None:
    await settable.enqueue([({"name": "a", "max_retry": 0}, NIL)] * 12)
    for job in (await settable.pick("w", "a", 12)).jobs:
        outcome = {"id": job.id, "token": job.token, "type": "failure", "message": "no", "group": "it's"}
        await settable.finish("w", [(outcome, NIL)])
    finding = (await found(settable))["failures"]
    assert finding.level == "warning" and finding.values["recent"] == 12
    assert """--group 'it'"'"'s'""" in finding.do  # fit for a shell
    await settable.advance(2 * 3600)
    assert "failures" not in await found(settable)


WELL = Server(
    0, 5.0, own="1", current="1", config={"save": "3600 1"},
    info={"redis_version": "7.2.4", "maxmemory_policy": "noeviction", "used_memory": 10, "maxmemory": 100,
          "aof_enabled": 1, "role": "master"},
)  # fmt: skip


def test_a_redis_that_is_well() -> None:
    assert {one.level for one in redis_side.check.of(WELL)} == {"ok"}


async def test_very_many_of_everything_are_looked_at_in_part_and_it_says_so(settable: SettableEngine) -> None:
    for start in range(0, 3000, 1000):
        await settable.enqueue([({"name": f"q{n}"}, NIL) for n in range(start, start + 1000)])
    await settable.advance(60)
    calls: list[str] = []
    settable.observe = lambda script, _code, _seconds: calls.append(script)
    facts = await gather(Source(settable), settable.now_ms, part_s=0)  # time for one of each
    assert len(facts.queues) == 1 and len(calls) < 15
    whole = {one.check: one for one in doctor.check.of(facts)}["whole"]
    assert whole.level == "note" and whole.values == {"queues": 1} and "only 1 queues" in whole.means
    facts = await gather(Source(settable), settable.now_ms, part_s=60)
    assert len(facts.queues) == 3000 and not facts.left_out


async def test_leases_are_not_looked_for_queue_by_queue_where_none_lapsed(settable: SettableEngine) -> None:
    await settable.enqueue([({"name": f"q{n}"}, NIL) for n in range(50)])
    calls: list[str] = []
    settable.observe = lambda script, _code, _seconds: calls.append(script)
    await found(settable)
    assert calls.count("stats") == 1


@pytest.mark.parametrize(
    ("changes", "check", "level"),
    [
        ({"info": {"redis_version": "6.2.0"}}, "redis", "problem"),
        ({"info": {"maxmemory_policy": "allkeys-lru"}}, "eviction", "problem"),
        ({"info": {"used_memory": 85}}, "memory", "warning"),
        ({"info": {"used_memory": 99}}, "memory", "problem"),
        ({"info": {"aof_last_write_status": "err"}}, "persistence", "problem"),
        ({"info": {"aof_enabled": 0}}, "persistence", "note"),
        ({"info": {"aof_enabled": 0}, "config": {"save": ""}}, "persistence", "warning"),
        ({"info": {"role": "slave"}}, "role", "problem"),
        ({"ahead_ms": -2000.0}, "clock", "warning"),
        ({"ahead_ms": 60_000.0}, "clock", "problem"),
        ({"trouble": "VERSION older"}, "scripts", "problem"),
        ({"current": "0"}, "scripts", "note"),
        ({"current": None}, "scripts", "warning"),
        ({"form": "scripts"}, "form", "note"),
        ({"form": "scripts", "wants": "functions"}, "form", "problem"),
        ({"slow": [(0, 150.0, "EVALSHA")]}, "slow", "warning"),
    ],
)
def test_a_redis_that_is_not(changes: dict, check: str, level: str) -> None:
    info = {**WELL.info, **changes.pop("info", {})}
    [finding] = [one for one in redis_side.check.of(replace(WELL, info=info, **changes)) if one.level != "ok"]
    assert (finding.check, finding.level) == (check, level)
    assert finding.do and finding.means


async def test_a_key_that_is_named_as_the_namespace(engine: Engine) -> None:
    assert not [one for one in redis_side.check.of(await redis_side.look(engine)) if one.check == "namespace"]
    await engine.redis.set(engine.namespace, "x")
    try:
        [finding] = [one for one in redis_side.check.of(await redis_side.look(engine)) if one.check == "namespace"]
    finally:
        await engine.redis.unlink(engine.namespace)
    assert finding.level == "problem"
    assert finding.title == f"there is a key named {engine.namespace}, which no namespace may have"


async def test_looking_at_a_real_redis(engine: Engine) -> None:
    server = await redis_side.look(engine)
    assert abs(server.now_ms - time.time() * 1000) < 60_000 and server.current == server.own
    findings = await doctor.examine(Source(engine), server)
    assert [one.check for one in findings if one.level in ("problem", "warning")] == ["persistence"]


async def test_redis_forbids_to_be_looked_at(engine: Engine, redis_server: object) -> None:
    from jqmaster.engine.engine import connect

    rules = ("on", ">pw", "~*", "&*", "+@all", "-config", "-info", "-slowlog")
    await engine.redis.execute_command("ACL", "SETUSER", "blind", *rules)
    async with connect(f"unix://blind:pw@{redis_server.socket}") as client:  # type: ignore[attr-defined]
        server = await redis_side.look(Engine(client, engine.namespace))
    assert {one.level for one in redis_side.check.of(server)} <= {"note", "ok"}


def test_the_command(straight: Cli) -> None:
    said = straight.run("doctor")
    assert said.code == 1 and "! nothing is written to disk" in said.out
    assert "→ CONFIG SET appendonly yes" in said.out and said.out.endswith("1 warning\n")
    assert {one["check"] for one in straight.run("doctor", "--json", "--quiet").documents} == {"persistence"}
    by_master = straight.call("doctor", "--url", straight.url)
    assert by_master.code == 0 and by_master.out.endswith("all well\n")
    assert straight.call("doctor", "--url", "http://127.0.0.1:1").code == 4


async def test_the_command_says_once_what_is_alike(straight: Cli, engine: Engine) -> None:
    names = [f"q{n}" for n in range(11)]
    for count, name in enumerate(names, 1):
        await engine.enqueue([({"name": name}, NIL)] * count)
        await engine.queue(name, paused=True)
    said = await asyncio.to_thread(straight.run, "doctor")
    titles = [line for line in said.out.splitlines() if "is paused" in line]
    assert len(titles) == 11 and said.out.count("A paused queue takes jobs") == 1
    assert said.out.count("queues resume") == 1 and said.out.endswith("12 warnings\n")
    said = await asyncio.to_thread(straight.run, "doctor", "--all")
    assert said.out.count("A paused queue takes jobs") == 11 == said.out.count("queues resume")
    documents = (await asyncio.to_thread(straight.run, "doctor", "--json", "--quiet")).documents
    assert sorted(one["about"] for one in documents if one["check"] == "paused") == sorted(names)


async def test_a_master_gives_the_same_facts(straight: Cli, engine: Engine) -> None:
    await engine.enqueue([({"name": "mail"}, NIL)])
    by_master = JQ(straight.url)
    theirs = await gather(Source(await by_master.aengine()))
    ours = await gather(Source(engine))
    assert [one["name"] for one in theirs.queues] == [one["name"] for one in ours.queues] == ["mail"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (5, True), ({"lt": 5}, True), ({"ne": 5}, False), ({"exists": False}, False), ({"exists": True}, True),
        ({"ne": 5, "exists": False}, False), ({"ne": 5, "lt": 9}, True),
    ],
)  # fmt: skip
def test_which_conditions_need_a_value(condition: object, expected: bool) -> None:
    assert needs_value("argument.a", condition) is expected and not needs_value("name", condition)
