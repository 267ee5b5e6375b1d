"""Long polls: woken by markers and timers, never by polling; no wake and no job gets lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from jqmaster.connection import wake
from jqmaster.engine import replies
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.engine.waiting import Waiting, channel_of
from jqmaster.errors import Unavailable
from parts import LONG_S, asleep, commands, enqueue, eventually, status
from servers import RedisServer

POLL_S = 55.0
SOON_S = 0.75 * LONG_S  # far below the window of 60 s after which a sleeper looks by itself


@pytest.fixture
async def waiting(engine: Engine, redis: Redis) -> AsyncIterator[Waiting]:
    waiting = Waiting(engine)
    yield waiting
    await waiting.stop()


def ids(reply: list[object]) -> list[str]:
    return [job.id for job in replies.picked(reply).jobs]


def poll(waiting: Waiting, worker: str = "w", queues: object = "mail", timeout_s: float = POLL_S, **more: object):
    return asyncio.create_task(waiting.pick({"worker": worker, "queues": queues, **more}, timeout_s))


async def test_a_job_that_comes_later_ends_the_poll(engine: Engine, waiting: Waiting) -> None:
    polling = poll(waiting)
    await asleep(engine)
    job = await enqueue(engine)
    assert ids(await asyncio.wait_for(polling, SOON_S)) == [job]


async def test_a_poll_ends_empty_when_its_time_is_up(waiting: Waiting) -> None:
    assert await asyncio.wait_for(poll(waiting, timeout_s=0.05), SOON_S) == [60_000]


async def test_a_repeated_request_whose_jobs_are_over_is_answered_at_once(engine: Engine, waiting: Waiting) -> None:
    job = await enqueue(engine)
    [picked] = (await engine.pick("w", "mail", request="r")).jobs
    await engine.finish("w", [({"id": job, "token": picked.token, "type": "success"}, b"\xc0")])
    await enqueue(engine, delay=0.001)  # due, and a repeated request sweeps nothing
    await asyncio.sleep(0.01)
    before = await commands(engine.redis)
    assert await asyncio.wait_for(poll(waiting, request="r"), SOON_S) == [1]
    assert await commands(engine.redis) - before < 20
    await asyncio.wait_for(poll(waiting, request="r2"), SOON_S)


async def test_a_sleeper_cancelled_while_it_wakes_passes_the_wake_on(engine: Engine, redis: Redis) -> None:
    channel = wake.Channel(redis, f"{engine.namespace}:wake:test")
    first = asyncio.create_task(wake.sleep([channel], POLL_S))
    await eventually(lambda: len(channel.sleepers) == 1)
    second = asyncio.create_task(wake.sleep([channel], POLL_S))
    await eventually(lambda: len(channel.sleepers) == 2)
    channel.pass_on()
    first.cancel()  # before it has run again
    assert await asyncio.wait_for(second, SOON_S)
    await channel.stop()


async def test_the_last_sleeper_cancelled_while_it_wakes_puts_the_marker_back(engine: Engine, redis: Redis) -> None:
    channel = wake.Channel(redis, f"{engine.namespace}:wake:test")
    only = asyncio.create_task(wake.sleep([channel], POLL_S))
    await eventually(lambda: len(channel.sleepers) == 1)
    channel.pass_on()
    only.cancel()
    other = wake.Channel(redis, channel.key)
    assert await asyncio.wait_for(wake.sleep([other], SOON_S), SOON_S)
    await channel.stop()
    await other.stop()


async def test_a_poll_of_several_partitions_cancelled_while_it_wakes_puts_the_marker_back(
    engine: Engine, redis: Redis
) -> None:
    other = engine.namespace[:-1] + "-other}"
    await load(redis, other)
    waiting = Waiting(engine, Engine(redis, other))
    polling = poll(waiting)
    channel = (await eventually(lambda: [one for one in waiting.channels if one.sleepers]))[0]
    channel.pass_on()
    polling.cancel()
    next_one = wake.Channel(redis, channel.key)
    assert await asyncio.wait_for(wake.sleep([next_one], SOON_S), SOON_S)
    await waiting.stop()
    await next_one.stop()


async def test_a_job_picked_for_a_caller_who_left_is_given_back(engine: Engine, redis: Redis) -> None:
    answered, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Engine):
        async def raw(self, script: str, *arguments: object) -> object:
            reply = await super().raw(script, *arguments)  # type: ignore[arg-type]
            if script == "pick":
                answered.set()
                await go_on.wait()
            return reply

    waiting = Waiting(Slow(redis, engine.namespace))
    job = await enqueue(engine)
    polling = poll(waiting)
    await answered.wait()
    assert await status(engine, job) == "running"
    polling.cancel()
    go_on.set()
    await eventually(lambda: _queued(engine, job))
    [document] = await engine.get([job])
    assert document is not None and document["retry_count"] == 0
    await waiting.stop()


async def test_jobs_are_not_taken_back_from_a_client_that_has_them(engine: Engine, redis: Redis) -> None:
    """A partition that answers too late the first time, and in time when it is asked again."""

    class SlowOnce(Engine):
        looks = 0

        async def raw(self, script: str, *arguments: object) -> object:
            reply = await super().raw(script, *arguments)  # type: ignore[arg-type]
            if script == "pick":
                self.looks += 1
                if self.looks == 1:
                    raise Unavailable("no answer in time")
            return reply

    other = engine.namespace[:-1] + "-other}"
    await load(redis, other)
    job = await enqueue(engine)
    slow = SlowOnce(redis, engine.namespace)
    waiting = Waiting(slow, Engine(redis, other))
    assert ids(await poll(waiting)) == [job]
    assert slow.looks == 2
    await asyncio.sleep(1.5)
    assert await status(engine, job) == "running"
    await waiting.stop()


async def test_jobs_are_taken_back_although_another_partition_has_more_to_do(engine: Engine, redis: Redis) -> None:
    class Loses(Engine):
        async def raw(self, script: str, *arguments: object) -> object:
            await super().raw(script, *arguments)  # type: ignore[arg-type]
            self.__class__ = Engine  # type: ignore[assignment]
            raise Unavailable("no answer in time")

    class Swept(Engine):
        async def raw(self, script: str, *arguments: object) -> object:
            self.__class__ = Engine  # type: ignore[assignment]
            return [0]

    job = await enqueue(engine)
    waiting = Waiting(Loses(redis, engine.namespace), Swept(redis, engine.namespace[:-1] + "-other}"))
    assert await asyncio.wait_for(poll(waiting), SOON_S) == [0]
    await eventually(lambda: _queued(engine, job))
    await waiting.stop()


async def _queued(engine: Engine, job: str) -> bool:
    return await status(engine, job) == "queued"


async def test_draining_answers_open_polls_at_once(engine: Engine, waiting: Waiting) -> None:
    polls = [poll(waiting, f"w{number}") for number in range(3)]
    await asleep(engine)
    waiting.drain()
    assert await asyncio.wait_for(asyncio.gather(*polls), SOON_S) == [[60_000]] * 3
    assert await waiting.pick({"worker": "w", "queues": "mail"}, POLL_S) == [-1]


async def test_polls_with_one_wish_share_one_connection_and_the_last_gives_it_back(
    engine: Engine, waiting: Waiting
) -> None:
    polls = [poll(waiting, f"w{number}", ["a", "b"]) for number in range(5)]
    polls += [poll(waiting, "other", ["b", "a"])]
    await eventually(lambda: waiting.channels and len(waiting.channels[0].sleepers) == 6)
    [channel] = waiting.channels
    assert channel.connected
    for one in polls:
        one.cancel()
    await eventually(lambda: not channel.connected)


def test_the_order_of_queues_matters_to_the_channel_only_where_it_does_to_the_pick() -> None:
    assert channel_of(["a", "b"]) == channel_of(["b", "a"])
    assert channel_of("a") == channel_of(["a"])
    assert channel_of("a", ["x", "y"]) == channel_of("a", ["y", "x"]) != channel_of("a")
    assert len(channel_of("a")) <= 64


@pytest.mark.parametrize("seed", range(4))
async def test_no_wake_is_lost_whoever_leaves_when(engine: Engine, redis: Redis, seed: int) -> None:
    """Polls come and go at random on two masters while jobs arrive; every job is picked soon."""
    dice = random.Random(seed)
    masters = [Waiting(engine), Waiting(engine)]
    picked: set[str] = set()

    async def poller(number: int) -> None:
        while True:
            reply = await dice.choice(masters).pick(
                {"worker": f"p{number}", "queues": "mail", "count": dice.randint(1, 3)},
                dice.choice((0.01, POLL_S)),
            )
            picked.update(ids(reply))

    async def leaver(number: int) -> None:
        while True:
            one = poll(dice.choice(masters), f"l{number}")
            await asyncio.wait({one}, timeout=dice.uniform(0, 0.02))
            if one.done():
                picked.update(ids(one.result()))
            one.cancel()

    people = [asyncio.create_task(poller(number)) for number in range(4)]
    people += [asyncio.create_task(leaver(number)) for number in range(4)]
    made: set[str] = set()
    for _ in range(60):
        count = dice.randint(1, 4)
        delay = dice.choice((0, 0, 0.02))
        jobs = await engine.enqueue([({"name": "mail", "delay": delay}, b"\xc0")] * count)
        made |= {job.id for job in jobs}
        await asyncio.sleep(dice.uniform(0, 0.03))
    await eventually(lambda: picked == made, SOON_S)
    for person in people:
        person.cancel()
    for master in masters:
        await master.stop()


async def test_idle_polls_make_next_to_no_calls(fresh_server: RedisServer) -> None:
    async with connect(fresh_server.url) as redis:
        await load(redis, "{idle}")
        engine = Engine(redis, "{idle}")
        waiting = Waiting(engine)
        polls = [poll(waiting, f"w{number}") for number in range(20)]
        await eventually(lambda: waiting.channels and len(waiting.channels[0].sleepers) == 20)
        await asleep(engine)
        before = await commands(redis)
        await asyncio.sleep(2)
        assert await commands(redis) - before <= 3  # the question itself is one
        for one in polls:
            one.cancel()
        await waiting.stop()


async def test_a_poll_outlives_a_restart_of_redis() -> None:
    with RedisServer("--appendonly", "yes", "--appendfsync", "always") as server:
        async with connect(server.url) as redis:
            await load(redis, "{t}")
            engine = Engine(redis, "{t}")
            waiting = Waiting(engine)
            polling = poll(waiting)
            await asleep(engine)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            job = await enqueue(engine)
            assert ids(await asyncio.wait_for(polling, SOON_S)) == [job]
            await waiting.stop()


async def test_stopping_is_quick_while_redis_is_away() -> None:
    with RedisServer() as server:
        async with connect(server.url) as redis:
            await load(redis, "{t}")
            waiting = Waiting(Engine(redis, "{t}"))
            polling = poll(waiting)
            await asleep(Engine(redis, "{t}"))
            server.kill()
            await asyncio.wait_for(waiting.stop(), SOON_S)
            assert await asyncio.wait_for(polling, SOON_S) == [60_000]


async def test_a_marker_nobody_here_can_answer_goes_back(engine: Engine, redis: Redis) -> None:
    channel = wake.Channel(redis, f"{engine.namespace}:wake:test")
    sleeping = asyncio.create_task(wake.sleep([channel], POLL_S))
    await asleep(engine)
    channel.pass_on()  # the sleeper leaves, its connection is still blocked
    await sleeping
    await redis.zadd(channel.key, {b"1": 0})
    await eventually(lambda: _members(redis, channel.key))
    assert await asyncio.wait_for(wake.sleep([channel], SOON_S), SOON_S)
    await channel.stop()


async def _members(redis: Redis, key: str) -> bool:
    return bool(await redis.zcard(key))


async def test_start_and_stop_many_times(engine: Engine, redis: Redis) -> None:
    for number in range(30):
        waiting = Waiting(engine)
        polls = [poll(waiting, f"w{n}") for n in range(3)]
        if number % 2:
            await asleep(engine)
        await asyncio.wait_for(waiting.stop(), SOON_S)
        assert await asyncio.wait_for(asyncio.gather(*polls), SOON_S) == [[60_000]] * 3
