"""Versions of settings that a failover lost, and those who die while they bring a partition in line."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from jqmaster.engine.calls import pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import JQError, Stale
from jqmaster.system import bringing, calls, settled
from jqmaster.system.engine import SystemEngine
from parts import eventually
from systems import put, system
from topologies import cluster
from versions import are_in_line, ids, kept_in_line, missed, other, status, versions, working

__all__ = ["system"]


Dump = Mapping[Any, Any]


async def dump(engine: Engine) -> Dump:
    """All that a partition has."""
    found = {}
    async for key in engine.redis.scan_iter(match=f"{engine.namespace.replace('[', '?')}*", count=1000):
        found[key] = await engine.redis.dump(key)
    return found


async def fail_over(engine: Engine, known: Dump) -> None:
    """What came since is lost."""
    for key in await dump(engine):
        await engine.redis.delete(key)
    for key, value in known.items():
        await engine.redis.restore(key, 0, value)


@pytest.mark.parametrize("lost", [[0], [1], [0, 2], [0, 1, 2]])
async def test_a_failover_that_loses_a_change_is_survived(system: SystemEngine, lost: list[int]) -> None:
    engines = await system.partitions()
    await system.queue("b", max_waiting=5)
    jobs = [job for one in engines for name in "ab" for job in await put(one, queue=name)]
    known = [await dump(engines[number]) for number in lost]
    await system.queue("a", paused=True)
    version = system.settled.version
    for number, data in zip(lost, known, strict=True):
        await fail_over(engines[number], data)
    async with kept_in_line(system):
        started: list[str] = []
        while len(started) < (6 if len(lost) == 3 else 3):
            started += await ids(system, "b", "a")
        await eventually(lambda: are_in_line(system))
    is_kept = len(lost) < 3
    assert sorted(started) == sorted(jobs[1::2] if is_kept else jobs)
    assert (system.settled.version == version) is is_kept
    assert await versions(system) == [system.settled.version] * 3
    assert [(await one.queue("a"))["paused"] for one in engines] == [is_kept] * 3


async def test_a_change_after_a_failover_keeps_what_partition_0_has_lost(system: SystemEngine) -> None:
    [first, *_] = await system.partitions()
    await system.queue("b", max_waiting=5)
    known = await dump(first)
    await system.queue("a", paused=True)
    await fail_over(first, known)
    async with other(system) as fresh:  # which knows of nothing
        await fresh.queue("b", max_waiting=6)
    assert await are_in_line(system) and (await first.queue("a"))["paused"]
    assert (await versions(system))[0].startswith("3-")


async def test_of_two_changes_of_one_version_those_count_that_more_have(system: SystemEngine) -> None:
    engines = await system.partitions()
    for at, (name, tag) in enumerate((("a", "ff"), ("b", "00"), ("b", "00"))):
        await engines[at].call("queue", pack({"name": name, "paused": True, "settings": ["0", f"1-{tag}"]}))
    assert system.settled.heard("1-ff")
    assert [await ids(system, "none") for _ in range(2)] == [[], []]
    async with kept_in_line(system):
        [job] = await put(engines[2], queue="c")
        assert await eventually(lambda: ids(system, "c")) == [job]
        await eventually(lambda: are_in_line(system))
    assert system.settled.version == "1-00" and await versions(system) == ["1-00"] * 3
    assert [(await engines[0].queue(name))["paused"] for name in "ab"] == [False, True]


async def test_whom_nobody_may_bring_in_line_is_taken_as_it_is_in_the_end(
    system: SystemEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = await system.partitions()
    await missed(system, 2, "queue", name="a", paused=True)
    assert await ids(system, "none") == []
    [job] = await put(engines[2], queue="b")
    assert await ids(system, "b") == []
    monkeypatch.setattr(settled, "PATIENCE_S", 0.05)
    assert await eventually(lambda: ids(system, "b")) == [job]
    [job] = await put(engines[2], queue="b")
    assert await ids(system, "b") == [job]
    monkeypatch.setattr(settled, "PATIENCE_S", 600.0)
    await missed(system, 2, "queue", name="c", paused=True)  # the next change is waited for anew
    assert await ids(system, "none") == []
    await put(engines[2], queue="b")
    assert await ids(system, "b") == []


async def test_who_dies_while_it_brings_one_in_line_leaves_that_to_the_next(
    system: SystemEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = await system.partitions()
    await missed(system, 1, "queue", name="a", paused=True)
    call, calls = Engine.call, 0

    async def dying(engine: Engine, operation: str, *arguments: Any) -> Any:
        nonlocal calls
        if engine is engines[1] and operation in ("config", "queue"):
            calls += 1
            if calls == dies_at:
                raise asyncio.CancelledError
        return await call(engine, operation, *arguments)

    was_no_version = 0
    for dies_at in range(1, 20):
        calls = 0
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "call", dying)
            with suppress(asyncio.CancelledError):
                await bringing.bring(system)
        if calls < dies_at:
            break
        was_no_version += settled.is_unsettled((await versions(system))[1])
        assert await ids(system, "none") == []
        await put(engines[1], queue="b")
        assert await ids(system, "b") == []
    else:
        pytest.fail("it never came to its end")
    assert was_no_version > 2 and await are_in_line(system)


async def test_who_brings_older_settings_at_the_same_moment_is_refused(system: SystemEngine) -> None:
    engines = await system.partitions()
    await system.queue("a", max_waiting=1)
    old = await bringing._settings(engines[0], {})
    await missed(system, 1, "queue", name="a", max_waiting=2)
    new = await bringing._settings(engines[0], {})
    call, is_met = Engine.call, False

    async def meeting(engine: Engine, operation: str, *arguments: Any) -> Any:
        nonlocal is_met
        if engine is engines[1] and operation == "queue" and not is_met:
            is_met = True
            await bringing.align(engine, new, {})
        return await call(engine, operation, *arguments)

    await engines[1].queue("a", max_waiting=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "call", meeting)
        with pytest.raises(Stale):
            await bringing.align(engines[1], old, {})
    assert is_met and await are_in_line(system)


@pytest.mark.faults
async def test_a_pause_holds_where_a_failover_has_lost_it() -> None:
    with cluster(3, 1) as nodes:
        await calls.create(nodes.url, "{jq}", 3)
        engine = SystemEngine(nodes.url, "{jq}")
        engines = await engine.partitions()
        async with working(engine, "a", "b") as ran:
            owner = nodes.owner(engines[1].namespace)
            replica = nodes.replica_of(owner)
            assert owner.process is not None and replica.process is not None
            written = owner.offset()
            await eventually(lambda: replica.offset() >= written)  # the change alone is lost, not the partition
            replica.process.send_signal(signal.SIGSTOP)
            try:
                owner.do("CLIENT", "KILL", "TYPE", "replica")
                await engine.queue("a", paused=True)
                assert await are_in_line(engine)
                for one in (engines[0], engines[2]):
                    known = len(ran)
                    await put(one, queue="b")
                    await eventually(lambda known=known: len(ran) > known)
                owner.process.kill()
            finally:
                replica.process.send_signal(signal.SIGCONT)
            await eventually(replica.is_primary)
            lost = replica.do("GET", f"{engines[1].namespace}:settings-version")
            known = len(ran)

            async def insist(name: str) -> list[str]:
                with suppress(JQError):
                    return await put(engines[1], queue=name)
                return []

            paused = await eventually(lambda: insist("a"))
            await eventually(lambda: insist("b"))
            await eventually(lambda: len(ran) > known)
            assert lost is None and await are_in_line(engine)
            assert [await status(engine, job) for job in paused] == ["queued"]
        await engine.close()
