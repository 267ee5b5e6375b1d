"""Partitions under a constraint that they share, balancers that are held back, and a look at what runs in all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgpack
from redis.asyncio import Redis

from jqmaster.engine.calls import Argument, Calling
from jqmaster.engine.engine import Engine, Operations
from settable import set_up

NIL = msgpack.packb(None)
# What runs in all partitions of one server, and that or what may run there, whichever is more.
_LOOK = """
local running, most = 0, 0
for _, namespace in ipairs(KEYS) do
  local definition = redis.call('HGET', namespace .. ':constraints', ARGV[1])
  local number = definition and cmsgpack.unpack(definition).n
  local record = number and redis.call('GET', string.format('%s:limit:%d', namespace, number))
  if record then
    local _, _, _, _, its, behind = struct.unpack('>dddBd', record)
    local share, of_rate = struct.unpack('>I4I4', record, behind)
    running, most = running + its, most + math.max(its, share)
  end
end
return {running, most}
"""


class Gate(Operations):
    """A partition, as one balancer reaches it: `passes` may hold a call back, before it is made and behind it."""

    def __init__(self, engine: Calling, passes: Callable[[], Awaitable[None]]) -> None:
        self.engine = engine
        self.passes = passes

    async def call(self, operation: str, *arguments: Argument) -> Any:
        await self.passes()
        reply = await self.engine.call(operation, *arguments)
        await self.passes()
        return reply


class Shop:
    """Namespaces of one server as partitions, with a constraint `c` on jobs `a` that they share."""

    def __init__(self, redis: Redis, namespace: str, count: int) -> None:
        self.redis = redis
        names = [namespace, *(f"{namespace[:-1]}:{number}~0a}}" for number in range(1, count))]
        self.engines = [Engine(redis, name) for name in names]
        self.limit = 0

    async def open(self, limit: int) -> None:
        for engine in self.engines:
            await set_up(self.redis, engine.namespace)
        await self.constrain(limit)

    async def constrain(self, limit: int) -> None:
        self.limit = limit
        await constrain(self.engines, {"concurrency": limit})

    async def put(self, partition: int, count: int) -> None:
        for first in range(0, count, 500):
            jobs = [({"name": "a", "timeout": 1000}, NIL)] * min(500, count - first)
            await self.engines[partition].enqueue(jobs)

    async def take(self, partition: int, count: int = 1) -> list[Any]:
        return (await self.engines[partition].pick("w", "a", count)).jobs

    async def end(self, partition: int, jobs: Sequence[Any]) -> None:
        outcomes = [({"id": job.id, "token": job.token, "type": "success"}, NIL) for job in jobs]
        if outcomes:
            await self.engines[partition].finish("w", outcomes)

    async def look(self) -> tuple[int, int]:
        """(what runs, what may run at most). AssertionError where that is more than the limit."""
        names = [engine.namespace for engine in self.engines]
        running, most = await self.redis.eval(_LOOK, len(names), *names, "c")  # type: ignore[misc]
        assert running <= self.limit and most <= self.limit, (running, most)
        return running, most


async def constrain(engines: Sequence[Calling], limits: dict[str, Any]) -> None:
    spec = msgpack.packb({"id": "c", "shared": True, **limits})
    for engine in engines:
        await engine.call("constrain", spec, msgpack.packb({"name": "a"}))


async def turns(balancer: Any, count: int, pause_s: float = 0.0) -> None:
    for _ in range(count):
        await balancer.turn()
        await asyncio.sleep(pause_s)
