"""Buckets that move to other partitions, with keys, request tokens and schedules."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgpack
import pytest

from cli_support import Said, call  # noqa: F401 (fixture)
from jqmaster.errors import Conflict, NotFound, Unavailable
from jqmaster.system import calls, moving, resizing
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import bucket_of, partition_of
from jqmaster.system.resizing import add, rebalance
from moves import clocks, engine, forget_tokens, grown, will_move  # noqa: F401 (fixtures)
from parts import eventually

NIL = msgpack.packb(None)
FAILED = {"type": "failure", "should_retry": False}


async def enqueue(engine: Any, **spec: Any) -> Any:
    [made] = await engine.enqueue([({"name": "a", **spec}, NIL)])
    return made


async def work(engine: SystemEngine, **outcome: Any) -> int:
    """Run what there is."""
    count = 0
    while jobs := (await engine.pick("w", "a", 10)).jobs:
        for job in jobs:
            told = {"id": job.id, "token": job.token, "type": "success", **outcome}
            await engine.finish("w", [(told, NIL)])
            count += 1
    return count


async def test_buckets_spread_evenly_and_few_move(redis_url: str, namespace: str, engine: SystemEngine) -> None:
    system = await grown(engine)
    assert set(Counter(system.buckets).values()) == {256}
    assert len(system.former) == 512 and all(system.buckets[bucket] in (2, 3) for bucket in system.former)
    again = await rebalance(redis_url, namespace)
    assert (again.buckets, again.system.generation) == (0, system.generation)


class TestKeys:
    async def test_one_that_is_held_stays_where_it_is(self, engine: SystemEngine) -> None:
        await engine.partitions()
        assert engine.record
        key = next(will_move(engine.record))
        first = await enqueue(engine, unique=key)
        record = await grown(engine)
        assert partition_of(first.id) != record.home(key.encode())
        assert await enqueue(engine, unique=key) == first._replace(created=False)
        assert await work(engine) == 1
        second = await enqueue(engine, unique=key)
        assert second.created and partition_of(second.id) == record.home(key.encode())
        assert await enqueue(engine, unique=key) == second._replace(created=False)

    async def test_what_becomes_of_it_is_as_the_new_one_says(self, engine: SystemEngine) -> None:
        await engine.partitions()
        assert engine.record
        keys = will_move(engine.record)
        waits, runs = next(keys), next(keys)
        first = await enqueue(engine, unique=waits, priority=1)
        second = await enqueue(engine, unique=runs, queue="runs")
        [job] = (await engine.pick("w", "runs")).jobs
        await grown(engine)
        assert (await enqueue(engine, unique=waits, if_exists="replace", priority=7)).id == first.id
        [document] = await engine.get(first.id)
        assert document and document["priority"] == 7
        behind = await enqueue(engine, unique=runs, queue="runs", if_exists="latest")
        assert behind.created and partition_of(behind.id) == partition_of(second.id), "its key is held there"
        assert await enqueue(engine, unique=runs, queue="runs") == behind._replace(created=False)
        await engine.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL)])
        assert [one.id for one in (await engine.pick("w", "runs")).jobs] == [behind.id]

    async def test_a_call_is_put_together_of_what_is_known_and_what_is_new(self, engine: SystemEngine) -> None:
        await engine.partitions()
        assert engine.record
        others = will_move(engine.record)
        held = next(others)
        first = await enqueue(engine, unique=held)
        await grown(engine)
        free = next(others)
        jobs: Any = [
            ({"name": "a"}, NIL),
            ({"name": "a", "unique": held}, NIL),
            ({"name": "a", "depends": [0, 1]}, NIL),
            ({"name": "a", "unique": free}, NIL),
        ]
        made = await engine.enqueue(jobs, request="t")
        assert [one.created for one in made] == [True, False, True, True]
        assert made[1].id == first.id
        [document] = await engine.get(made[2].id)
        assert document and sorted(document["depends"]) == sorted((made[0].id, first.id))
        assert await engine.enqueue(jobs, request="t") == made

    async def test_one_that_is_freed_is_free_everywhere(self, engine: SystemEngine) -> None:
        await engine.partitions()
        assert engine.record
        key = next(will_move(engine.record))
        first = await enqueue(engine, unique=key)
        await grown(engine)
        assert await engine.free(key) == first.id
        with pytest.raises(NotFound):
            await engine.free(key)

    async def test_a_job_that_failed_does_not_take_it_back_elsewhere(self, engine: SystemEngine) -> None:
        await engine.partitions()
        assert engine.record
        moved = next(will_move(engine.record))
        stays = next(one for one in ("k1", "k2", "k3", "k4", "k5", "k6") if one not in [*will_move(engine.record)])
        ids = [(await enqueue(engine, unique=key)).id for key in (moved, stays)]
        plain = await enqueue(engine)
        await work(engine, **FAILED)
        await grown(engine)
        assert await engine.retry([*ids, plain.id]) == ["CONFLICT", "queued", "queued"]
        assert (await enqueue(engine, unique=moved)).created

    async def test_a_partition_that_does_not_know_the_record_is_waited_for(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        await engine.partitions()
        assert engine.record
        key = next(will_move(engine.record))
        record = await grown(engine)
        source = (await engine.partitions())[record.former[bucket_of(key.encode())]]
        await source.redis.set(f"{source.namespace}:generation", record.generation - 1)
        asking = asyncio.create_task(enqueue(engine, unique=key))
        done, _ = await asyncio.wait({asking}, timeout=0.3)
        assert not done, "it may make a job of that key for who knows no more than it"
        await source.redis.set(f"{source.namespace}:generation", record.generation)
        assert (await asking).created

    async def test_where_they_were_is_forgotten_when_none_is_left(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        await engine.partitions()
        assert engine.record
        key = next(will_move(engine.record))
        await enqueue(engine, unique=key)
        record = await grown(engine)
        await forget_tokens(engine)
        found = await rebalance(redis_url, namespace)
        source = record.former[bucket_of(key.encode())]
        assert found.keys == 1 and set(found.system.former.values()) == {source}
        assert (await enqueue(engine, unique=key)).created is False
        await work(engine)
        found = await rebalance(redis_url, namespace)
        assert (found.keys, found.is_done, dict(found.system.former)) == (0, True, {})
        assert (await enqueue(engine, unique=key)).created


class TestTokens:
    async def test_a_call_is_answered_as_before(self, engine: SystemEngine) -> None:
        jobs: Any = [({"name": "a"}, NIL), ({"name": "a", "unique": "k"}, NIL), ({"name": "a", "depends": [0]}, NIL)]
        first = {token: await engine.enqueue(jobs, request=token) for token in map(str, range(20))}
        await work(engine)
        await grown(engine)
        for token, made in first.items():
            assert await engine.enqueue(jobs, request=token) == made
        assert len(await everything(engine)) == 20 * 2 + 1, "one has the key"

    async def test_new_ones_go_to_those_that_came(self, engine: SystemEngine) -> None:
        await grown(engine)
        made = [await engine.enqueue([({"name": "a"}, NIL)], request=str(number)) for number in range(40)]
        assert {partition_of(one.id) for [one] in made} == {0, 1, 2, 3}
        again = [await engine.enqueue([({"name": "a"}, NIL)], request=str(number)) for number in range(40)]
        assert again == made

    async def test_they_are_asked_for_as_long_as_they_are_known(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        await grown(engine)
        found = await rebalance(redis_url, namespace)
        assert not found.is_done and 0 < found.settles_s <= 600
        await forget_tokens(engine)
        assert (await rebalance(redis_url, namespace)).is_done


class TestSchedules:
    async def test_they_go_on_where_their_buckets_are(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        ids = [f"s{number}" for number in range(12)]
        for one in ids:
            await engine.schedule(one, {"name": "a"}, msgpack.packb(one), every=0.2, catch_up="all")
        await eventually(lambda: work(engine))
        record = await grown(engine)
        for number, one in enumerate(await engine.partitions()):
            for document in (await one.schedules(runs=5)).documents:
                assert record.home(document["id"].encode()) == number
        documents = (await engine.schedules(runs=20)).documents
        assert [one["id"] for one in documents] == sorted(ids)
        assert all(one["made"] == len(one["runs"]) for one in documents), "what they made stays known"

        async def made() -> bool:
            await engine.tick()
            return all(one["made"] > 12 for one in (await engine.schedules()).documents)

        await eventually(made, 60)
        moments = Counter((one["schedule"], one["schedule_ms"]) for one in await everything(engine))
        assert set(moments.values()) == {1}
        for one in ids:
            times = sorted(time_ms for schedule, time_ms in moments if schedule == one)
            assert [late - early for early, late in pairwise(times)] == [200] * (len(times) - 1)

    async def test_a_job_on_its_way_elsewhere_counts_as_made(
        self, redis_url: str, namespace: str, engine: SystemEngine
    ) -> None:
        await engine.partitions()
        record = engine.record
        assert record
        ids = [f"s{number}" for number in range(12)]
        for one in ids:
            keys = (f"key {number} of {one}" for number in range(99))
            key = next(key for key in keys if record.home(key.encode()) != record.home(one.encode()))
            await engine.schedule(one, {"name": "a", "unique": key}, every=0.2, limit=1)

        async def are_on_their_way() -> bool:
            await engine.tick()
            return all("on_its_way_ms" in one for one in (await engine.schedules()).documents)

        await eventually(are_on_their_way, 60)
        later = await grown(engine)
        moved = {one for one in ids if later.home(one.encode()) != record.home(one.encode())}
        assert moved
        documents = {one["id"]: one for one in (await engine.schedules()).documents}
        assert {one for one in ids if documents[one]["made"] == 1} == moved
        await Courier(engine).carry_all()
        await engine.tick()
        assert all(one["made"] == 1 and "next_ms" not in one for one in (await engine.schedules()).documents)
        assert Counter(one["schedule"] for one in await everything(engine)) == dict.fromkeys(ids, 1)

    async def test_who_changes_one_changes_the_one_that_moved(
        self, redis_url: str, namespace: str, engine: SystemEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody has brought it yet."""
        ids = [f"s{number}" for number in range(30)]
        for one in ids:
            await engine.schedule(one, {"name": "a"}, every=3600)

        async def breaks(*_: Any) -> int:
            raise Unavailable("broken off")

        await add(redis_url, namespace, 2)
        with monkeypatch.context() as patched:
            patched.setattr(moving, "bring_schedules", breaks)
            with pytest.raises(Unavailable, match="broken off"):
                await rebalance(redis_url, namespace)
        # It broke off before buckets moved: from here on they have.
        broken = resizing.moving.bring_schedules
        calls_made = 0

        async def breaks_later(system: Any) -> int:
            nonlocal calls_made
            calls_made += 1
            return await broken(system) if calls_made == 1 else await breaks()

        with monkeypatch.context() as patched:
            patched.setattr(moving, "bring_schedules", breaks_later)
            with pytest.raises(Unavailable, match="broken off"):
                await rebalance(redis_url, namespace)
        await engine.look()
        assert engine.record
        moved = [one for one in ids if bucket_of(one.encode()) in engine.record.former]
        assert len(moved) > 4
        await engine.unschedule(moved[0])
        changed = await engine.schedule(moved[1], {"name": "b"}, every=60)
        assert changed["every"] == 60
        await rebalance(redis_url, namespace)
        documents = {one["id"]: one for one in (await engine.schedules(count=100)).documents}
        assert sorted(documents) == sorted(set(ids) - {moved[0]})
        assert documents[moved[1]]["every"] == 60
        with pytest.raises(NotFound):
            await engine.unschedule(moved[0])


