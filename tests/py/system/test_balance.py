"""Limits that partitions share: the sum of what runs is never more than the limit, whatever becomes of balancers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from redis.asyncio import Redis

from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import JQError, Unavailable
from jqmaster.system.balance import Balancer
from servers import RedisServer
from settable import set_up
from sharing import Gate, Shop, constrain, turns

COUNT = 4


def balancer(engines: Any, share_s: float = 20.0, busy_s: float = 0.02) -> Balancer:
    return Balancer(engines, share_s=share_s, busy_s=busy_s)


@pytest.fixture
async def shop(redis: Redis, namespace: str) -> Shop:
    return Shop(redis, namespace, COUNT)


class TestSharing:
    async def test_a_partition_alone_may_have_all(self, shop: Shop) -> None:
        await shop.open(100)
        one = balancer(shop.engines)
        await turns(one, 3)
        await shop.put(2, 150)
        running = 0
        for _ in range(6):
            running += len(await shop.take(2, 150))
            await one.turn()
            await shop.look()
        assert running == 100

    async def test_nothing_starts_before_there_is_a_share(self, shop: Shop) -> None:
        await shop.open(100)
        await shop.put(0, 1)
        assert not await shop.take(0)
        await turns(balancer(shop.engines), 3)
        assert len(await shop.take(0)) == 1

    async def test_all_that_want_more_get_the_same(self, shop: Shop) -> None:
        await shop.open(100)
        one = balancer(shop.engines)
        for index in range(COUNT):
            await shop.put(index, 200)
            await shop.take(index, 200)
        for _ in range(4):
            await one.turn()
            for index in range(COUNT):
                await shop.take(index, 200)
        assert await shop.look() == (100, 100)
        documents = [(await each.constraints(["c"])).documents[0] for each in shop.engines]
        assert [(each["concurrency"], each["share"], each["running"]) for each in documents] == [
            (100, {"concurrency": 25}, 25)
        ] * COUNT

    async def test_a_limit_of_one_goes_around(self, shop: Shop) -> None:
        await shop.open(1)
        one = balancer(shop.engines)
        for index in range(COUNT):
            await shop.put(index, 300)
        ended = [0] * COUNT
        for _ in range(200):
            for index in range(COUNT):
                jobs = await shop.take(index)
                await shop.look()
                await shop.end(index, jobs)
                ended[index] += len(jobs)
            await one.turn()
        assert min(ended) > 0.6 * max(ended) > 0

    async def test_a_rate_holds_for_all_together(self, redis: Redis, namespace: str) -> None:
        shop = Shop(redis, namespace, COUNT)
        shop.limit = 100
        for engine in shop.engines:
            await set_up(redis, engine.namespace)
        await constrain(shop.engines, {"rate": {"limit": 40, "period": 1}})
        one = balancer(shop.engines)
        for index in range(COUNT):
            await shop.put(index, 300)
        started: list[int] = []
        while len(started) < 3 * 40:
            index = random.randrange(COUNT)
            for job in await shop.take(index, 40):
                started.append((await shop.engines[index].get(job.id))[0]["started_ms"])
                await shop.end(index, [job])
            await one.turn()
            await asyncio.sleep(0.01)
        started.sort()
        assert all(later - first >= 1000 for first, later in zip(started, started[40:], strict=False))

    async def test_a_lower_limit_holds_when_the_call_returns(self, shop: Shop) -> None:
        await shop.open(100)
        one = balancer(shop.engines)
        for index in range(COUNT):
            await shop.put(index, 200)
            await shop.take(index, 200)
        await turns(one, 3)
        running = [len(await shop.take(index, 10)) for index in range(COUNT)]
        await constrain(shop.engines, {"concurrency": 50})
        for _ in range(6):
            await one.turn()
            for index in range(COUNT):
                running[index] += len(await shop.take(index, 100))
            assert sum(running) <= 50
        assert sum(running) == 50

    async def test_what_is_limited_in_some_partitions_only_starts_nothing(self, shop: Shop) -> None:
        shop.limit = 10
        for engine in shop.engines:
            await set_up(shop.redis, engine.namespace)
        await constrain(shop.engines[:-1], {"concurrency": 10})
        one = balancer(shop.engines)
        await shop.put(0, 10)
        await turns(one, 4)
        assert not await shop.take(0)
        await constrain(shop.engines, {"concurrency": 10})
        await turns(one, 4)
        assert await shop.take(0)


async def stopped_at(shop: Shop, stop: int, is_cut: bool) -> None:
    """A balancer is held back at a point, as by SIGSTOP; another moves all units elsewhere; then the first goes on.
    ``is_cut``: the other does not reach for a while where the units are."""
    await shop.open(4)
    before = balancer(shop.engines)
    while (await shop.look())[1] < 4:  # a slow server's answers come too late for a turn
        await before.turn()
    await before.leave()
    await shop.put(2, 50)
    assert len(await shop.take(2, 50)) == 1  # each partition has a unit of the four
    goes_on, stands, turn = asyncio.Event(), asyncio.Event(), 0
    passed = 0

    async def passes() -> None:
        nonlocal passed
        passed += 1
        await shop.look()
        if passed > stop:
            stands.set()
            await goes_on.wait()

    async def fails() -> None:
        if is_cut and turn < 5:
            raise Unavailable("cut off")

    async def play(turns: int = 1) -> None:
        for _ in range(turns):
            await shop.take(2, 50)
            await shop.take(1, 50)
            await shop.look()

    stopped = balancer([Gate(engine, passes) for engine in shop.engines])
    going = asyncio.ensure_future(turns(stopped, 6))
    await asyncio.wait([going, asyncio.ensure_future(stands.wait())], return_when=asyncio.FIRST_COMPLETED)
    held = await shop.take(2, 50)
    await asyncio.sleep(stopped._lease_s + 0.01)
    await shop.put(1, 50)
    await shop.take(1)
    other = balancer([Gate(one, fails) if at == 2 else one for at, one in enumerate(shop.engines)])
    for turn in range(10):
        await other.turn()
        await shop.look()
        await shop.take(1, 50)
        if turn == 6:
            await shop.end(2, held)
            await play()
    goes_on.set()
    for _ in range(5):
        await asyncio.sleep(0.005)
        await play()
    with suppress(JQError):
        await asyncio.wait_for(going, 60)
    await play(2)
    assert (await shop.look())[0] > 0


class TestBalancers:
    async def test_one_at_a_time(self, shop: Shop) -> None:
        await shop.open(10)
        first, second = balancer(shop.engines), balancer(shop.engines)
        await turns(first, 2)
        assert await second.turn() > 0
        assert first._reign and not second._reign
        await first.leave()
        await asyncio.sleep(0.01)
        await second.turn()
        assert second._reign

    @pytest.mark.parametrize("is_cut", [False, True])
    @pytest.mark.parametrize("first", range(0, 44, 11))
    async def test_stopped_between_any_two_calls_while_another_takes_over(
        self, redis: Redis, namespace: str, first: int, is_cut: bool
    ) -> None:
        """44 points in the first four turns, before and behind each call."""
        shops = {stop: Shop(redis, f"{namespace[:-1]}.{stop}}}", COUNT) for stop in range(first, first + 11)}
        await asyncio.gather(*(stopped_at(shop, stop, is_cut) for stop, shop in shops.items()))

    @pytest.mark.faults
    @pytest.mark.parametrize("seed", range(3))
    async def test_several_that_stall_and_die_while_workers_pick_anywhere(self, shop: Shop, seed: int) -> None:
        chance = random.Random(seed)
        limit = (7, 1, 40)[seed]
        await shop.open(limit)
        ends = asyncio.get_running_loop().time() + 6
        most = ended = 0

        async def work() -> None:
            nonlocal most, ended
            while asyncio.get_running_loop().time() < ends:
                index = chance.randrange(COUNT)
                if chance.random() < 0.3:
                    await shop.put(index, chance.randint(1, 20))
                jobs = await shop.take(index, chance.randint(1, 10))
                most = max(most, (await shop.look())[0])
                await asyncio.sleep(chance.random() * 0.03)
                await shop.end(index, jobs)
                ended += len(jobs)

        async def passes() -> None:
            await shop.look()
            if chance.random() < 0.01:
                await asyncio.sleep(chance.choice((0.05, 0.3, 1)))

        async def balance() -> None:
            while asyncio.get_running_loop().time() < ends:
                one = balancer([Gate(engine, passes) for engine in shop.engines])
                with suppress(TimeoutError):
                    async with asyncio.timeout(chance.choice((0.2, 1, 3))):
                        await one.run()

        await asyncio.gather(*(work() for _ in range(8)), *(balance() for _ in range(3)))
        assert most >= 0.7 * limit
        assert ended > 5 * limit


@pytest.mark.faults
class TestFaults:
    """Three partitions, one of them on a server of its own, which goes back to what it was earlier."""

    @pytest.fixture
    async def apart(self, fresh_server: RedisServer) -> AsyncIterator[Redis]:
        async with connect(fresh_server.url) as client:
            yield client

    async def open(self, redis: Redis, apart: Redis, namespace: str, number: int) -> Shop:
        """With partition ``number`` apart."""
        shop = Shop(redis, namespace, 3)
        shop.engines[number] = Engine(apart, shop.engines[number].namespace)
        for engine in shop.engines:
            await set_up(engine.redis, engine.namespace)
        await shop.constrain(10)
        return shop

    async def running(self, shop: Shop) -> list[int]:
        documents = [(await one.constraints(["c"])).documents[0] for one in shop.engines]
        assert sum(each["running"] for each in documents) <= 10
        return [each["running"] for each in documents]

    async def test_a_partition_away_keeps_its_share_until_it_is_back(self, shop: Shop) -> None:
        await shop.open(10)
        is_away = False

        async def passes() -> None:
            if is_away:
                raise Unavailable("away")

        one = balancer([Gate(engine, passes) if at == 2 else engine for at, engine in enumerate(shop.engines)])
        await shop.put(2, 50)
        await shop.take(2)
        await turns(one, 3)
        jobs = await shop.take(2, 50)
        assert len(jobs) == 10
        is_away = True
        await shop.put(1, 50)
        for again in (one, None):
            if again is None:  # one that never met it
                await one.leave()
                one = balancer(one.partitions)
            await turns(one, 5)
            assert not await shop.take(1, 50)
        is_away = False
        await shop.end(2, jobs[:6])
        await shop.take(1)
        await turns(one, 4)
        assert len(await shop.take(1, 50)) >= 5
        await shop.take(2, 50)
        assert await shop.look() == (10, 10)

    async def test_one_that_was_set_back_starts_nothing_by_an_old_share(
        self, redis: Redis, apart: Redis, fresh_server: RedisServer, namespace: str
    ) -> None:
        shop = await self.open(redis, apart, namespace, 2)
        one = balancer(shop.engines, share_s=4)
        await shop.put(2, 50)
        await shop.take(2)
        await turns(one, 3)
        with fresh_server.client() as client:
            client.save()  # it may start ten
        jobs = await shop.take(2, 50)
        assert len(jobs) == 10
        await shop.put(0, 50)
        await shop.take(0)
        await turns(one, 2)
        await shop.end(2, jobs[:5])
        await turns(one, 3)
        taken = await shop.take(0, 50)
        assert await self.running(shop) == [5, 0, 5]
        fresh_server.kill()
        fresh_server.start()
        await apart.connection_pool.disconnect()
        back = asyncio.get_running_loop().time()
        assert not await shop.take(2, 50)
        await turns(one, 4)
        await shop.end(0, taken[3:])
        while asyncio.get_running_loop().time() < back + 3.5:
            assert not await shop.take(2, 50)  # who still talks to the server before may start five there
            assert (await self.running(shop))[0] <= 5
            await shop.take(0, 50)
            await one.turn()
            await asyncio.sleep(0.1)
        await asyncio.sleep(max(0, back + 4.5 - asyncio.get_running_loop().time()))
        for _ in range(4):
            await one.turn()
            await shop.take(2, 50)
        assert await self.running(shop) == [5, 0, 5]

    async def test_partition_0_set_back_does_not_give_what_another_has(
        self, redis: Redis, apart: Redis, fresh_server: RedisServer, namespace: str
    ) -> None:
        shop = await self.open(redis, apart, namespace, 0)
        is_away = False

        async def passes() -> None:
            if is_away:
                raise Unavailable("away")

        partitions = [*shop.engines[:2], Gate(shop.engines[2], passes)]
        one = balancer(partitions)
        await turns(one, 3)
        with fresh_server.client() as client:
            client.save()  # each has its third
        await shop.put(2, 50)
        had = len(await shop.take(2, 50))
        await turns(one, 4)
        assert had + len(await shop.take(2, 50)) == 10
        fresh_server.kill()
        fresh_server.start()
        is_away = True
        await shop.put(1, 50)
        await shop.take(1)
        for again in (one, balancer(partitions)):
            ends = asyncio.get_running_loop().time() + again._lease_s + 0.3
            while asyncio.get_running_loop().time() < ends:
                await again.turn()
                await asyncio.sleep(0.05)
                assert not await shop.take(1, 50)
            await again.leave()
