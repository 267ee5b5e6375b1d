"""What `JQ` has for marks: moments that somebody put a name to, such as a deploy."""

from __future__ import annotations

from datetime import datetime

from jqmaster.app.link import Link, plain
from jqmaster.engine import options
from jqmaster.engine.options import Seconds
from jqmaster.engine.replies import Document
from jqmaster.engine.trends import Split


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

    async def atrends(
        self, split: Split = "outcome", *, since: datetime | float, until: datetime | float | None = None, top: int = 8
    ) -> Document:
        """What came to an end over time, by `outcome`, `queue` or `name`: `by, step_ms, begins, series, rest, …`, see
        `Engine.trends`."""
        to_ms = None if until is None else round(options.unix(until) * 1000)
        engine = (await self.link.open()).engine
        return await engine.trends(split, from_ms=round(options.unix(since) * 1000), to_ms=to_ms, top=top)

    async def achanges(self, since: datetime | float, *, span: Seconds = 3600, top: int = 100) -> Document:
        """What is different since a moment, such as a deploy: `rows` of `queue, name, change, of, before, after`, the
        largest change first, see `Engine.changes`. `span`: how long before and after."""
        engine = (await self.link.open()).engine
        return await engine.changes(round(options.unix(since) * 1000), span_s=options.seconds(span), top=top)

    mark, marks = plain(amark), plain(amarks)
    trends, changes = plain(atrends), plain(achanges)
