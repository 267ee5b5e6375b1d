"""Marks: moments that somebody put a name to, such as a deploy."""

from __future__ import annotations

from typing import Unpack

from jqmaster.engine.calls import Calling
from jqmaster.engine.options import Steps
from jqmaster.engine.replies import Document, Page


class MarkCalls(Calling):
    """What happened around a namespace, as people and programs tell it."""

    async def mark(self, text: str, *, time_ms: int | None = None) -> Document:
        """Put a name to a moment, default now: ``{time_ms, text, actor}``.

        The same text again within a minute is the same mark, whose document comes back. Raises Invalid.
        """
        return await self._document("mark", text=text, time_ms=time_ms, actor=self.actor)

    async def marks(self, *, from_ms: int | None = None, to_ms: int | None = None, **steps: Unpack[Steps]) -> Page:
        """A page of marks, newest first: ``time_ms``, ``text`` and ``actor`` of each, from ``from_ms`` on, before
        ``to_ms``."""
        return await self._page("marks", from_ms=from_ms, to_ms=to_ms, **steps)
