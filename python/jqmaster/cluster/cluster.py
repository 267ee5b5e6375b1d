"""The operations of a cluster: as `engine.engine.Engine` has those of one namespace, over all partitions."""

from __future__ import annotations

from typing import Any

from jqmaster.cluster.partitions import Call, Partitions, all_of
from jqmaster.cluster.ways import WAYS
from jqmaster.engine.calling import Argument
from jqmaster.engine.engine import Engine, Observe
from jqmaster.manifest.manifest import operations

# What is set alike in all partitions, beside the settings: listings, what names a thing, and which fields are set.
_SET = {
    "queues": ("name", "paused", "max_waiting", "fair", "settings"),
    "constraints": ("id", "match", "by", "concurrency", "rate", "shared"),
    "keys": ("id", "digest", "roles", "queues"),
}


class Cluster(Engine):
    """The operations of a cluster, whose name is such as `{shop:*/16}`. Raises what `jqmaster.errors` has, and
    ValueError for a name that cannot be. What belongs to no partition in particular is that of the first.
    """

    def __init__(self, url: str, namespace: str, **how: Any) -> None:
        """`how`: of `Engine`."""
        self.partitions = Partitions(url, namespace, **how)
        self.engines = self.partitions.engines
        first = self.engines[0]
        super().__init__(first.redis, first.namespace, **how)

    @property
    def observe(self) -> Observe | None:
        """Of the calls to each partition."""
        return self.engines[0].observe

    @observe.setter
    def observe(self, observe: Observe | None) -> None:
        for engine in self.engines:
            engine.observe = observe

    async def raw(self, operation: str, *arguments: Argument) -> Any:
        return await WAYS[operations()[operation].over](self.partitions, Call(operation, arguments))

    async def differences(self) -> list[str]:
        """See `Engine.differences`."""
        first, *others = await all_of(map(_set_in, self.engines))
        return [
            f"{what} is not in partition {number} what it is in partition 0"
            for number, other in enumerate(others, 1)
            for what in sorted(first.keys() | other.keys())
            if first.get(what) != other.get(what)
        ]


async def _set_in(engine: Engine) -> dict[str, Any]:
    """What is set in a partition, by what it is."""
    found: dict[str, Any] = {f"setting {name}": value for name, value in (await engine.config()).items()}
    for listing, (name, *fields) in _SET.items():
        cursor: str | None = None
        while cursor != "":
            more = {"digests": True} if listing == "keys" else {}
            page = await engine.call(listing, cursor=cursor, count=1000, **more)
            cursor = page.cursor
            for document in page.documents:  # a queue may be known in some for which nothing is set
                if is_set := {field: document[field] for field in fields if document.get(field)}:
                    found[f"{listing.removesuffix('s')} {document[name]}"] = is_set
    return found
