"""What `JQ` has for marks: moments that somebody put a name to, such as a deploy."""

from __future__ import annotations

from datetime import datetime

from jqmaster.app.link import Link, plain
from jqmaster.engine import options
from jqmaster.engine.replies import Document


class MarkMethods:
    """Every method has an async twin with an `a` before its name. All raise what `jqmaster.errors` has."""

    link: Link

    async def amark(self, text: str, at: datetime | float | None = None) -> Document:
        """Put a name to a moment, default now: `{time_ms, text, actor}`. The same text again within a minute is
        the same mark. `text`: 1 to 200 bytes. Raises Invalid."""
        time_ms = None if at is None else round(options.unix(at) * 1000)
        return await (await self.link.open()).engine.mark(text, time_ms=time_ms)

    async def amarks(self, since: datetime | float | None = None) -> list[Document]:
        """All marks that are kept, or those of a moment and later, newest first: `time_ms, text, actor`."""
        from_ms = None if since is None else round(options.unix(since) * 1000)
        return (await (await self.link.open()).engine.marks(from_ms=from_ms, count=1000)).documents

    mark, marks = plain(amark), plain(amarks)