async def everything(engine: SystemEngine) -> list[Any]:
    return [one async for one in calls.documents_of(engine.jobs)]


async def test_while_partitions_are_added_none_moves(
    redis_url: str, namespace: str, engine: SystemEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: Any) -> None:
        raise Unavailable("broken off")

    with monkeypatch.context() as patched:
        patched.setattr(resizing.bringing, "sync", breaks)
        with pytest.raises(Unavailable, match="broken off"):
            await add(redis_url, namespace, 1)
    with pytest.raises(Conflict, match="partitions are being added: repeat `system add` first"):
        await rebalance(redis_url, namespace)


def test_the_command_says_what_is_left(
    call: Callable[..., Said], redis_url: str, namespace: str, engine: SystemEngine
) -> None:
    where = ["--redis", redis_url, "--namespace", namespace]
    call("system", "add", "2", *where)
    said = call("system", "rebalance", *where)
    assert said.code == 1 and said.out.startswith("512 buckets moved, 0 schedules with them, generation 4; request tok")
    call("enqueue", "a", "--unique", "k", *where)
    said = call("system", "rebalance", "--json", *where)
    assert said.code == 1 and said.document["buckets"] == 0
    call("config", "set", "request_ttl=1", *where)
    said = call("system", "rebalance", "--wait", *where)
    assert said.code == 0 and said.out.splitlines()[-1] == "0 buckets moved, 0 schedules with them, generation 6"
