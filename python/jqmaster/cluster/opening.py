"""Opening a namespace, or a cluster, by its name. What asks beside the operations is made here for either."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from jqmaster.cluster.cluster import Cluster
from jqmaster.cluster.names import is_cluster, number_of
from jqmaster.cluster.routes import Routes, split
from jqmaster.connection import plainly
from jqmaster.connection.endpoint import Endpoint, endpoint_of
from jqmaster.connection.together import Together
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.engine.waiting import Waiting

T = TypeVar("T")


class All:
    """As one of its parts: what is done, is done to each; what is about a job, where that is."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts = parts

    @property
    def under_way(self) -> int:
        return sum(part.under_way for part in self._parts)

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def poke(self) -> None:
        for part in self._parts:
            part.poke()

    def drain(self) -> None:
        for part in self._parts:
            part.drain()

    async def stop(self, *within: float) -> None:
        await asyncio.gather(*(part.stop(*within) for part in self._parts))

    async def wait(self, job_id: bytes, timeout_s: float) -> str | None:
        state: str | None = await self._part(job_id).wait(job_id, timeout_s)
        return state

    def _part(self, job_id: str | bytes) -> Any:
        return self._parts[number_of(job_id, len(self._parts))]


class Enqueuing:
    """As `Together`: those whose jobs go to the same partition share calls."""

    def __init__(self, routes: Routes, parts: Sequence[Together]) -> None:
        self._routes, self._parts = routes, parts

    async def get(self, spec: bytes, argument: bytes) -> list[Any]:
        _, parts = await split([spec, argument], self._routes, len(self._parts))
        return await self._parts[next(iter(parts))].get(spec, argument)


class Opened:
    """A namespace such as `{shop}`, or a cluster such as `{shop:*/16}`, with connections of its own."""

    def __init__(self, url: str, namespace: str, **how: Any) -> None:
        """`how`: of `Engine`. Raises ValueError for a URL or a name that cannot be."""
        self._cluster = Cluster(url, namespace, **how) if is_cluster(namespace) else None
        self.engine: Engine = self._cluster or Engine(connect(url), namespace, **how)
        self._engines: Sequence[Engine] = self._cluster.engines if self._cluster else [self.engine]

    def each(self, make: Callable[[Engine], T]) -> T:
        """What each namespace has: a thing that is started and stopped, or knows of jobs."""
        parts = [make(engine) for engine in self._engines]
        return cast(T, All(parts)) if self._cluster else parts[0]

    def share(self, most: int) -> int:
        """How many of so many each namespace may have."""
        return max(1, most // len(self._engines))

    def ended(self) -> Ended:
        """Who waits for ends of jobs."""
        return self.each(lambda engine: Ended(engine, engine.redis))

    def waiting(self) -> Waiting:
        """Picks that wait."""
        return self._cluster.partitions.picking if self._cluster else Waiting(self.engine)

    def enqueuing(self) -> Together:
        """Many who enqueue one job each share calls."""
        parts = [Together(engine, "enqueue") for engine in self._engines]
        return cast(Together, Enqueuing(self._cluster.partitions.routes, parts)) if self._cluster else parts[0]

    def channels(self, name: str) -> list[tuple[Endpoint, str]]:
        """Where to listen to what is said on a channel."""
        return [(endpoint_of(engine.redis), f"{engine.namespace}:{name}") for engine in self._engines]

    def engine_of(self, job_id: str) -> Engine:
        """That of a job's namespace."""
        return self._engines[number_of(job_id, len(self._engines)) if self._cluster else 0]

    async def load(self) -> str:
        """See `engine.scripts.load`."""
        for engine in self._engines:
            version = await load(engine.redis, engine.namespace, form=engine.form)
        return version

    async def close(self) -> None:
        """Close the connections."""
        if self._cluster and not plainly.is_plain():
            await self._cluster.partitions.picking.stop()
        for engine in self._engines:
            await engine.redis.aclose()
