"""What asks beside the operations, made of that of each partition."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from jqmaster.cluster.names import number_of
from jqmaster.cluster.routes import Routes, split
from jqmaster.connection.subscriptions import Messages
from jqmaster.connection.together import MAX_JOBS, Coalescer
from jqmaster.errors import Invalid

AT_ONCE_S = 0.005


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

    def of_job(self, job_id: str) -> AbstractAsyncContextManager[Messages]:
        messages: AbstractAsyncContextManager[Messages] = self._part(job_id).of_job(job_id)
        return messages

    async def wait(self, job_id: bytes, timeout_s: float) -> str | None:
        state: str | None = await self._part(job_id).wait(job_id, timeout_s)
        return state

    async def last_id(self) -> str:
        raise Invalid("events of a whole cluster are not told, only those of a job", "namespace")

    async def resume(self, _event_id: str) -> tuple[str, bool]:
        return await self.last_id(), False

    def _part(self, job_id: str | bytes) -> Any:
        return self._parts[number_of(job_id, len(self._parts))]


class Enqueuing:
    """As `Coalescer`: those whose jobs go to the same partition share calls. Where that is up to chance it is the same
    for all that come at once, up to a call's most."""

    def __init__(self, routes: Routes, parts: Sequence[Coalescer]) -> None:
        self._routes, self._parts = routes, parts
        self._chance, self._left, self._until = 0, 0, 0.0

    async def enqueue(self, spec: bytes, argument: bytes) -> list[Any]:
        now = time.monotonic()
        if not self._left or now > self._until:
            self._chance, self._left, self._until = secrets.randbelow(len(self._parts)), MAX_JOBS, now + AT_ONCE_S
        self._left -= 1
        _, parts = await split([spec, argument], self._routes, len(self._parts), self._chance)
        return await self._parts[next(iter(parts))].enqueue(spec, argument)
