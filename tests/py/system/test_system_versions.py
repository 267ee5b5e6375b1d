"""Versions of settings: a partition that missed a change starts nothing for who knows of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from jqmaster.engine.calls import new_request, pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import channel_of
from jqmaster.master.desk import SystemDesk
from jqmaster.system import bringing, settled
from jqmaster.system.engine import SystemEngine
from jqmaster.worker.ending import Outcome
from jqmaster.worker.system_source import SystemSource
from parts import LONG_S, eventually
from systems import NIL, put, system
from versions import are_in_line, ids, kept_in_line, missed, other, status, versions, working

__all__ = ["system"]


async def test_each_change_is_a_version_of_all_and_a_look_is_none(system: SystemEngine) -> None:
    assert await versions(system) == ["0"] * 3
    changes: Sequence[Callable[[], Awaitable[Any]]] = (
        lambda: system.queue("a", paused=True),
        lambda: system.config({"done_max": 7}),
        lambda: system.config(unset=["done_max"]),
        lambda: system.constrain("c", {"name": "a"}, concurrency=3),
        lambda: system.unconstrain("c"),
        lambda: system.subscribe("hook", "http://host/", {"name": "a"}),
        lambda: system.unsubscribe("hook"),
        lambda: system.grant("ann", ["viewer"]),
        lambda: system.forget("a"),
    )
    for number, change in enumerate(changes, 1):
        await change()
        assert {one.partition("-")[0] for one in await versions(system)} == {str(number)}
        assert await versions(system) == [system.settled.version] * 3
    await system.queue("b")
    await system.config()
    await system.mark("deploy")
    assert await versions(system) == [system.settled.version] * 3
    assert await are_in_line(system)


async def test_nothing_starts_where_a_pause_was_missed_before_it_is_brought(system: SystemEngine) -> None:
    engines = await system.partitions()
    [running] = await put(engines[2], queue="b")
    [job] = (await engines[2].pick("w", "b")).jobs
    version = await missed(system, 2, "queue", name="a", paused=True)
    [paused], [following] = await put(engines[2], queue="a"), await put(engines[2], queue="b")
    assert await ids(system, "none") == []  # the others tell of it
    assert system.settled.version == version
    for _ in range(3):
        assert await ids(system, "a", "b") == []
    [elsewhere] = await put(engines[0], queue="b")
    assert await ids(system, "a", "b") == [elsewhere]
    said = pack({"worker": "w", "pick": {"queues": ["a", "b"], "order": "ordered"}})
    report = pack({"id": job.id, "token": job.token, "type": "success"})
    answers = await system.call("finish", said, report, NIL)
    assert answers[0] == b"done" and len(answers) == 2
    assert job.id == running and await status(system, running) == "done"
    async with kept_in_line(system):
        await eventually(lambda: are_in_line(system))
        assert await eventually(lambda: ids(system, "a", "b")) == [following]
    assert await status(system, paused) == "queued"


async def test_a_worker_runs_nothing_of_it_and_brings_it_itself(system: SystemEngine) -> None:
    engines = await system.partitions()
    async with working(system, "a", "b") as ran:
        for _ in range(5):
            version = await missed(system, 2, "queue", name="a", paused=True)
            for one in engines[:2]:  # they tell it what they have with what they start
                known = len(ran)
                await put(one, queue="b")
                await eventually(lambda known=known: len(ran) > known)
            [paused] = await put(engines[2], queue="a")
            known = len(ran)
            await put(engines[2], queue="b")
            await eventually(lambda known=known: len(ran) > known)
            assert await are_in_line(system) and (await versions(system))[2] == version
            [queue] = (await engines[2].queues(["a"])).documents
            assert queue["paused"] and await status(system, paused) == "queued"
            await system.cancel([paused])
            await system.queue("a", paused=False)


async def test_who_is_refused_beside_a_report_is_not_asleep_there(
    system: SystemEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = await system.partitions()
    source = SystemSource(system.url, system.root, ["b"])
    try:
        picking = asyncio.create_task(source.fetch(1))
        asleep = f":asleep:{channel_of(['b'], 'priority')}"
        for one in engines:
            await eventually(lambda one=one: one.redis.zcard(one.namespace + asleep))
        await put(engines[1], queue="b")
        [job] = await picking
        await missed(system, 2, "queue", name="a", paused=True)
        [waiting] = await put(engines[2], queue="b")
        monkeypatch.setattr("random.choice", lambda places: places[-1])
        report = Outcome(job, {"type": "success"}, NIL)
        assert await source.finish([report], 1, new_request()) == (["done"], [])
        assert await engines[2].redis.zcard(engines[2].namespace + asleep) == 0
        await bringing.sync(system)
        [job] = await source.fetch(1)
        assert job.id == waiting
    finally:
        await source.stop()


async def test_a_master_pushes_nothing_of_it(system: SystemEngine) -> None:
    engines = await system.partitions()
    await system.register("w", "*", url="http://127.0.0.1:1/", max_jobs=9)
    desk = SystemDesk(system, "m", [])
    try:
        await missed(system, 2, "queue", name="a", paused=True)
        assert await ids(system, "none") == []
        [paused], [following] = await put(engines[2], queue="a"), await put(engines[2], queue="b")
        [elsewhere] = await put(engines[0], queue="b")
        taken: list[str] = []

        async def take() -> int:
            _, jobs = await asyncio.wait_for(desk.take(9, list), LONG_S)
            taken.extend(job.id for job in jobs)
            return len(taken)

        await eventually(take)
        assert taken == [elsewhere]
        async with kept_in_line(system):
            await eventually(lambda: are_in_line(system))
            while len(taken) < 2:
                await take()
        assert taken == [elsewhere, following] and await status(system, paused) == "queued"
    finally:
        await desk.stop()


async def test_two_who_change_settings_at_once_end_with_the_same(system: SystemEngine) -> None:
    async with other(system) as second, other(system) as third:
        for turn in range(5):

            async def change(who: SystemEngine, number: int) -> None:
                await asyncio.sleep(random.random() * 0.01)
                await who.queue("a", max_waiting=number)
                await who.config({"done_max": number})

            whos = (system, second, third)
            await asyncio.gather(*(change(who, 10 * turn + at) for at, who in enumerate(whos)))
            assert await are_in_line(system)
            assert (await versions(system))[0] == max((who.settled.version for who in whos), key=settled.rank)
            assert (await versions(system))[0].startswith(f"{6 * (turn + 1)}-")


async def test_a_change_at_a_partition_that_missed_one_before_brings_both(system: SystemEngine) -> None:
    engines = await system.partitions()
    await missed(system, 2, "queue", name="a", paused=True)
    assert (await system.queue("b", max_waiting=5))["max_waiting"] == 15
    assert await are_in_line(system) and (await engines[2].queue("a"))["paused"]
    await missed(system, 0, "queue", name="c", paused=True)
    await system.queue("d", paused=True)
    assert await are_in_line(system)
    assert [(await engines[0].queue(name))["paused"] for name in "abcd"] == [True, False, True, True]


async def test_what_is_removed_where_it_is_not_leaves_all_of_one_version(system: SystemEngine) -> None:
    engines = await system.partitions()
    await system.subscribe("hook", "http://host/", {"name": "a"})
    await engines[1].unsubscribe("hook")
    await system.unsubscribe("hook")
    assert await are_in_line(system) and await engines[1].webhooks() == []


async def test_a_change_whose_answer_is_lost_is_made_once(system: SystemEngine) -> None:
    [first, *_] = await system.partitions()
    call, lost = Engine.call, []

    async def twice(engine: Engine, operation: str, *arguments: Any) -> Any:
        if engine is first and operation in ("queue", "unsubscribe", "subscribe") and operation not in lost:
            lost.append(operation)
            await call(engine, operation, *arguments)  # as a connection does that is lost, and made again
        return await call(engine, operation, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "call", twice)
        assert (await system.queue("a", max_waiting=2))["max_waiting"] == 6
        await system.subscribe("hook", "http://host/", {"name": "a"})
        await system.unsubscribe("hook")
    assert lost == ["queue", "subscribe", "unsubscribe"]
    assert await are_in_line(system) and (await versions(system))[0].startswith("3-")
    assert await system.webhooks() == []


def test_versions_have_an_order() -> None:
    ordered = ["0-ff", "0", "1-00", "1-ff", "2-00", "10-00"]
    assert sorted(random.sample(ordered, 6), key=settled.rank) == ordered
    assert settled.rank(settled.following("9-ff"))[0] == 10 and settled.rank(settled.following("0"))[0] == 1
    assert settled.is_unsettled(settled.unsettled()) and not settled.is_unsettled("0")
