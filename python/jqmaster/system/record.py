"""The record of a system: its partitions, and which of them has which bucket. docs/partitions.md describes it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgpack
from redis.crc import key_slot

from jqmaster.engine.scripts import check_namespace
from jqmaster.errors import Invalid, Version

FORMAT = 1
LEAST_PARTITIONS, MOST_PARTITIONS = 2, 256  # one alone is a namespace as any other, without a record
BUCKETS = 1024
DIGITS = 14
STATES = ("joining", "active", "draining", "closed", "lost")
OVER = ("closed", "lost")


def bucket_of(value: bytes | str) -> int:
    """The bucket of a value, 0 to 1023: the last ten bits of the first two bytes of its SHA-1."""
    packed = value.encode(errors="surrogatepass") if isinstance(value, str) else value
    return int.from_bytes(hashlib.sha1(packed, usedforsecurity=False).digest()[:2], "big") % BUCKETS


def partition_of(job_id: bytes | str | int) -> int:
    """The number of the partition that gave an id: what stands behind its 14 digits, 0 where nothing does."""
    tail = (job_id.decode("utf-8", "replace") if isinstance(job_id, bytes) else str(job_id))[DIGITS:]
    return int(tail, 16) if re.fullmatch("[0-9a-f]{2}", tail) else 0


def check_count(count: int) -> None:
    """Raise Invalid for a number of partitions that no system has."""
    if not LEAST_PARTITIONS <= count <= MOST_PARTITIONS:
        raise Invalid(f"expected {LEAST_PARTITIONS} to {MOST_PARTITIONS}, got {count}", "partitions")


@dataclass(frozen=True)
class Partition:
    """One namespace of a system."""

    namespace: str
    state: str = "active"

    @property
    def slot(self) -> int:
        """Its hash slot in a cluster."""
        return int(key_slot(self.namespace.encode()))


@dataclass(frozen=True)
class System:
    """The record. ``buckets`` has the number of a partition for each bucket, ``routes`` for some queues the path to
    the value whose bucket their jobs have. ``former`` has for buckets that moved the partition that may still have keys
    and request tokens of theirs; ``moved_ms``: when the last of them did. ``moving``: buckets that are about to, for
    which queues with routes take nothing now. Raises Invalid when it cannot be."""

    generation: int
    partitions: tuple[Partition, ...]
    buckets: tuple[int, ...]
    routes: Mapping[str, str] = field(default_factory=dict, hash=False)
    former: Mapping[int, int] = field(default_factory=dict, hash=False)
    moving: frozenset[int] = frozenset()
    moved_ms: int = 0

    def __post_init__(self) -> None:
        count = len(self.partitions)
        check_count(count)
        slots: dict[int, str] = {}
        for number, one in enumerate(self.partitions):
            _check_namespace(one.namespace)
            if one.state not in STATES:
                raise Invalid(f"expected one of {', '.join(STATES)}, got {one.state!r}", f"partitions[{number}].state")
            if one.slot in slots:
                where = f"partitions[{number}].namespace"
                raise Invalid(f"{one.namespace} is in the slot of {slots[one.slot]}; it needs another salt", where)
            slots[one.slot] = one.namespace
        if len(self.buckets) != BUCKETS or not all(0 <= one < count for one in self.buckets):
            raise Invalid(f"expected {BUCKETS} numbers of partitions", "buckets")
        if not all(0 <= bucket < BUCKETS and 0 <= one < count for bucket, one in self.former.items()):
            raise Invalid(f"expected some of {BUCKETS} buckets, each with the number of a partition", "former")

    @property
    def root(self) -> str:
        """The namespace of partition 0, after which the system is called."""
        return self.partitions[0].namespace

    def home(self, value: bytes | str) -> int:
        """The number of the partition that has a value's bucket."""
        return self.buckets[bucket_of(value)]

    def of_state(self, *states: str) -> list[int]:
        """The numbers of the partitions in one of these states."""
        return [number for number, one in enumerate(self.partitions) if one.state in states]

    @cached_property
    def takers(self) -> list[int]:
        """The numbers of the partitions that take jobs which belong to none."""
        return self.of_state("active")

    @property
    def joining(self) -> list[int]:
        """The numbers of the partitions that are being added."""
        return self.of_state("joining")

    @property
    def live(self) -> list[int]:
        """The numbers of all partitions but those that are no more."""
        return [number for number, one in enumerate(self.partitions) if one.state not in OVER]

    @cached_property
    def before(self) -> System:
        """By which calls were routed before buckets moved, and before partitions drained."""
        active = self._active("draining")
        return replace(self, partitions=active, buckets=self._having(self.former), former={}, moving=frozenset())

    def joined_by(self, namespaces: Sequence[str]) -> System:
        """The next generation, with more partitions, which join."""
        return self._next(partitions=self.partitions + tuple(Partition(one, "joining") for one in namespaces))

    def activated(self) -> System:
        """The next generation: those that joined are active."""
        return self._next(partitions=self._active("joining"))

    def in_state(self, number: int, state: str) -> System:
        """The next generation, with a partition in another state."""
        one = replace(self.partitions[number], state=state)
        return self._next(partitions=(*self.partitions[:number], one, *self.partitions[number + 1 :]))

    def routed(self, queue: str, path: str | None) -> System:
        """The next generation, with another route of a queue, or none."""
        others = {name: one for name, one in self.routes.items() if name != queue}
        return self._next(routes=others | ({queue: path} if path else {}))

    def about_to_move(self, buckets: Iterable[int]) -> System:
        """The next generation: queues with routes take nothing for these."""
        return self._next(moving=frozenset(buckets))

    def moved(self, buckets: Mapping[int, int], now_ms: int) -> System:
        """The next generation: buckets, by their partitions from now on. None is about to move any more."""
        former = {bucket: self.buckets[bucket] for bucket, number in buckets.items() if self.buckets[bucket] != number}
        return self._next(
            buckets=self._having(buckets),
            former={**self.former, **former},
            moving=frozenset(),
            moved_ms=now_ms if former else self.moved_ms,
        )

    def settled(self, number: int) -> System:
        """The next generation: a partition has nothing any more of the buckets that it had."""
        return self._next(former={bucket: one for bucket, one in self.former.items() if one != number})

    def forgotten(self, number: int, buckets: Mapping[int, int]) -> System:
        """The next generation without a partition that is lost, whose buckets go to others: nobody has what it had."""
        former = {bucket: one for bucket, one in self.former.items() if one != number and bucket not in buckets}
        return replace(self.in_state(number, "lost"), buckets=self._having(buckets), former=former)

    def _next(self, **changes: Any) -> System:
        return replace(self, generation=self.generation + 1, **changes)

    def _active(self, state: str) -> tuple[Partition, ...]:
        """The partitions, those of a state active."""
        return tuple(replace(one, state="active") if one.state == state else one for one in self.partitions)

    def _having(self, buckets: Mapping[int, int]) -> tuple[int, ...]:
        """The partition of each bucket, with some that have another."""
        return tuple(buckets.get(bucket, number) for bucket, number in enumerate(self.buckets))

    def packed(self) -> bytes:
        """As it is kept."""
        document = {
            "format": FORMAT,
            "generation": self.generation,
            "partitions": [[one.namespace, one.state] for one in self.partitions],
            "buckets": self.buckets,
            "routes": self.routes,
            **({"former": self.former} if self.former else {}),
            **({"moving": sorted(self.moving)} if self.moving else {}),
            **({"moved_ms": self.moved_ms} if self.moved_ms else {}),
        }
        packed: bytes = msgpack.packb(document)
        return packed


def _check_namespace(namespace: str) -> None:
    try:
        check_namespace(namespace)
    except ValueError as problem:
        raise Invalid(str(problem), "namespace") from None


def new(namespaces: list[str]) -> System:
    """The first generation: all are active, and each has as many buckets as the next, or one more. Raises Invalid."""
    return System(1, tuple(map(Partition, namespaces)), tuple(one % (len(namespaces) or 1) for one in range(BUCKETS)))


def unpack(data: bytes) -> System:
    """A record as it is kept. Raises Version for one that a later version wrote, or that is none."""
    try:
        document: Any = msgpack.unpackb(data, strict_map_key=False)
        found = document["format"]
        if found == FORMAT:
            partitions = tuple(Partition(*one) for one in document["partitions"])
            routes, former = dict(document.get("routes", {})), dict(document.get("former", {}))
            more = frozenset(document.get("moving", ())), document.get("moved_ms", 0)
            return System(document["generation"], partitions, tuple(document["buckets"]), routes, former, *more)
    except (ValueError, TypeError, KeyError, Invalid, msgpack.UnpackException) as problem:
        raise Version(f"this is no record of a system: {problem}") from problem
    raise Version(f"the system's record has format {found}, this version knows {FORMAT}: use a later one")
