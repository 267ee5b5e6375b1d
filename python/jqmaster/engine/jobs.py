"""Operations on jobs: enqueue, look, change, end, find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Calling, Spec, pack, packed_each
from jqmaster.engine.durable import Durable
from jqmaster.engine.options import Groups, Steps
from jqmaster.engine.replies import Document, Enqueued, Page
from jqmaster.errors import NotDurable


class JobCalls(Calling):
    """For those who enqueue, and for those who look after jobs."""

    async def enqueue(
        self, jobs: Sequence[tuple[Spec, bytes]], *, request: str | None = None, durable: Durable | None = None
    ) -> list[Enqueued]:
        """Enqueue all of ``jobs``, (spec, argument) each, or none. ``request`` makes repeating harmless.

        With ``durable`` it returns when replicas have them. Raises NotDurable when too few have in time.
        """
        token = [] if request is None else [pack({"request": request})]
        return replies.enqueued(await self.enqueue_packed([*token, *packed_each(jobs, "jobs")], durable))

    async def enqueue_packed(self, arguments: Sequence[Argument], durable: Durable | None) -> Any:
        """As ``enqueue``, of what the script takes; its reply."""
        if durable is None:
            return await self.call("enqueue", *arguments)
        reply, lacking = await self.call_durably("enqueue", arguments, durable)
        if lacking:
            raise NotDurable(f"enqueued, but {lacking}", replies.texts(reply[::2]))
        return reply

    async def get(self, *ids: str) -> list[Document | None]:
        """Per job its document, or None. ``argument``, ``result`` and ``error`` in it are bytes."""
        return [None if item is None else replies.document(item) for item in await self.call("get", *ids)]

    async def result(self, job_id: str) -> tuple[str, bytes | None]:
        """(state, result if there is one: None before the end, and of a job that keeps none). Reading it starts
        its grace. Raises NotFound, and Expired when it is gone."""
        reply = await self.call("result", job_id)
        return replies.text(reply[0]), reply[1] if len(reply) > 1 else None

    async def watch(self, *ids: str) -> list[str | None]:
        """Per job its state, or None; the end of each will be published on ``<namespace>:ended``."""
        return replies.texts_or_none(await self.call("watch", *ids))

    async def track(self, ids: Sequence[str], *, on: bool | None = None) -> list[str | None]:
        """Per job its state, or None; each transition is published on ``<namespace>:job:<id>`` from now on
        (with ``on=False`` no more)."""
        return replies.texts_or_none(await self._ask("track", ids=ids, on=on))

    # --- changing them ---

    async def cancel(
        self,
        ids: Sequence[str],
        *,
        force: bool | None = None,
        dependents: str | None = None,
        atomic: bool | None = None,
    ) -> list[str]:
        """Cancel jobs; per job the state it was in, ``NOTFOUND`` or ``CONFLICT``.

        ``dependents``: ``leave`` (default), ``cancel``, or ``refuse``: raises Conflict if there are any beside these.
        ``atomic``: all or none; raises NotFound, Conflict, whose ``path`` says which cannot be cancelled.
        """
        told = {"force": force, "dependents": dependents, "atomic": atomic}
        return replies.texts(await self._ask("cancel", ids=ids, **told, actor=self.actor))

    async def cancel_where(self, where: Spec, *, force: bool | None = None, **steps: Unpack[Steps]) -> tuple[str, int]:
        """One step of cancelling all that match: (cursor, empty at the end; jobs changed)."""
        return replies.step(await self._ask("cancel", where=where, force=force, **steps, actor=self.actor))

    async def change(self, changes: Sequence[tuple[Spec, bytes]]) -> list[str]:
        """Change jobs, (spec with ``id``, argument) each; an empty argument leaves the job's own.

        Per job its state, ``NOTFOUND`` or ``CONFLICT``.
        """
        return replies.texts(await self.call("change", *packed_each(changes, "changes")))

    async def depend(
        self,
        job_id: str,
        *,
        add: Sequence[str] | None = None,
        remove: Sequence[str] | None = None,
        if_failed: str | None = None,
    ) -> str:
        """Change what a job waits for; its state then. Raises NotFound, Conflict (was started; a circle)."""
        return replies.text(await self._ask("depend", id=job_id, add=add, remove=remove, if_failed=if_failed))

    async def kick(self, ids: Sequence[str], *, delay: float | None = None) -> list[str]:
        """Take running jobs from their workers; per job its state, ``CONFLICT`` (does not run), ``NOTFOUND``.

        No retry is spent. ``delay`` in seconds.
        """
        return replies.texts(await self._ask("kick", ids=ids, delay=delay, actor=self.actor))

    async def kick_queue(self, queue: str, *, count: int | None = None, delay: float | None = None) -> tuple[int, bool]:
        """The same for up to ``count`` running jobs of a queue: (how many, whether more are left).

        Raises NotFound.
        """
        kicked, more = await self._ask("kick", queue=queue, count=count, delay=delay, actor=self.actor)
        return kicked, bool(more)

    async def kick_worker(
        self, worker: str, *, count: int | None = None, delay: float | None = None
    ) -> tuple[int, bool]:
        """The same for up to ``count`` jobs of a worker that is listed: (how many, whether more are left); of one
        that is not registered those that it named last. Raises NotFound."""
        kicked, more = await self._ask("kick", worker=worker, count=count, delay=delay, actor=self.actor)
        return kicked, bool(more)

    async def retry(self, ids: Sequence[str], *, queue: str | None = None) -> list[str]:
        """Have ended or retrying jobs run again; per job ``queued``, ``NOTFOUND`` or ``CONFLICT``.

        ``queue``: where they wait from now on.
        """
        return replies.texts(await self._ask("retry", ids=ids, queue=queue, actor=self.actor))

    async def retry_where(self, where: Spec, *, queue: str | None = None, **steps: Unpack[Steps]) -> tuple[str, int]:
        """One step of it for all that match: (cursor, empty at the end; jobs changed)."""
        return replies.step(await self._ask("retry", where=where, queue=queue, **steps, actor=self.actor))

    async def discard(self, ids: Sequence[str]) -> list[str]:
        """Remove jobs that do not run, with all there is of them; per job the state it had, or why not."""
        return replies.texts(await self._ask("discard", ids=ids, actor=self.actor))

    async def discard_where(self, where: Spec, **steps: Unpack[Steps]) -> tuple[str, int]:
        """One step of it for all that match: (cursor, empty at the end; jobs changed)."""
        return replies.step(await self._ask("discard", where=where, **steps, actor=self.actor))

    async def free(self, unique: str) -> str:
        """Take a unique key from its job, which goes on without one; the job's id. Raises NotFound (it is free)."""
        return replies.text(await self._ask("free", unique=unique, actor=self.actor))

    # --- finding them ---

    async def jobs(
        self,
        where: Spec | None = None,
        *,
        newest: bool | None = None,
        recent: bool | None = None,
        brief: bool | None = None,
        argument_max: int | None = None,
        looked: bool | None = None,
        **steps: Unpack[Steps],
    ) -> Page:
        """A page of the jobs that match ``where`` (section 14). It may be short, or empty, before the end."""
        order = {"newest": newest, "recent": recent}
        asked = {**order, "brief": brief, "argument_max": argument_max, "looked": looked}
        return replies.page_of_jobs(await self._ask("jobs", where=where, **asked, **steps))

    async def failures(
        self, group: str | None = None, *, cursor: str | None = None, count: int | None = None, **told: Unpack[Groups]
    ) -> Page:
        """A page of the groups of jobs that failed for good, or the one named (section 14)."""
        return await self._page("failures", group=group, cursor=cursor, count=count, **told)

    async def tags(self, *, top: int | None = None, **steps: Unpack[Steps]) -> tuple[str, list[tuple[str, int]]]:
        """(cursor, (tag, jobs that have it) each): a page in order of tag, or the ``top`` most used."""
        reply = await self._ask("tags", top=top, **steps)
        return replies.text(reply[0]), [(replies.text(tag), number) for tag, number in reply[1:]]
