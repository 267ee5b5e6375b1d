"""What the library asks beside the operations, of the partitions of a system."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from jqmaster.app.transport import News, Prepared, RedisTransport
from jqmaster.engine import durable as durables
from jqmaster.engine.replies import Enqueued, Event
from jqmaster.engine.scripts import Form
from jqmaster.errors import Invalid, Unavailable
from jqmaster.system.engine import SystemEngine


class SystemTransport:
    """By the scripts; each job's partition is asked as a namespace alone would be."""

    def __init__(self, url: str, root: str, form: Form = "auto", *, actor: str | None = None) -> None:
        self.engine = SystemEngine(url, root, form=form, actor=actor)
        self._url = url
        self._form = form
        self._of: dict[str, RedisTransport] = {}

    async def enqueue(self, _calls: Sequence[Any], jobs: Sequence[Prepared], request: str | None) -> list[Enqueued]:
        asked = durables.taken([spec for spec, _ in jobs])
        return await self.engine.enqueue(jobs, request=request, durable=asked)

    async def ended(self, job_id: str, timeout_s: float) -> str:
        return await (await self._partition(job_id)).ended(job_id, timeout_s)

    async def result(self, job_id: str) -> bytes | None:
        return await (await self._partition(job_id)).result(job_id)

    def events(self, job_id: str | None, after: str | None = None) -> AsyncIterator[Event]:
        raise Unavailable("streams of events need a master")

    @asynccontextmanager
    async def news(self, job_id: str) -> AsyncIterator[News]:
        async with (await self._partition(job_id)).news(job_id) as news:
            yield news

    def export(self) -> AsyncIterator[bytes]:
        raise Invalid("a system is exported partition by partition: ask each by its namespace")

    async def import_records(self, records: Iterable[bytes], namespace: str) -> int:
        raise Invalid("a system is imported partition by partition: ask each by its namespace")

    async def close(self) -> None:
        for one in self._of.values():
            await one.close()
        await self.engine.close()

    async def _partition(self, job_id: str) -> RedisTransport:
        namespace = (await self.engine.of(job_id)).namespace
        if namespace not in self._of:
            self._of[namespace] = RedisTransport(self._url, namespace, self._form)
        return self._of[namespace]
