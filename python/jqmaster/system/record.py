"""The record of a system: its partitions, and which of them has which bucket. docs/partitions.md describes it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import msgpack
from redis.crc import key_slot

from jqmaster.engine.scripts import check_namespace
from jqmaster.errors import Invalid, Version

FORMAT = 1
LEAST_PARTITIONS, MOST_PARTITIONS = 2, 256  # one alone is a namespace as any other, without a record
BUCKETS = 1024
DIGITS = 14
STATES = ("active", "draining", "closed")


def bucket_of(value: bytes) -> int:
    """The bucket of a value, 0 to 1023: the last ten bits of the first two bytes of its SHA-1."""
    return int.from_bytes(hashlib.sha1(value, usedforsecurity=False).digest()[:2], "big") % BUCKETS


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
    """The record: ``buckets`` has the number of a partition for each bucket. Raises Invalid when it cannot be."""

    generation: int
    partitions: tuple[Partition, ...]
    buckets: tuple[int, ...]

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

    @property
    def root(self) -> str:
        """The namespace of partition 0, after which the system is called."""
        return self.partitions[0].namespace

    def home(self, value: bytes) -> int:
        """The number of the partition that has a value's bucket."""
        return self.buckets[bucket_of(value)]

    def packed(self) -> bytes:
        """As it is kept."""
        document = {
            "format": FORMAT,
            "generation": self.generation,
            "partitions": [[one.namespace, one.state] for one in self.partitions],
            "buckets": self.buckets,
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
        document: Any = msgpack.unpackb(data)
        found = document["format"]
        if found == FORMAT:
            partitions = tuple(Partition(*one) for one in document["partitions"])
            return System(document["generation"], partitions, tuple(document["buckets"]))
    except (ValueError, TypeError, KeyError, Invalid, msgpack.UnpackException) as problem:
        raise Version(f"this is no record of a system: {problem}") from problem
    raise Version(f"the system's record has format {found}, this version knows {FORMAT}: use a later one")
