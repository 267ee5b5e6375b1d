"""Constraints of a system, by its engine and by the library: set once, they hold for all partitions together."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import msgpack
import pytest

from jqmaster import JQ
from jqmaster.engine.calls import Argument
from jqmaster.engine.engine import Engine
from jqmaster.errors import Invalid, NotFound, Unavailable
from jqmaster.system import calls
from jqmaster.system.balance import Balancer
from jqmaster.system.engine import SystemEngine
from sharing import turns

COUNT = 4
NIL = msgpack.packb(None)


@pytest.fixture
async def engine(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    await calls.create(redis_url, namespace, COUNT)
    engine = SystemEngine(redis_url, namespace)
    yield engine
    await engine.close()


async def constraints(engine: SystemEngine) -> list[Any]:
    return [(await one.constraints(["c"])).documents for one in await engine.partitions()]


async def test_a_constraint_is_in_all_partitions(engine: SystemEngine) -> None:
    document = await engine.constrain("c", {"name": "a"}, concurrency=10)
    assert (document["id"], document["concurrency"], document["running"]) == ("c", 10, 0)
    assert "share" not in document
    assert all(one["concurrency"] == 10 and one["share"] == {"concurrency": 0} for [one] in await constraints(engine))
    await engine.unconstrain("c")
    assert await constraints(engine) == [[]] * COUNT
    with pytest.raises(NotFound):
        await engine.unconstrain("c")


async def test_it_holds_for_all_together(engine: SystemEngine) -> None:
    await engine.constrain("c", {"name": "a"}, concurrency=10)
    for _ in range(60):
        await engine.enqueue([({"name": "a"}, NIL)])
    partitions = await engine.partitions()
    balancer = Balancer(partitions, busy_s=0.02)
    started = 0
    for _ in range(8):
        await balancer.turn()
        for one in partitions:
            started += len((await one.pick("w", "a", 20)).jobs)
    assert started == 10
    document = await engine.constrain("c", {"name": "a"}, concurrency=10)  # the same again changes nothing
    assert document["running"] == 10


async def test_what_waits_says_which_share_it_waits_for(engine: SystemEngine) -> None:
    await engine.constrain("c", {"name": "a"}, concurrency=2)
    [made] = await engine.enqueue([({"name": "a"}, NIL)])
    for one in await engine.partitions():
        await one.pick("w", "a")
    [shown] = (await engine.explain(made.id))["constraints"]
    assert (shown["open"], shown["concurrency"], shown["share"]) == (False, 2, {"concurrency": 0})


async def test_a_hold_holds_everywhere(engine: SystemEngine) -> None:
    await engine.constrain("c", {"name": "a"}, concurrency=100)
    await turns(Balancer(await engine.partitions(), busy_s=0.02), 4)
    until_ms = await engine.hold("c", 100)
    assert all(until_ms - 1000 < one["hold_ms"] <= until_ms for [one] in await constraints(engine))
    await engine.hold("c", 0)
    assert not any("hold_ms" in one for [one] in await constraints(engine))
    with pytest.raises(NotFound):
        await engine.hold("unknown", 5)


@pytest.mark.parametrize(
    ("field", "limits"),
    [
        ("by", {"by": "argument.a", "concurrency": 1}),
        ("order", {"concurrency": 1, "order": "strict"}),
        ("cost", {"rate": {"limit": 5, "period": 1}, "cost": 2}),
        ("rate.smooth", {"rate": {"limit": 5, "period": 1, "smooth": True}}),
    ],
)
async def test_what_partitions_cannot_share_is_refused(
    engine: SystemEngine, field: str, limits: dict[str, Any]
) -> None:
    with pytest.raises(Invalid, match="have to be in one partition of the system") as refused:
        await engine.constrain("c", {"name": "a"}, **limits)
    assert refused.value.path == field
    assert await constraints(engine) == [[]] * COUNT


@pytest.mark.parametrize("operation", ["constrain", "unconstrain", "hold"])
async def test_a_part_that_is_done_is_told(
    engine: SystemEngine, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.constrain("c", {"name": "a"}, concurrency=10)
    last = (await engine.partitions())[-1]
    call = Engine.call

    async def fails(one: Engine, operation: str, *arguments: Argument) -> Any:
        if one is last:
            raise Unavailable("no answer")
        return await call(one, operation, *arguments)

    async def ask() -> None:
        if operation == "constrain":
            await engine.constrain("c", {"name": "a"}, concurrency=20)
        elif operation == "hold":
            await engine.hold("c", 5)
        else:
            await engine.unconstrain("c")

    monkeypatch.setattr(Engine, "call", fails)
    with pytest.raises(Unavailable, match=r"applied in 3 of 4 partitions"):
        await ask()
    monkeypatch.undo()
    await ask()  # and repeating it does the rest


async def test_processes_balance_and_take_over(redis_url: str, namespace: str, engine: SystemEngine) -> None:
    """One is stopped, as by a debugger, and goes on when another has moved all units elsewhere."""
    command = [sys.executable, "-m", "jqmaster", "system", "balance", "--redis", redis_url, "--namespace", namespace]
    await engine.constrain("c", {"name": "a"}, concurrency=10)
    partitions = await engine.partitions()

    async def start(number: int, count: int, within_s: float = 15) -> list[Any]:
        """So many jobs, as soon as they may."""
        found: list[Any] = []
        for _ in range(int(within_s / 0.05)):
            found += (await partitions[number].pick("w", "a", count - len(found))).jobs
            if len(found) == count:
                return found
            await asyncio.sleep(0.05)
        raise AssertionError(f"{len(found)} of {count} started")

    for one in partitions[:2]:
        await one.enqueue([({"name": "a"}, NIL)] * 40)
    first = await asyncio.create_subprocess_exec(*command)
    second = None
    try:
        jobs = await start(0, 10)
        first.send_signal(signal.SIGSTOP)
        second = await asyncio.create_subprocess_exec(*command)
        await partitions[0].finish("w", [({"id": job.id, "token": job.token, "type": "success"}, NIL) for job in jobs])
        others = await start(1, 5)
        first.send_signal(signal.SIGCONT)
        for _ in range(30):
            running = [documents[0]["running"] for documents in await constraints(engine)]
            assert sum(running) <= 10
            others += (await partitions[1].pick("w", "a", 10)).jobs
            await partitions[0].pick("w", "a", 10)
            await asyncio.sleep(0.05)
        second.terminate()
        assert await asyncio.wait_for(second.wait(), 60) == 0
        await partitions[1].finish(
            "w", [({"id": one.id, "token": one.token, "type": "success"}, NIL) for one in others]
        )
        await start(0, 1)  # the first goes on
        first.terminate()
        assert await asyncio.wait_for(first.wait(), 60) == 0
    finally:
        for process in filter(None, (first, second)):
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def test_the_library_has_them(redis_url: str, namespace: str, engine: SystemEngine) -> None:
    jq = JQ(redis_url, system=namespace)
    await jq.aconstrain("c", {"name": "a"}, concurrency=10)
    await jq.ahold("c", 5)
    assert all(one["hold_ms"] for [one] in await constraints(engine))
    await jq.aunconstrain("c")
    assert await constraints(engine) == [[]] * COUNT
