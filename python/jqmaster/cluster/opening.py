"""Opening a namespace, or a cluster, by its name. What asks beside the operations is made here for either."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from jqmaster.cluster.cluster import Cluster
from jqmaster.cluster.names import is_cluster, number_of
from jqmaster.cluster.routes import Routes, split
from jqmaster.connection import plainly
from jqmaster.connection.together import Together
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.engine.waiting import Waiting


class EndedAnywhere:
    """As `Ended`, over partitions."""

    def __init__(self, parts: Sequence[Ended]) -> None:
        self._parts = parts

    async def wait(self, job_id: bytes, timeout_s: float) -> str | None:
        return await self._parts[number_of(job_id, len(self._parts))].wait(job_id, timeout_s)

    async def stop(self) -> None:
        await asyncio.gather(*(part.stop() for part in self._parts))


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
        self.engines = self.engine.engines

    def ended(self) -> Ended:
        """Who waits for ends of jobs."""
        parts = [Ended(engine, engine.redis) for engine in self.engines]
        return cast(Ended, EndedAnywhere(parts)) if self._cluster else parts[0]

    def waiting(self) -> Waiting:
        """Picks that wait."""
        return self._cluster.picking if self._cluster else Waiting(self.engine)

    def enqueuing(self) -> Together:
        """Many who enqueue one job each share calls."""
        parts = [Together(engine, "enqueue") for engine in self.engines]
        return cast(Together, Enqueuing(self._cluster.routes, parts)) if self._cluster else parts[0]

    def engine_of(self, job_id: str) -> Engine:
        """That of a job's namespace."""
        return self.engines[number_of(job_id, len(self.engines))]

    async def load(self) -> str:
        """See `engine.scripts.load`."""
        for engine in self.engines:
            version = await load(engine.redis, engine.namespace, engine.scripts)
        return version

    async def close(self) -> None:
        """Close the connections."""
        if self._cluster and not plainly.is_plain():
            await self._cluster.picking.stop()
        for engine in self.engines:
            await engine.redis.aclose()
