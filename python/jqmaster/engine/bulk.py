"""Bulks: something is done to all jobs that fit a description, however many, by masters, in steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from jqmaster.engine import replies
from jqmaster.engine.calls import Calling, Spec
from jqmaster.engine.replies import Document
from jqmaster.errors import Conflict, JQError, NotFound, Unavailable

_AT_ONCE = 1000  # at most: each call is bounded by what it costs
_MOST_PROBLEM = 300


class BulkCalls(Calling):
    """Beginning and following them, and carrying them on."""

    async def begin_bulk(
        self,
        what: Literal["discard", "cancel", "retry"],
        where: Spec,
        *,
        total: int | None = None,
        force: bool | None = None,
        dependents: Literal["leave", "cancel"] | None = None,
        queue: str | None = None,
    ) -> Document:
        """Begin one; its document. ``total``: how many jobs there may be, to show how far it is. A master carries it
        on. Raises Invalid, Conflict (one is under way with jobs of that queue), Full (twenty are)."""
        more: dict[str, Any] = {"total": total, "force": force, "dependents": dependents, "queue": queue}
        return await self._document("bulk", what=what, where=where, **more, actor=self.actor)

    async def stop_bulk(self, bulk_id: str) -> Document:
        """End one where it is; its document. Raises NotFound."""
        return await self._document("bulk", id=bulk_id, stop=True, actor=self.actor)

    async def carry_on(
        self, bulk: Document, holder: str, said: Callable[[Document], object] | None = None
    ) -> Document | None:
        """Straight on Redis: go on with a bulk until it is over; its document then. None when another has it.

        What is done is told step by step (``said``). Raises Unavailable; another goes on then."""
        try:
            now = await self._document("bulk", id=bulk["id"], holder=holder)
            while not now.get("ended_ms"):
                step = await self._step(now)
                now = await self._document("bulk", id=now["id"], holder=holder, **step)
                if said is not None:
                    said(now)
        except (Conflict, NotFound):
            return None
        return now

    async def _step(self, bulk: Document) -> dict[str, Any]:
        """What a step says of itself."""
        options: dict[str, Any] = {
            name: bulk[name] for name in ("force", "dependents", "queue", "actor") if name in bulk
        }
        where, cursor = bulk["where"], bulk["cursor"] or None
        try:
            reply = await self._ask(bulk["what"], where=where, cursor=cursor, count=_AT_ONCE, **options)
            cursor, changed = replies.step(reply)
        except Unavailable:
            raise
        except JQError as error:
            return {"ended": True, "problem": f"{error.code}: {error}"[:_MOST_PROBLEM]}
        return {"cursor": cursor, "changed": changed, "ended": not cursor}
