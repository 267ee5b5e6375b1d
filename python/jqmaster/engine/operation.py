"""Operations for those who run a system: queues, limits, schedules, statistics, the namespace itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import ABSENT, Calling, Spec, given, pack
from jqmaster.engine.replies import Audited, Document, Page
from jqmaster.wire import zones


class OperationCalls(Calling):
    """For those who run a system."""

    async def tick(self, limit: int | None = None) -> tuple[int, int]:
        """Do what is due by the clock: (ms until more is due: 0 at once, -1 nothing planned; steps done)."""
        next_ms, moved = await self.call("tick", pack(given(limit=limit)))
        return next_ms, moved

    # --- queues ---

    async def queue(
        self,
        name: str,
        *,
        paused: bool | None = None,
        max_waiting: int | None = None,
        fair: Sequence[Spec] | None = None,
        set: Spec | None = None,
        unset: Sequence[str] | None = None,
    ) -> Document:
        """Change a queue; its document afterwards. ``set``, ``unset``: settings of its own (section 9)."""
        spec = given(
            name=name,
            paused=paused,
            max_waiting=max_waiting,
            fair=None if fair is None else list(fair),
            set=set,
            unset=None if unset is None else list(unset),
            actor=self.actor,
        )
        return replies.plain_document(await self.call("queue", pack(spec)))

    async def queues(
        self, names: Sequence[str] | None = None, *, cursor: str | None = None, count: int | None = None
    ) -> Page:
        """The queues named, or a page of all."""
        spec = given(names=None if names is None else list(names), cursor=cursor, count=count)
        return replies.page(await self.call("queues", pack(spec)))

    async def forget(self, queue: str) -> None:
        """Take away a queue without jobs, with all its settings. Raises NotFound, Conflict (it has jobs)."""
        await self.call("forget", pack(given(queue=queue, actor=self.actor)))

    # --- limits ---

    async def constrain(
        self,
        constraint_id: str,
        match: Spec | bytes,
        *,
        by: str | Sequence[str] | None = None,
        concurrency: int | None = None,
        rate: Spec | None = None,
        cost: float | str | None = None,
        order: str | None = None,
    ) -> Document:
        """Create a constraint, or replace it whole; its document. ``match`` is a map, or packed already.

        Raises Invalid, and Full when there are 1000.
        """
        spec = given(
            id=constraint_id,
            by=by if by is None or isinstance(by, str) else list(by),
            concurrency=concurrency,
            rate=rate,
            cost=cost,
            order=order,
            actor=self.actor,
        )
        matcher = match if isinstance(match, bytes) else pack(match, "match")
        return replies.plain_document(await self.call("constrain", pack(spec), matcher))

    async def unconstrain(self, constraint_id: str) -> None:
        """Delete a constraint; what it held is free at once. Raises NotFound."""
        await self.call("unconstrain", pack(given(id=constraint_id, actor=self.actor)))

    async def constraints(
        self, ids: Sequence[str] | None = None, *, cursor: str | None = None, count: int | None = None
    ) -> Page:
        """The constraints named, or a page of all."""
        spec = given(ids=None if ids is None else list(ids), cursor=cursor, count=count)
        return replies.page(await self.call("constraints", pack(spec)))

    async def usage(self, constraint_id: str, *, cursor: str | None = None, count: int | None = None) -> Page:
        """A page of the keys of a constraint that are in use. Raises NotFound."""
        return replies.page(await self.call("usage", pack(given(id=constraint_id, cursor=cursor, count=count))))

    async def hold(self, constraint_id: str, seconds: float, *, by: Any = ABSENT) -> int:
        """Start nothing under a constraint for so long (0: open it); the moment it opens, in ms since 1970.

        ``by``: the value, or list of values, of a constraint that has ``by``; None is a value, too. Raises
        NotFound, Invalid.
        """
        spec = given(id=constraint_id, seconds=seconds, actor=self.actor) | ({} if by is ABSENT else {"by": by})
        return int(await self.call("hold", pack(spec)))

    # --- schedules ---

    async def schedule(self, schedule_id: str, job: Spec, argument: bytes = b"\xc0", **options: Any) -> Document:
        """Create or replace a recurring job; its document. ``options``: those of section 16."""
        spec = {"id": schedule_id, "job": dict(job), **zones.with_rule(given(actor=self.actor, **options))}
        return replies.document(await self.call("schedule", pack(spec), argument))

    async def unschedule(self, schedule_id: str) -> None:
        """Delete a schedule; jobs it has made stay. Raises NotFound."""
        await self.call("unschedule", pack(given(id=schedule_id, actor=self.actor)))

    async def schedules(
        self,
        ids: Sequence[str] | None = None,
        *,
        cursor: str | None = None,
        count: int | None = None,
        next: int | None = None,
    ) -> Page:
        """The schedules named, or a page of all; ``next``: with so many moments to come of each."""
        spec = given(ids=None if ids is None else list(ids), cursor=cursor, count=count, next=next)
        reply = await self.call("schedules", pack(spec))
        return Page(replies.text(reply[0]), [replies.document(packed) for packed in reply[1:]])

    # --- statistics ---

    async def stats(
        self,
        by: str,
        *,
        queue: str | None = None,
        name: str | None = None,
        from_ms: int | None = None,
        to_ms: int | None = None,
    ) -> list[Document]:
        """One document for each ``minute``, ``hour`` or ``day`` in which something happened (section 17)."""
        spec = given(by=by, queue=queue, name=name, from_ms=from_ms, to_ms=to_ms)
        return [replies.plain_document(packed) for packed in await self.call("stats", pack(spec))]

    async def series(self, by: str, **period: Any) -> Page:
        """A page of sums over the whole time, one for each pair of queue and name.

        ``period``: the options of ``stats``, and ``cursor`` and ``count``.
        """
        return replies.page(await self.call("stats", pack({"by": by, "series": True, **given(**period)})))

    # --- the namespace ---

    async def config(self, set: Spec | None = None) -> Document:
        """All settings, after changing those in ``set``."""
        return replies.plain_document(
            await self.call("config", pack(given(set=set, actor=self.actor if set else None)))
        )

    async def describe(self) -> list[Document]:
        """What settings there are: name, value, default, type, unit, least, most, queues, meaning of each."""
        described: list[Document] = replies.plain_value(await self.call("config", pack({"describe": True})))
        return described

    async def setup(self) -> int:
        """Create the namespace if it is not there; its schema version."""
        return int(await self.call("setup"))

    async def migrate(self) -> int:
        """Bring a namespace of an older schema up to this one; its schema version."""
        return int(await self.call("migrate"))

    async def audit(self, cursor: str = "0", count: int | None = None) -> Audited:
        """Recount one step of the indexes against the job records."""
        reply = await self.call("audit", pack(given(cursor=cursor, count=count)))
        return Audited(replies.text(reply[0]), replies.texts(reply[1:]))

    async def audit_all(self) -> list[str]:
        """Every problem ``audit`` finds, from start to end."""
        found: list[str] = []
        step = await self.audit()
        while True:
            found += step.problems
            if step.cursor == "0":
                return found
            step = await self.audit(step.cursor)

    async def export(self, cursor: str = "", count: int | None = None) -> tuple[str, list[bytes]]:
        """One step of copying: (cursor, empty at the end; records, which ``import_records`` takes)."""
        reply = await self.call("export", pack(given(cursor=cursor or None, count=count)))
        return replies.text(reply[0]), list(reply[1:])

    async def import_records(self, records: Sequence[bytes]) -> int:
        """Write records into a namespace that is not set up, in order; how many keys. Raises Conflict."""
        return int(await self.call("import", *records))
