"""Operations of which the table says all.

Made from manifest/operations.py by `make generate`.
"""

from __future__ import annotations

from typing import Unpack

from jqmaster.engine import replies
from jqmaster.engine.calls import Calling
from jqmaster.engine.options import Steps
from jqmaster.engine.replies import Document, Page


class MadeCalls(Calling):
    """A method for each."""

    async def explain(self, job_id: str) -> Document:
        """Why a job waits. What holds it, what is ahead of it, when it may start. Raises NotFound."""
        return replies.plain_document(await self.call("explain", job_id))

    async def history(self, job_id: str) -> Document:
        """What happened to a job. `{id, events: [{event, time_ms, …}, …], forgotten}`, oldest first. Raises
        NotFound."""
        return replies.plain_document(await self.call("history", job_id))

    async def bulks(self) -> list[Document]:
        """What is done to many jobs. Those under way, and those that ended within an hour, the latest first."""
        return [replies.plain_document(one) for one in await self._ask("bulks")]

    async def forget(self, queue: str) -> None:
        """Take away a queue without jobs. With all its settings. Raises NotFound, Conflict."""
        await self._ask("forget", queue=queue, actor=self.actor)

    async def unconstrain(self, constraint_id: str) -> None:
        """Delete a constraint. What it held is free at once. Raises NotFound."""
        await self._ask("unconstrain", id=constraint_id, actor=self.actor)

    async def usage(self, constraint_id: str, *, prefix: str | None = None, **steps: Unpack[Steps]) -> Page:
        """The keys of a constraint that are in use. `by`, `running`, `held`, `opens_ms`, … of each; with `prefix` of
        those whose value begins so. Raises NotFound."""
        return await self._page("usage", id=constraint_id, prefix=prefix, **steps)

    async def unschedule(self, schedule_id: str) -> None:
        """Delete a recurring job. Jobs that it has made stay. Raises NotFound."""
        await self._ask("unschedule", id=schedule_id, actor=self.actor)

    async def unsubscribe(self, webhook_id: str) -> None:
        """Delete a webhook. It is told nothing more. Raises NotFound."""
        await self._ask("unsubscribe", id=webhook_id, actor=self.actor)

    async def mark(self, text: str, *, time_ms: int | None = None) -> Document:
        """Put a name to a moment, such as a deploy. `{time_ms, text, actor}`; the same text within a minute is the
        same mark, whose document comes back."""
        return await self._document("mark", text=text, time_ms=time_ms, actor=self.actor)

    async def marks(self, *, from_ms: int | None = None, to_ms: int | None = None, **steps: Unpack[Steps]) -> Page:
        """Marks, newest first. `time_ms`, `text` and `actor` of each, from `from_ms` on, before `to_ms`."""
        return await self._page("marks", from_ms=from_ms, to_ms=to_ms, **steps)

    async def trail(self, **steps: Unpack[Steps]) -> Page:
        """What operators changed, newest first. `time_ms`, `actor`, `what`, `on?`, `change?`, `count?` of each."""
        return await self._page("trail", **steps)

    async def revoke(self, key_id: str) -> None:
        """Take a key away. Masters refuse it from then on. Raises NotFound."""
        await self._ask("revoke", id=key_id, actor=self.actor)
