"""What `JQ` has for those who look after jobs: looking, cancelling, limits, queues, schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from . import options
from .calls import given
from .handle import document, unpacked
from .link import Link
from .replies import Document
from .task import Call, When
from .transport import Transport

BATCH = 1000


class Operations:
    """Every method has an async twin with an `a` before its name. All raise what `jqmaster.errors` has."""

    link: Link

    def get(self, job_id: str) -> Document:
        """All there is to know about a job, its values unpacked. Raises NotFound."""
        return self.link.run(lambda it: document(it, self.link.serializer, job_id))

    async def aget(self, job_id: str) -> Document:
        """As `get`."""
        return await self.link.arun(lambda it: document(it, self.link.serializer, job_id))

    def get_many(self, ids: Sequence[str]) -> list[Document | None]:
        """Per job what `get` gives, or None."""
        return self.link.run(lambda it: self._documents(it, ids))

    async def aget_many(self, ids: Sequence[str]) -> list[Document | None]:
        """As `get_many`."""
        return await self.link.arun(lambda it: self._documents(it, ids))

    def cancel(self, ids: Sequence[str], *, force: bool = False) -> list[str]:
        """Cancel jobs; per job the state it was in, `NOTFOUND`, or `CONFLICT` (it runs, the settings protect
        such, and `force` was not given)."""
        return self.link.run(lambda it: _cancel(it, ids, force))

    async def acancel(self, ids: Sequence[str], *, force: bool = False) -> list[str]:
        """As `cancel`."""
        return await self.link.arun(lambda it: _cancel(it, ids, force))

    def constrain(self, constraint_id: str, match: Mapping[str, Any], **limits: Any) -> Document:
        """Limit the jobs that `match`, from now on, also those that are there; replaces a constraint of this
        id whole. `limits`: `by`, `concurrency`, `rate`, `cost`, `order` (docs/protocol.md, section 7)."""
        return self.link.run(lambda it: it.constrain(constraint_id, match, given(**limits)))

    async def aconstrain(self, constraint_id: str, match: Mapping[str, Any], **limits: Any) -> Document:
        """As `constrain`."""
        return await self.link.arun(lambda it: it.constrain(constraint_id, match, given(**limits)))

    def unconstrain(self, constraint_id: str) -> None:
        """Delete a constraint; what it held is free at once. Raises NotFound."""
        self.link.run(lambda it: it.unconstrain(constraint_id))

    async def aunconstrain(self, constraint_id: str) -> None:
        """As `unconstrain`."""
        await self.link.arun(lambda it: it.unconstrain(constraint_id))

    def queue(self, name: str, **changes: Any) -> Document:
        """Change a queue (`paused`, `max_waiting`, `fair`, `set`, `unset`); its document afterwards, with the
        number of jobs in each state."""
        return self.link.run(lambda it: it.queue(name, changes))

    async def aqueue(self, name: str, **changes: Any) -> Document:
        """As `queue`."""
        return await self.link.arun(lambda it: it.queue(name, changes))

    def repeat(self, schedule_id: str, call: Call[Any], **when: Unpack[When]) -> Document:
        """Make a call again and again: `jq.repeat("acme-report", report.job("acme"), cron="0 8 * * mon")`.
        Creates or replaces the schedule of this id; its document, with `next_ms`. Raises Invalid."""
        spec, fields = (call.spec(), call.argument), options.when_of(when)
        return self.link.run(lambda it: it.schedule(schedule_id, spec, fields))

    async def arepeat(self, schedule_id: str, call: Call[Any], **when: Unpack[When]) -> Document:
        """As `repeat`."""
        spec, fields = (call.spec(), call.argument), options.when_of(when)
        return await self.link.arun(lambda it: it.schedule(schedule_id, spec, fields))

    def unschedule(self, schedule_id: str) -> None:
        """Delete a schedule; jobs that it has made stay. Raises NotFound."""
        self.link.run(lambda it: it.unschedule(schedule_id))

    async def aunschedule(self, schedule_id: str) -> None:
        """As `unschedule`."""
        await self.link.arun(lambda it: it.unschedule(schedule_id))

    async def _documents(self, transport: Transport, ids: Sequence[str]) -> list[Document | None]:
        found = await _batched(transport.documents, ids)
        return [None if one is None else unpacked(one, self.link.serializer) for one in found]


async def _cancel(transport: Transport, ids: Sequence[str], force: bool) -> list[str]:
    return await _batched(lambda some: transport.cancel(some, force), ids)


async def _batched(call: Any, ids: Sequence[str]) -> list[Any]:
    found: list[Any] = []
    for start in range(0, len(ids), BATCH):
        found += await call(ids[start : start + BATCH])
    return found
