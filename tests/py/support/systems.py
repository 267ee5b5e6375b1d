"""A system of three partitions on the tests' Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgpack
import pytest

from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Page
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.looking import Look, look

NIL = msgpack.packb(None)
COUNT = 3


@pytest.fixture
async def system(redis_url: str, namespace: str) -> AsyncIterator[SystemEngine]:
    await calls.create(redis_url, namespace, COUNT)
    engine = SystemEngine(redis_url, namespace, actor="ann")
    yield engine
    await engine.close()


async def looked(url: str, namespace: str) -> Look:
    """The partitions of a system as they are found."""
    engine = SystemEngine(url, namespace)
    try:
        return await look(engine)
    finally:
        await engine.close()


async def put(engine: Engine, count: int = 1, **spec: Any) -> list[str]:
    """Jobs of one partition; their ids."""
    made = await engine.enqueue([({"name": "a", **spec}, msgpack.packb(number)) for number in range(count)])
    return [one.id for one in made]


async def work(engine: Engine, queue: str, count: int, **outcome: Any) -> None:
    """Have jobs end."""
    for job in (await engine.pick("w", queue, count)).jobs:
        await engine.finish("w", [({"id": job.id, "token": job.token, **(outcome or {"type": "success"})}, NIL)])


async def walked(listing: Any, count: int, **more: Any) -> list[Any]:
    """All documents of a listing, page by page, each of at most so many."""
    found: list[Any] = []
    cursor = None
    while True:
        page: Page = await listing(cursor=cursor, count=count, **more)
        assert len(page.documents) <= count
        found += page.documents
        cursor = page.cursor
        if not cursor:
            return found
