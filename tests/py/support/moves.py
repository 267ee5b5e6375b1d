"""Systems in which buckets move, for tests: as many partitions again come, and a clock that is the same everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from jqmaster.system import calls, moving, resizing
from jqmaster.system.engine import SystemEngine
from jqmaster.system.layout import spread
from jqmaster.system.record import System, bucket_of
from jqmaster.system.resizing import add, rebalance

COUNT = 2


@pytest.fixture
async def engine(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    await calls.create(redis_url, namespace, COUNT)
    engine = SystemEngine(redis_url, namespace)
    yield engine
    await engine.close()


@pytest.fixture(autouse=True)
def clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """All partitions of these tests have one clock, and are told at once."""
    monkeypatch.setattr(moving, "CLOCKS_S", 0.0)
    monkeypatch.setattr(resizing, "LEARNT_S", 0.0)


async def grown(engine: SystemEngine, count: int = 2) -> System:
    """With more partitions, to which buckets have moved; as the engine knows it."""
    await add(engine.url, engine.root, count)
    await rebalance(engine.url, engine.root)
    await engine.look()
    assert engine.record is not None
    return engine.record


def will_move(record: System, count: int = 2) -> Iterator[str]:
    """Names whose buckets move when so many partitions are added."""
    there = len(record.partitions)
    moves = spread(record.buckets, range(there + count))
    return (one for one in (f"name {number}" for number in range(10_000)) if bucket_of(one.encode()) in moves)


async def forget_tokens(engine: SystemEngine) -> None:
    """Until partitions know no request token of before any more, as far as the setting says."""
    await engine.config(set={"request_ttl": 1})
    await asyncio.sleep(1.1)
