"""Versions of settings: a partition that missed a change starts nothing for who knows of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from jqmaster.engine import replies
from jqmaster.engine.calls import pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import Stale
from jqmaster.master.desk import SystemDesk
from jqmaster.system import bringing, settled
from jqmaster.system.engine import SystemEngine
from jqmaster.system.keeping import keep_in_line
from jqmaster.worker.run import WorkOptions, work
from parts import LONG_S, eventually
from systems import NIL, put, system

__all__ = ["system"]


async def versions(system: SystemEngine) -> list[str]:
    """Of all partitions."""
    return [await settled.version_of(one) for one in await system.partitions()]


async def are_in_line(system: SystemEngine) -> bool:
    found = await bringing.behind(await system.partitions(), {})
    return all(one == [] for one in found) and len(set(await versions(system))) == 1


async def missed(system: SystemEngine, number: int, operation: str, **spec: Any) -> str:
    """A change that all partitions get but one; the version since then."""
    engines = await system.partitions()
    move = (await settled.version_of(engines[0]), settled.following(await settled.version_of(engines[0])))
    for at, one in enumerate(engines):
        if at != number:
            await one.call(operation, pack({**spec, "settings": move}))
    return move[1]


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


@asynccontextmanager
async def kept_in_line(system: SystemEngine) -> AsyncIterator[None]:
    task = asyncio.create_task(keep_in_line(system))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def other(system: SystemEngine) -> AsyncIterator[SystemEngine]:
    """Another process."""
    engine = SystemEngine(system.url, system.root)
    yield engine
    await engine.close()


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


def picks(*queues: str) -> bytes:
    """Of a worker that takes all it gets."""
    return pack({"worker": "w", "queues": list(queues), "count": 9, "order": "ordered"})


async def ids(system: SystemEngine, *queues: str) -> list[str]:
    """The jobs that a pick brings."""
    return [job.id for job in replies.picked(await system.call("pick", picks(*queues))).jobs]


async def status(system: SystemEngine, job: str) -> str:
    """Of a job."""
    [document] = await system.get(job)
    assert document is not None
    return str(document["status"])


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
    ran: list[Any] = []

    async def note(argument: Any) -> None:
        ran.append(argument)

    stop = asyncio.Event()
    options = WorkOptions({"a": note}, redis_url=system.url, system=system.root, queues=["a", "b"], concurrency=1)
    task = asyncio.create_task(work(options, stop))
    try:
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
    finally:
        stop.set()
        await asyncio.wait_for(task, LONG_S)


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


def test_versions_have_an_order() -> None:
    ordered = ["0-ff", "0", "1-00", "1-ff", "2-00", "10-00"]
    assert sorted(ordered[::-1], key=settled.rank) == ordered
    assert settled.rank(settled.following("9-ff"))[0] == 10 and settled.rank(settled.following("0"))[0] == 1
    assert settled.is_unsettled(settled.unsettled()) and not settled.is_unsettled("0")
