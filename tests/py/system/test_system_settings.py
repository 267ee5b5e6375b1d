"""Settings of a system: in all partitions, partition 0 first; what one has otherwise is told and mended."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

from jqmaster.doctor import partitions
from jqmaster.errors import Conflict, Invalid, JQError, NotFound, Unavailable
from jqmaster.system import bringing, calls
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
from parts import eventually
from systems import NIL, put, system, work  # noqa: F401 (fixture)
from topologies import cluster

HOOK: dict[str, Any] = {"url": "http://host/", "match": {"name": "a"}, "secrets": ["whsec_" + "YWJj" * 8]}


async def set_all(engine: Any) -> None:
    """A setting of each kind."""
    await engine.config({"lease_grace": 7.0} if "lease_grace" in await engine.config() else {"trail_max": 77})
    await engine.queue("q", paused=True, max_waiting=50, fair=[{"by": "argument.user"}], set={"retry_base": 3.0})
    await engine.subscribe("hook", HOOK["url"], HOOK["match"], on=["error"], secrets=HOOK["secrets"])
    await engine.grant("ann", ["viewer"], ttl=1000.0, queues=["q"])
    await engine.grant("bob", ["admin"])


async def test_all_partitions_get_them(system: SystemEngine) -> None:
    await set_all(system)
    engines = await system.partitions()
    for one in engines:
        [queue] = (await one.queues(["q"])).documents
        assert queue["paused"] and queue["max_waiting"] == 50 and queue["settings"] == {"retry_base": 3.0}
        assert await one.config() == await engines[0].config()
        assert await one.webhooks(secrets=True) == await engines[0].webhooks(secrets=True)
        assert [(key["name"], key["digest"]) for key in (await one.keys(digests=True)).documents] == [
            (key["name"], key["digest"]) for key in (await engines[0].keys(digests=True)).documents
        ]
        assert [entry["actor"] for entry in (await one.trail()).documents] == ["ann"] * 5
    assert [one["id"] for one in await system.webhooks()] == ["hook"]
    assert [one["name"] for one in (await system.keys()).documents if one["name"] == "ann"] == ["ann"]
    assert (await system.config())["trail_max"] == (await engines[2].config())["trail_max"]
    assert len(await system.describe()) == len(await engines[0].describe())
    assert (await system.queue("q", paused=False))["max_waiting"] == 150  # a bound is a partition's own
    with pytest.raises(Invalid):
        await system.config({"none": 1})


async def test_removing_is_done_where_it_is_and_completes_what_broke_off(system: SystemEngine) -> None:
    engines = await system.partitions()
    await set_all(system)
    [key, *_] = [one["id"] for one in (await system.keys()).documents]
    await engines[0].unsubscribe("hook")
    await engines[1].revoke(key)
    await system.unsubscribe("hook")
    await system.revoke(key)
    for one in engines:
        assert await one.webhooks() == [] and len((await one.keys()).documents) == 1
    for removing in (system.unsubscribe("hook"), system.revoke(key), system.forget("none")):
        with pytest.raises(NotFound):
            await removing


async def test_a_queue_with_jobs_anywhere_is_forgotten_nowhere(system: SystemEngine) -> None:
    engines = await system.partitions()
    await system.queue("a", max_waiting=9)
    [job] = await put(engines[2])
    with pytest.raises(Conflict):
        await system.forget("a")
    for one in engines:
        assert (await one.queues(["a"])).documents
    await system.cancel([job])
    await system.discard([job])
    await system.forget("a")
    assert (await system.queues()).documents == []


async def test_a_mark_is_one_mark(system: SystemEngine) -> None:
    first = await system.mark("deploy 1")
    assert await system.mark("deploy 1") == first
    await asyncio.sleep(0.002)
    second = await system.mark("deploy 2")
    for one in [system, *await system.partitions()]:
        assert (await one.marks()).documents == [second, first]
    page = await system.marks(count=1)
    assert (await system.marks(count=1, cursor=page.cursor)).documents == [first]
    await system.touch([(await system.grant("ann", ["viewer"]))["id"]])
    assert (await system.keys()).documents[0]["used_ms"]


async def test_schedules_live_at_their_home_and_make_jobs_there(system: SystemEngine) -> None:
    engines = await system.partitions()
    assert system.record is not None
    names = [f"s{number}" for number in range(9)]
    for name in names:
        await system.schedule(name, {"name": "a"}, NIL, every=3600)
    found = await system.schedules(count=4)
    assert [one["id"] for one in found.documents] == names[:4] and found.cursor == "s3"
    assert [one["id"] for one in (await system.schedules(["s5", "s1"])).documents] == ["s5", "s1"]
    for number, one in enumerate(engines):
        its = [document["id"] for document in (await one.schedules()).documents]
        assert its == [name for name in names if system.record.home(name.encode()) == number]
    for name in names:
        job, created = await system.run_schedule(name)
        assert created and int(job[14:] or "0", 16) == system.record.home(name.encode())
        await system.unschedule(name)
    with pytest.raises(NotFound):
        await system.unschedule("s0")
    with pytest.raises(NotFound):
        await system.run_schedule("s0")


async def test_a_schedule_has_jobs_made_where_they_belong(system: SystemEngine) -> None:
    engines = await system.partitions()
    assert system.record
    home = system.record.home(b"s0")
    key, there = next((f"k{n}", at) for n in range(99) if (at := system.record.home(f"k{n}".encode())) != home)
    await system.schedule("s0", {"name": "a", "unique": key}, NIL, every=0.2)

    async def arrives(count: int) -> bool:
        await system.tick()
        await Courier(system).carry_all()
        [schedule] = (await system.schedules(["s0"])).documents
        return bool(schedule["made"] >= count)

    for count in (1, 2):
        await eventually(lambda count=count: arrives(count))
        [schedule] = (await system.schedules(["s0"])).documents
        [job] = (await engines[there].jobs({"queue": "a", "status": "queued"})).documents
        assert (job["id"], job["unique"], job["schedule"]) == (schedule["last_id"], key, "s0")
        await system.cancel([job["id"]])
    await system.schedule("s0", {"name": "b", "unique": key}, NIL, every=3600)
    assert await system.run_schedule("s0") == ("", False)
    await Courier(system).carry_all()
    [job] = (await engines[there].jobs({"queue": "b"})).documents
    [schedule] = (await system.schedules(["s0"], runs=1)).documents
    assert (schedule["made"], schedule["runs"]) == (2, [{"id": job["id"]}])
    assert await system.audit_all() == []


async def test_what_a_partition_has_otherwise_is_told_and_mended(system: SystemEngine) -> None:
    engines = await system.partitions()
    await set_all(system)
    assert await bringing.behind(engines, {}) == [[], [], []]
    [first, second] = [one["id"] for one in (await system.keys()).documents]
    await engines[1].config({"events_max": 5})
    await engines[1].queue("q", paused=False, unset=["retry_base"], set={"retry_cap": 9.0})
    await engines[1].revoke(first)
    await engines[2].queue("own", paused=True)
    await engines[2].queue("q", fair=[])
    await engines[2].unsubscribe("hook")
    await engines[2].subscribe("other", "http://x/", {"name": "b"})
    await engines[0].revoke(second)
    await put(engines[2], queue="none", name="b")
    found = [[one.what for one in each] for each in await bringing.behind(engines, {}) if isinstance(each, list)]
    assert found[0] == []
    assert sorted(found[1]) == sorted(["settings", "queue q", f"key {first}", f"key {second}"])
    assert sorted(found[2]) == sorted(["queue own", "queue q", "webhook hook", "webhook other", f"key {second}"])
    assert await bringing.sync(system) == found
    assert await bringing.behind(engines, {}) == [[], [], []]
    [key] = (await engines[1].keys(digests=True)).documents
    [right] = (await engines[0].keys(digests=True)).documents
    assert {**key, "created_ms": 0, "expires_ms": 0} == {**right, "created_ms": 0, "expires_ms": 0}
    assert abs(key.get("expires_ms", 0) - right.get("expires_ms", 0)) < 5000
    assert (await engines[2].queues(["own"])).documents[0]["paused"] is False
    assert (await engines[1].queues(["q"])).documents[0]["settings"] == {"retry_base": 3.0}


async def test_secrets_that_were_taken_away_go_everywhere(system: SystemEngine) -> None:
    engines = await system.partitions()
    await system.subscribe("hook", HOOK["url"], HOOK["match"], secrets=HOOK["secrets"])
    await engines[0].unsubscribe("hook")
    await engines[0].subscribe("hook", HOOK["url"], HOOK["match"])
    await bringing.sync(system)
    for one in engines:
        assert [hook["secrets"] for hook in await one.webhooks()] == [0]


@pytest.mark.faults
async def test_partitions_that_do_not_answer_are_named_and_repeating_completes() -> None:
    with cluster(3, 0, 1500, "--cluster-require-full-coverage", "no") as servers:
        record = await calls.create(servers.url, "{quiet}", 3)
        engine = SystemEngine(servers.url, "{quiet}")
        await engine.queue("a", max_waiting=10)
        name = record.partitions[1].namespace
        lost = servers.owner(name)
        assert lost.process is not None
        lost.process.send_signal(signal.SIGSTOP)
        try:
            async with asyncio.timeout(60):
                asked = engine.queue("a", paused=True), engine.queues(), partitions.look(engine)
                refused, listed, findings = await asyncio.gather(*asked, return_exceptions=True)
            assert isinstance(refused, Unavailable) and isinstance(listed, Unavailable)
            assert isinstance(findings, list)
            assert any(one.level == "problem" and "partition 1" in one.title for one in findings), findings
            assert f"applied in 2 of 3 partitions; {name} did not answer: repeat it" in str(refused)
        finally:
            lost.process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(60):
            while True:
                try:
                    found = await bringing.sync(engine)
                    break
                except JQError:
                    await asyncio.sleep(0.2)
        assert found in ([[], ["queue a", "version"], []], [[], [], []])  # what was asked may have arrived late
        for one in await engine.partitions():
            assert (await one.queues(["a"])).documents[0]["paused"] is True
        await engine.close()
