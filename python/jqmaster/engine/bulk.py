"""Bulks: something is done to all jobs that fit a description, however many, by masters, in steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jqmaster.engine.operations import CallsByName
from jqmaster.engine.replies import Document
from jqmaster.errors import Conflict, JQError, NotFound, Unavailable

_AT_ONCE = 1000  # at most: each call is bounded by what it costs
_MOST_PROBLEM = 300


class BulkCalls(CallsByName):
    """Carrying them on."""

    async def carry_on(
        self, bulk: Document, holder: str, said: Callable[[Document], object] | None = None
    ) -> Document | None:
        """Straight on Redis: go on with a bulk until it is over; its document then. None when another has it.

        What is done is told step by step (``said``). Raises Unavailable; another goes on then."""
        try:
            now = await self.bulk(id=bulk["id"], holder=holder)
            while not now.get("ended_ms"):
                step = await self._step(now)
                now = await self.bulk(id=now["id"], holder=holder, **step)
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
            cursor, changed = await self.call(bulk["what"], where=where, cursor=cursor, count=_AT_ONCE, **options)
        except Unavailable:
            raise
        except JQError as error:
            return {"ended": True, "problem": f"{error.code}: {error}"[:_MOST_PROBLEM]}
        return {"cursor": cursor, "changed": changed, "ended": not cursor}
