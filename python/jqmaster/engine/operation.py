"""Operations for those who run a system: queues, limits, schedules, statistics, the namespace itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from jqmaster.engine import replies, secret, zones
from jqmaster.engine.calls import ABSENT, Calling, Spec, given, pack
from jqmaster.engine.options import Bounds, Limits, Period, QueueChanges, Steps, Webhook
from jqmaster.engine.replies import Audited, Document, Page


class OperationCalls(Calling):
    """For those who run a system."""

    async def tick(self, limit: int | None = None) -> tuple[int, int]:
        """Do what is due by the clock: (ms until more is due: 0 at once, -1 nothing planned; steps done)."""
        next_ms, moved = await self._ask("tick", limit=limit)
        return next_ms, moved

    # --- queues ---

    async def queue(self, name: str, **changes: Unpack[QueueChanges]) -> Document:
        """Change a queue; its document afterwards. ``set``, ``unset``: settings of its own (section 9)."""
        return await self._document("queue", name=name, **changes, actor=self.actor)

    async def queues(
        self, names: Sequence[str] | None = None, *, minutes: int | None = None, held: int | None = None,
        **steps: Unpack[Steps],
    ) -> Page:  # fmt: skip
        """The queues named, or a page of all. ``minutes`` (1 to 180): with how they did in so many; ``held`` (1 to
        1000): with what holds the first so many jobs (section 6)."""
        return await self._page("queues", names=names, minutes=minutes, held=held, **steps)

    # --- limits ---

    async def constrain(self, constraint_id: str, match: Spec | bytes, **limits: Unpack[Limits]) -> Document:
        """Create a constraint, or replace it whole; its document. ``match`` is a map, or packed already.

        Raises Invalid, and Full when there are 1000.
        """
        spec = given(id=constraint_id, **limits, actor=self.actor)
        matcher = match if isinstance(match, bytes) else pack(match, "match")
        return replies.plain_document(await self.call("constrain", pack(spec), matcher))

    async def constraints(
        self, ids: Sequence[str] | None = None, *, busiest: int | None = None, **steps: Unpack[Steps]
    ) -> Page:
        """The constraints named, or a page of all. ``busiest``: with sums over the keys, and so many (0 to 100) of
        the fullest (section 7)."""
        return await self._page("constraints", ids=ids, busiest=busiest, **steps)

    async def hold(self, constraint_id: str, seconds: float, *, by: Any = ABSENT) -> int:
        """Start nothing under a constraint for so long (0: open it); the moment it opens, in ms since 1970.

        ``by``: the value, or list of values, of a constraint that has ``by``; None is a value, too. Raises
        NotFound, Invalid.
        """
        spec = given(id=constraint_id, seconds=seconds, actor=self.actor) | ({} if by is ABSENT else {"by": by})
        return int(await self.call("hold", pack(spec)))

    # --- webhooks ---

    async def subscribe(
        self, webhook_id: str, url: str | None = None, match: Spec | bytes = b"", **webhook: Unpack[Webhook]
    ) -> Document:
        """Create a webhook, or replace it; its document, with how many secrets it has. ``match`` is a map, or packed
        already. The one called ``notify`` has ``secrets`` alone.

        Raises Invalid, and Full when there are 20, or their matchers too long.
        """
        spec = given(id=webhook_id, url=url, **webhook, actor=self.actor)
        matcher = match if isinstance(match, bytes) else pack(match, "match")
        return replies.plain_document(await self.call("subscribe", pack(spec), matcher))

    async def webhooks(self, *, secrets: bool | None = None) -> list[Document]:
        """All webhooks; straight on Redis, with what they are signed with."""
        return [replies.plain_document(packed) for packed in await self._ask("webhooks", secrets=secrets)]

    # --- schedules ---

    async def schedule(self, schedule_id: str, job: Spec, argument: bytes = b"\xc0", **options: Any) -> Document:
        """Create or replace a recurring job; its document. ``options``: those of section 16."""
        spec = {"id": schedule_id, "job": dict(job), **zones.with_rule(given(actor=self.actor, **options))}
        return replies.document(await self.call("schedule", pack(spec), argument))

    async def run_schedule(self, schedule_id: str) -> tuple[str, bool]:
        """Make the job of a schedule at once: (its id, or who has its unique key; whether it is new). Raises NotFound,
        Full."""
        job_id, created = await self._ask("schedule", id=schedule_id, run=True, actor=self.actor)
        return replies.text(job_id), bool(created)

    async def schedules(
        self,
        ids: Sequence[str] | None = None,
        *,
        next: int | None = None,
        runs: int | None = None,
        **steps: Unpack[Steps],
    ) -> Page:
        """The schedules named, or a page of all; ``next``: with so many moments to come of each; ``runs``: with
        so many of its last jobs, latest first: ``{id, status?, started_ms?, ended_ms?}``, the id alone when the
        job is gone."""
        return replies.page_of_jobs(await self._ask("schedules", ids=ids, next=next, runs=runs, **steps))

    # --- statistics ---

    async def stats(self, by: str, **period: Unpack[Period]) -> list[Document]:
        """One document for each ``minute``, ``hour`` or ``day`` in which something happened (section 17).

        ``brief``: without histograms.
        """
        return [replies.plain_document(packed) for packed in await self._ask("stats", by=by, **period)]

    async def series(self, by: str, **period: Any) -> Page:
        """A page of sums over the whole time, one for each pair of queue and name.

        ``period``: the options of ``stats``, and ``cursor`` and ``count``.
        """
        return await self._page("stats", by=by, series=True, **period)

    # --- keys of the HTTP API ---

    async def grant(self, name: str, roles: Sequence[str], **bounds: Unpack[Bounds]) -> Document:
        """Create a key; its document, and in it the key itself as ``key``, which nobody can ask for again.

        ``roles``: some of ``viewer``, ``pusher``, ``worker``, ``operator``, ``admin``. Raises Invalid, and Full when
        there are 1000.
        """
        new = secret.new()
        told = {"id": new.id, "digest": new.digest, "name": name, "roles": roles, **bounds}
        return {**await self._document("grant", **told, actor=self.actor), "key": new.text}

    async def keys(self, *, digests: bool | None = None, **steps: Unpack[Steps]) -> Page:
        """A page of all keys; ``digests``: with the SHA-256 of each one's secret, which only Redis itself tells."""
        return await self._page("keys", digests=digests, **steps)

    async def touch(self, ids: Sequence[str]) -> int:
        """Note that keys were used; how many of them there are."""
        return int(await self._ask("touch", ids=ids))

    # --- the namespace ---

    async def config(self, set: Spec | None = None, unset: Sequence[str] | None = None) -> Document:
        """All settings, after changing those in ``set``; those in ``unset`` have their defaults again."""
        return await self._document("config", set=set, unset=unset, actor=self.actor if set or unset else None)

    async def describe(self) -> list[Document]:
        """What settings there are: name, value, default, type, unit, least, most, queues, meaning of each."""
        described: list[Document] = replies.plain_value(await self._ask("config", describe=True))
        return described

    async def setup(self) -> int:
        """Create the namespace if it is not there; its schema version."""
        return int(await self.call("setup"))

    async def audit(self, cursor: str = "0", count: int | None = None) -> Audited:
        """Recount one step of the indexes against the job records."""
        reply = await self._ask("audit", cursor=cursor, count=count)
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
        reply = await self._ask("export", cursor=cursor or None, count=count)
        return replies.text(reply[0]), list(reply[1:])

    async def import_records(self, records: Sequence[bytes]) -> int:
        """Write records into a namespace that is not set up, in order; how many keys. Raises Conflict."""
        return int(await self.call("import", *records))
