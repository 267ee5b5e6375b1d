"""Partitions are added, and buckets move, by several who die at any step, while programs that know of earlier records
enqueue, lose replies and repeat, and set things, and workers run what there is. Held against: one job per unique key in
the whole system, one per request token, one per moment of a schedule, nothing that was acknowledged is lost, and all
partitions have what is set."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import msgpack
import pytest

from jqmaster.engine.calls import pack
from jqmaster.engine.engine import Engine
from jqmaster.errors import Conflict, Unavailable
from jqmaster.system import bringing, calls, enqueueing, partitions
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from jqmaster.system.resizing import add, rebalance
from parts import LONG_S
from systems import walked

LEAST = 6  # two who add at the same moment may make it more
KEYS = [f"key {number}" for number in range(12)]
SCHEDULES = [f"schedule {number}" for number in range(8)]
KEYED = SCHEDULES[:4]  # whose jobs belong anywhere
NIL = msgpack.packb(None)


class Died(Exception):
    """Whoever adds partitions is gone."""


class Program:
    """Enqueues, and repeats what it got no answer to. It looks at the record only when it has to."""

    def __init__(self, url: str, root: str, chance: random.Random, number: int) -> None:
        self.engine = SystemEngine(url, root)
        self.chance = chance
        self.number = number
        self.acknowledged: list[str] = []
        self.of_token: dict[str, list[str]] = {}
        self.calls = 0

    async def _lossy(self, one: Engine, arguments: Any) -> Any:
        if self.chance.random() < 0.1:
            raise Unavailable("the call was lost")
        reply = await one.call("enqueue", *arguments)
        if self.chance.random() < 0.15:
            raise Unavailable("the reply was lost")
        return reply

    async def enqueue(self) -> None:
        """Some jobs, with a token, until there is an answer; now and then once more."""
        self.calls += 1
        token = f"{self.number}.{self.calls}"
        arguments: list[Any] = [pack({"request": token})]
        count = self.chance.choice((1, 1, 2, 4))
        for _ in range(count):
            spec: dict[str, Any] = {"name": "a", "tags": [f"t{token}"]}
            if count > 1:  # what belongs to several partitions is not promised to be one call for ever
                pass
            elif self.chance.random() < 0.4:
                spec["unique"] = self.chance.choice(KEYS)
            elif self.acknowledged and self.chance.random() < 0.3:
                spec |= {"depends": [self.chance.choice(self.acknowledged[-5:])], "if_failed": "run"}
            arguments += (pack(spec), msgpack.packb(token))
        for _ in range(self.chance.choice((1, 1, 2))):
            reply = None
            while reply is None:
                try:
                    reply = await enqueueing.enqueue(self.engine, self._lossy, arguments)
                except Unavailable:
                    await asyncio.sleep(0)
            ids = [one.decode() for one in reply[::2]]
            assert self.of_token.setdefault(token, ids) == ids, "a repeated call has the same jobs"
        self.acknowledged += ids

    async def step(self) -> None:
        if self.chance.random() < 0.1:
            # Its own: of two who set the same thing at once partitions may keep either.
            await self.engine.queue(f"q{self.number}", paused=self.chance.random() < 0.5)
        elif self.chance.random() < 0.05:
            await self.engine.constrain(f"c{self.number}", {"name": "b"}, concurrency=self.chance.randint(1, 9))
        elif self.chance.random() < 0.3:
            [made] = await self.engine.enqueue([({"name": "a"}, NIL)])
            self.acknowledged.append(made.id)
        else:
            await self.enqueue()


async def grow(url: str, root: str) -> None:
    """Add until there are enough, however often whoever does it dies, or another one does."""
    while True:
        try:
            record = await calls.latest(url, root)
            if len(record.partitions) < LEAST or record.joining:
                await add(url, root, len(record.joining) or 1)
            elif not (await rebalance(url, root)).buckets:
                return
            else:
                await rebalance(url, root)
        except (Died, Conflict, Unavailable):
            await asyncio.sleep(0.01)


def mortal(chance: random.Random, real: Any, often: float) -> Any:
    """The same, but whoever does it may die before or behind it."""

    async def done(*arguments: Any, **more: Any) -> Any:
        if chance.random() < often:
            raise Died
        answer = await real(*arguments, **more)
        if chance.random() < often:
            raise Died
        return answer

    return done


async def run_some(partitions: Any, followed: set[str]) -> None:
    """Of two jobs one is followed by others: one with a key of its own, which is noted, one with a key of many."""
    for one in partitions:
        for job in (await one.pick("w", "a", 3)).jobs:
            follow = [({"name": "b", "unique": key}, NIL) for key in (job.id, KEYS[len(followed) % len(KEYS)])]
            follow = follow if int(job.id[:14], 16) % 2 else []
            done = await one.finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL, follow)])
            followed |= {job.id} if follow and done.states == ["done"] else set()


async def check(url: str, root: str, programs: list[Program], followed: set[str]) -> None:
    system = SystemEngine(url, root)
    engines = await system.partitions()
    for one in KEYED:  # else there is always a job of one on its way
        await system.unschedule(one)
    async with asyncio.timeout(LONG_S):
        while any([await one.redis.exists(f"{one.namespace}:onward-jobs") for one in engines]):
            await Courier(system).carry_all()
            await asyncio.sleep(0.1)
    follows = Counter(job["unique"] for job in await walked(partial(system.jobs, {"queue": "b"}), 1000))
    assert {key: follows[key] for key in followed} == dict.fromkeys(followed, 1), "what follows a job comes once"
    assert len(followed) > 50 and not set(follows) - followed - set(KEYS)
    assert await bringing.behind(engines, {}) == [[]] * len(engines)
    jobs = await walked(system.jobs, 1000)
    there = {job["id"] for job in jobs}
    assert all(set(program.acknowledged) <= there for program in programs), "nothing acknowledged is lost"
    tagged: dict[str, set[str]] = defaultdict(set)
    for job in jobs:
        for tag in job.get("tags", []):
            tagged[tag].add(job["id"])
    for program in programs:
        for token, ids in program.of_token.items():
            assert tagged[f"t{token}"] <= set(ids), "a call that was repeated has made its jobs once"
    unended = Counter(job["unique"] for job in jobs if "unique" in job and job["status"] in ("queued", "blocked"))
    assert set(unended.values()) <= {1}, "one job per key"
    moments = Counter((job["schedule"], job["schedule_ms"]) for job in jobs if "schedule" in job)
    assert len(moments) > 3 * len(SCHEDULES) and set(moments.values()) <= {1}, "one job per moment"
    assert {partition_of(one) for one in there} == set(range(len(engines)))
    assert await system.audit_all() == []
    await system.close()


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(3))
async def test_whoever_dies(redis_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    await calls.create(redis_url, namespace, 2)
    first = SystemEngine(redis_url, namespace)
    await first.config(set={"done_max": 100_000, "done_ttl": 3600})
    monkeypatch.setattr(partitions, "LOOK_S", 3600.0)
    programs = [Program(redis_url, namespace, chance, number) for number in range(4)]
    for one in programs:
        await one.engine.partitions()
    followed: set[str] = set()
    for one in SCHEDULES:
        key = {"unique": f"key of {one}"} if one in KEYED else {}
        await first.schedule(one, {"name": "a", **key}, NIL, every=0.2, catch_up="all")
    courier = asyncio.create_task(Courier(first).run())
    with monkeypatch.context() as dying:
        dying.setattr(calls, "put", mortal(chance, calls.put, 0.04))
        dying.setattr(bringing, "sync", mortal(chance, bringing.sync, 0.2))
        growing = asyncio.gather(grow(redis_url, namespace), grow(redis_url, namespace))
        while not growing.done():
            await asyncio.gather(*(one.step() for one in programs), run_some(await first.partitions(), followed))
        await growing
    assert (await calls.read(redis_url, namespace)).former, "buckets have moved"
    for _ in range(20):
        await asyncio.gather(*(one.step() for one in programs))
    courier.cancel()
    await asyncio.wait({courier})
    await check(redis_url, namespace, programs, followed)
    for one in (*programs, first):
        await getattr(one, "engine", one).close()
