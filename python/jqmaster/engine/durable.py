"""Enqueueing that waits until replicas have the jobs, and disks (docs/protocol.md)."""

from __future__ import annotations

import contextlib
from asyncio import Semaphore
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from redis.asyncio import Redis

from jqmaster.connection.endpoint import PROBE_KEY
from jqmaster.connection.exchange import exchange_all
from jqmaster.connection.plainly import is_plain
from jqmaster.errors import Invalid

AT_ONCE = 16  # of a pool's connections, which others need as well
MOST_REPLICAS = 100
MOST_S = 10.0
LEAST_S = 0.001
_FIELDS = ("replicas", "timeout", "fsync")

_slots: WeakKeyDictionary[Any, Semaphore] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Durable:
    """So many replicas have it, within so many seconds; with ``fsync`` it is on their disks and the primary's."""

    replicas: int = 1
    timeout: float = 1.0
    fsync: bool = False

    def commands(self, namespace: str) -> list[tuple[str | int, ...]]:
        """What is sent behind the call, on its connection.

        The write of a key that is gone at once: replicas acknowledge writes, and a call that was made before
        has written nothing this time.
        """
        wait_ms = max(1, round(self.timeout * 1000))
        write = ("SET", f"{namespace}:{PROBE_KEY}", "", "PX", 1)
        if self.fsync:
            return [write, ("WAITAOF", 1, self.replicas, wait_ms)]
        return [write, ("WAIT", self.replicas, wait_ms)]

    async def call(self, redis: Redis, called: Sequence[Any], namespace: str) -> tuple[Any, str | None]:
        """The reply to a call, and what is lacking, if anything. Raises RedisError when the call fails."""
        # A plain call has a thread of its own, and with it enough.
        slots = contextlib.nullcontext() if is_plain() else _slots.setdefault(redis.connection_pool, Semaphore(AT_ONCE))
        async with slots:
            first, *rest = await exchange_all(redis, [called, *self.commands(namespace)], self.timeout)
        if isinstance(first, Exception):
            raise first
        return first, self.lacking(rest)

    def lacking(self, replies: Sequence[Any]) -> str | None:
        """What is not as it was asked for, by the replies to `commands`; None when all is."""
        for reply in replies:
            if isinstance(reply, Exception):
                return f"Redis did not wait for it: {reply}"
        local, acknowledged = replies[-1] if self.fsync else (1, replies[-1])
        found = []
        if acknowledged < self.replicas:
            found.append(f"{acknowledged} of {self.replicas} replicas")
        if self.fsync and not local:
            found.append("not the primary's disk")
        if not found:
            return None
        return f"after {self.timeout:g} s {' and '.join(found)} had {'it on disk' if self.fsync else 'it'}"


def parse(said: Any, path: str) -> Durable | None:
    """What was said: replicas, or ``{replicas, timeout, fsync}``. Raises Invalid, naming the field under ``path``."""
    if said is None:
        return None
    fields = {"replicas": said} if not isinstance(said, Mapping) else dict(said)
    unknown = [str(name) for name in fields if name not in _FIELDS]
    if unknown:
        raise Invalid(f"unknown field {unknown[0]!r}; there are: {', '.join(_FIELDS)}", path)
    fsync, seconds = fields.get("fsync", False), fields.get("timeout", 1.0)
    replicas = fields.get("replicas", 0 if fsync else 1)
    if not isinstance(fsync, bool):
        raise Invalid(f"expected true or false, got {fsync!r}", f"{path}.fsync")
    if type(replicas) is not int or not (0 if fsync else 1) <= replicas <= MOST_REPLICAS:
        least = "0" if fsync else "1"
        wrong = f"{path}.replicas" if isinstance(said, Mapping) else path
        raise Invalid(f"expected a whole number from {least} to {MOST_REPLICAS}, got {replicas!r}", wrong)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not LEAST_S <= seconds <= MOST_S:
        raise Invalid(f"expected seconds from {LEAST_S:g} to {MOST_S:g}, got {seconds!r}", f"{path}.timeout")
    return Durable(replicas, float(seconds), fsync)


def taken(specs: Sequence[dict[str, Any]]) -> Durable | None:
    """What the jobs of one call ask for, taken out of their specs: the most of each. Raises Invalid."""
    asked = [parse(spec.pop("durable"), f"jobs[{i}].durable") for i, spec in enumerate(specs) if "durable" in spec]
    found = [one for one in asked if one is not None]
    if not found:
        return None
    return Durable(
        max(one.replicas for one in found), max(one.timeout for one in found), any(one.fsync for one in found)
    )
