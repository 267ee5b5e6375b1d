"""Marks: moments that somebody put a name to, such as a deploy."""

from __future__ import annotations

from jqmaster.engine.calls import Calling
from jqmaster.engine.replies import Document


class MarkCalls(Calling):
    """What happened around a namespace, as people and programs tell it."""

    async def mark(self, text: str, *, time_ms: int | None = None) -> Document:
        """Put a name to a moment, default now: ``{time_ms, text, actor}``.

        The same text again within a minute is the same mark, whose document comes back. Raises Invalid.
        """
        return await self._document("mark", text=text, time_ms=time_ms, actor=self.actor)
