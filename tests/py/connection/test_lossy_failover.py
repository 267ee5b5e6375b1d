"""A failover loses what was not replicated: the tokens that the old primary gave out then nobody gives out again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Literal

import pytest

from jqmaster.bundle.build import Bundle, builtin
from jqmaster.engine.calling import Holding
from jqmaster.engine.engine import connect
from jqmaster.engine.scripts import load
from settable import SettableEngine
from topologies import Node, nodes, until

pytestmark = pytest.mark.faults

NAMESPACE = "{lossy}"
ROUNDS = 13  # of each kind, of which there are four
JOBS = 5
NIL = b"\xc0"
STEP_S = 0.001

Clock = Literal["equal", "behind"]


@pytest.fixture
def pair() -> Iterator[list[Node]]:
    with nodes(2) as servers:
        yield servers


class Side:
    """One of the two servers, and who works with it while it is the primary."""

    def __init__(self, node: Node, engine: SettableEngine) -> None:
        self.node = node
        self.engine = engine

    @classmethod
    async def enter(cls, stack: AsyncExitStack, node: Node, scripts: Bundle) -> Side:
        redis = await stack.enter_async_context(connect(node.url))
        return cls(node, SettableEngine(redis, NAMESPACE, scripts=scripts))

    async def enqueue(self, count: int = JOBS) -> list[str]:
        """One at a time, each at a moment of its own."""
        ids = []
        for _ in range(count):
            await self.engine.advance(STEP_S)
            ids += [made.id for made in await self.engine.enqueue([({"name": "a"}, NIL)])]
        return ids

    async def start(self, worker: str, count: int) -> list[Holding]:
        started: list[Holding] = []
        while len(started) < count:
            await self.engine.advance(STEP_S)
            picked = await self.engine.pick(worker, "a")
            started += [job.held for job in picked.jobs]
        return started

    async def finish(self, worker: str, held: list[Holding]) -> list[str]:
        said = [({"id": id, "token": token, "type": "success"}, NIL) for id, token in held]
        return (await self.engine.finish(worker, said)).states


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scripts", [builtin("settable"), Bundle(builtin("settable"))], ids=["functions", "scripts"])
@pytest.mark.parametrize("clock", ["equal", "behind"])
async def test_what_was_lost_is_not_given_out_again(pair: list[Node], scripts: Bundle, clock: Clock) -> None:
    async with AsyncExitStack() as stack:
        old, new = [await Side.enter(stack, node, scripts) for node in pair]
        await old.engine.set_clock(old.engine.now_ms)
        await load(old.engine.redis, NAMESPACE, scripts)
        for _ in range(ROUNDS):
            await one_failover(old, new, clock)
            old, new = new, old


async def one_failover(old: Side, new: Side, clock: Clock) -> None:
    """`new` takes over, and lacks what `old` did after it was cut off. When its clock is behind it comes to the very
    same moments once more."""
    await asyncio.to_thread(follow, new.node, old.node)
    kept = await old.enqueue()
    await asyncio.to_thread(until, lambda: new.node.offset() == old.node.offset())
    await asyncio.to_thread(new.node.follow, None)
    at_ms = old.engine.now_ms
    lost = await old.enqueue()
    lost_starts = await old.start("one", 2 * JOBS)
    lost_worker = await old.engine.register("one", "b")
    await new.engine.set_clock(at_ms if clock == "behind" else old.engine.now_ms)
    given = await new.enqueue()
    starts = await new.start("another", 2 * JOBS)
    worker = await new.engine.register("another", "b")

    # At the very same moments ids come again, but no tokens.
    assert clock == "behind" or (not set(lost) & set(given) and lost_worker != worker)
    assert kept == sorted(kept) and max(kept) < min(given)
    assert {id for id, _ in lost_starts} == {*kept, *lost} and {id for id, _ in starts} == {*kept, *given}
    # Who has jobs of the old primary says so to the new one.
    assert set(await new.finish("one", lost_starts)) <= {"LOST", "NOTFOUND"}
    assert set(await new.engine.heartbeat("one", lost_starts)) == {"LOST"}
    assert set(await new.engine.release("one", lost_starts)) <= {"LOST", "NOTFOUND"}
    assert await new.finish("another", starts) == ["done"] * len(starts)
    assert set(await new.finish("one", lost_starts)) <= {"LOST", "NOTFOUND"}


def follow(replica: Node, primary: Node) -> None:
    replica.follow(primary)
    until(replica.has_caught_up)
