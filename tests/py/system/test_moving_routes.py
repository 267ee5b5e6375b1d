"""Buckets that move while queues have routes: their jobs stay where they are, and others of their values with them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import msgpack
import pytest

from jqmaster.errors import Unavailable
from jqmaster.system import enqueueing, moving
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import bucket_of, partition_of
from jqmaster.system.resizing import add, rebalance, route
from moves import clocks, engine, forget_tokens, will_move  # noqa: F401 (fixtures)

NIL = msgpack.packb(None)
FAILED = {"type": "failure", "should_retry": False}


@pytest.fixture(autouse=True)
async def routed(redis_url: str, namespace: str, engine: SystemEngine) -> None:
    await route(redis_url, namespace, "mail", "argument.customer")
    await engine.look()


def mail(customer: str) -> Any:
    return [({"name": "mail"}, msgpack.packb({"customer": customer}))]


async def test_buckets_stay_until_their_jobs_have_ended(redis_url: str, namespace: str, engine: SystemEngine) -> None:
    assert engine.record
    customers = will_move(engine.record)
    busy, free = next(customers), next(customers)
    [first] = await engine.enqueue(mail(busy))
    await add(redis_url, namespace, 2)
    found = await rebalance(redis_url, namespace)
    assert found.busy == {bucket_of(busy.encode()): 1} and not found.is_done
    await engine.look()
    assert engine.record and not engine.record.moving
    [second], [other] = [await engine.enqueue(mail(one)) for one in (busy, free)]
    assert partition_of(second.id) == partition_of(first.id)
    assert partition_of(other.id) == engine.record.home(free.encode()) in (2, 3)
    for _ in range(2):
        for job in (await engine.pick("w", "mail", 5)).jobs:
            await engine.finish("w", [({"id": job.id, "token": job.token, **FAILED}, NIL)])
    await forget_tokens(engine)
    found = await rebalance(redis_url, namespace)
    assert (found.buckets, found.busy) == (1, {}) and set(Counter(found.system.buckets).values()) == {256}
    assert await engine.retry([first.id, second.id]) == ["CONFLICT"] * 2, "others of its value are elsewhere"


async def test_they_take_nothing_while_jobs_are_looked_for(
    redis_url: str, namespace: str, engine: SystemEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine.record
    customer = next(will_move(engine.record))
    await add(redis_url, namespace, 2)
    looked, may_go = asyncio.Event(), asyncio.Event()
    real = moving.busy_buckets

    async def slow(*arguments: Any) -> Any:
        found = await real(*arguments)
        looked.set()
        await may_go.wait()
        return found

    monkeypatch.setattr(moving, "busy_buckets", slow)
    balancing = asyncio.create_task(rebalance(redis_url, namespace))
    await looked.wait()
    asking = asyncio.create_task(engine.enqueue(mail(customer)))
    done, _ = await asyncio.wait({asking}, timeout=0.3)
    assert not done
    may_go.set()
    [made] = await asking
    moved = await balancing
    assert partition_of(made.id) == moved.system.home(customer.encode())
    assert bucket_of(customer.encode()) in moved.system.former


async def test_who_breaks_off_then_holds_nobody_up_for_ever(
    redis_url: str, namespace: str, engine: SystemEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine.record
    customer = next(will_move(engine.record))
    await add(redis_url, namespace, 2)

    async def breaks(*_: Any) -> Any:
        raise Unavailable("broken off")

    with monkeypatch.context() as patched:
        patched.setattr(moving, "busy_buckets", breaks)
        with pytest.raises(Unavailable, match="broken off"):
            await rebalance(redis_url, namespace)
    monkeypatch.setattr(enqueueing, "_MOVES_S", 0.2)
    with pytest.raises(Unavailable, match="is about to move: repeat `jqmaster system rebalance`"):
        await engine.enqueue(mail(customer))
    assert (await rebalance(redis_url, namespace)).buckets
    assert (await engine.enqueue(mail(customer)))[0].created
