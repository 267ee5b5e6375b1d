"""Opening a namespace, or a cluster, by its name: what asks beside the operations is made here for either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from jqmaster.cluster.call import all_of
from jqmaster.cluster.cluster import Cluster
from jqmaster.cluster.names import is_cluster
from jqmaster.cluster.parts import Desks, Ends, Enqueuing, Feeds
from jqmaster.cluster.waiting import ClusterWaiting
from jqmaster.connection.subscriptions import Subscriptions
from jqmaster.connection.together import Coalescer
from jqmaster.engine.calls import connect
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine
from jqmaster.engine.scripts import load
from jqmaster.engine.waiting import Waiting

T = TypeVar("T")

PING_EVERY_S = 60.0  # of each of a cluster's many connections


class Opened:
    """A namespace, with connections of its own."""

    def __init__(self, url: str, namespace: str, **how: Any) -> None:
        self.engine = Engine(connect(url), namespace, **how)

    def waiting(self) -> Waiting:
        """Picks that wait."""
        return Waiting(self.engine, self.engine.redis)

    def ended(self) -> Ended:
        """Who waits for ends of jobs."""
        return Ended(self.engine, self.engine.redis)

    def enqueuing(self) -> Coalescer:
        """Many who enqueue one job each share calls."""
        return Coalescer(self.engine)

    def channels(self, name: str) -> list[tuple[Subscriptions, str]]:
        """Where to listen to what is said on a channel."""
        return [(Subscriptions(self.engine.redis), f"{self.engine.namespace}:{name}")]

    def desk(self, make: Callable[[Engine], T]) -> T:
        """Jobs for workers that are pushed to, from the desk that each namespace has."""
        return make(self.engine)

    def feed(self, make: Callable[[Engine], T]) -> T:
        """Events, from the feed that each namespace has."""
        return make(self.engine)

    async def load(self, **how: Any) -> str:
        """See `engine.scripts.load`."""
        return await load(self.engine.redis, self.engine.namespace, form=self.engine.form, **how)

    async def close(self) -> None:
        """Close the connections."""
        await self.engine.redis.aclose()


class _OpenedCluster(Opened):
    """The same, of several namespaces."""

    engine: Cluster

    def __init__(self, url: str, namespace: str, **how: Any) -> None:
        self.engine = Cluster(url, namespace, **how)

    def waiting(self) -> Any:
        return ClusterWaiting(self.engine.engines)

    def ended(self) -> Any:
        return Ends([Ended(engine, engine.redis) for engine in self.engine.engines])

    def enqueuing(self) -> Any:
        return Enqueuing(self.engine.routes, [Coalescer(engine) for engine in self.engine.engines])

    def channels(self, name: str) -> list[tuple[Subscriptions, str]]:
        engines = self.engine.engines
        return [(Subscriptions(one.redis, ping_every_s=PING_EVERY_S), f"{one.namespace}:{name}") for one in engines]

    def desk(self, make: Callable[[Engine], Any]) -> Any:
        return Desks([make(engine) for engine in self.engine.engines])

    def feed(self, make: Callable[[Engine], Any]) -> Any:
        return Feeds([make(engine) for engine in self.engine.engines])

    async def load(self, **how: Any) -> str:
        loading = (load(one.redis, one.namespace, form=one.form, **how) for one in self.engine.engines)
        version: str = (await all_of(loading))[0]
        return version

    async def close(self) -> None:
        await self.engine.close()


def opened(url: str, namespace: str, **how: Any) -> Opened:
    """A namespace such as `{shop}`, or a cluster such as `{shop:*/16}`. `how`: of `Caller`."""
    return (_OpenedCluster if is_cluster(namespace) else Opened)(url, namespace, **how)
