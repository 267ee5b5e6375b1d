"""What `JQ` has for schedules, which make jobs again and again, for bulks, workers, and marks."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any, Literal, Unpack

from jqmaster.client.handle import unpacked
from jqmaster.client.link import plain
from jqmaster.client.listing import PAGE, all_of, batched, conditions, documents, kick_all
from jqmaster.client.made import MadeMethods
from jqmaster.client.task import Call, When
from jqmaster.connection.plainly import pause
from jqmaster.engine import options
from jqmaster.engine.engine import Engine as StraightEngine
from jqmaster.engine.options import Seconds, Where
from jqmaster.engine.replies import Document
from jqmaster.errors import NotFound

FOLLOW_EVERY_S = 0.3
PAGE_OF_PLANS = 20  # schedules with their moments to come


class RunningMethods(MadeMethods):
    """Schedules, bulks, workers and marks, for operators and programs."""

    # -- schedules --------------------------------------------------------------------------------

    async def arepeat(self, schedule_id: str, call: Call[Any], **when: Unpack[When]) -> Document:
        """Make a call again and again: `jq.repeat("acme-report", report.job("acme"), cron="0 8 * * mon")`.
        Creates or replaces the schedule of this id; its document, with `next_ms`. Raises Invalid."""
        fields = options.when_of(options.known(when, When))
        document = await (await self.aengine()).schedule(schedule_id, call.spec(), argument=call.argument, **fields)
        return unpacked(document, self.link.serializer)

    async def aschedules(
        self, ids: Iterable[str] | None = None, *, next: int | None = None, runs: int | None = None
    ) -> list[Document]:
        """All schedules in order of id, or those named that are there; `next`: with so many moments to come;
        `runs`: with so many (up to 20) of the jobs it made last."""
        engine = await self.aengine()
        ask = partial(engine.schedules, next=next, runs=runs)
        if ids is not None:
            schedules = await batched(lambda some: documents(ask(some)), ids)
        else:
            schedules = await all_of(ask, PAGE_OF_PLANS if next or runs else PAGE)
        return [unpacked(document, self.link.serializer) for document in schedules]

    async def arun_schedule(self, schedule_id: str) -> str:
        """Make the job of a schedule at once, beside those of its moments; its id, or that of the job that has
        its unique key. Raises NotFound, Full."""
        job_id, _ = await (await self.aengine()).schedule(schedule_id, run=True)
        return job_id

    # -- bulks ------------------------------------------------------------------------------------

    async def abegin_bulk(
        self,
        what: Literal["discard", "cancel", "retry"],
        where: Where,
        *,
        total: int | None = None,
        queue: str | None = None,
        force: bool | None = None,
        dependents: Literal["leave", "cancel"] | None = None,
    ) -> Document:
        """Have something done to all jobs that fit, however many: masters do it in steps, also when this program has
        ended. Its document: `id, what, where, changed, …`. `total`: how many there may be. `force` and `dependents`
        are of `cancel`, `queue` of `retry`. Raises Conflict while one is under way with jobs of that queue."""
        return await (await self.aengine()).bulk(
            what, conditions(where), total=total, queue=queue, force=force, dependents=dependents
        )

    async def astop_bulk(self, bulk_id: str) -> Document:
        """Stop one; its document. Raises NotFound."""
        return await (await self.aengine()).bulk(stop=True, id=bulk_id)

    async def afollow_bulk(self, bulk: Document, on_progress: Callable[[Document], object] | None = None) -> Document:
        """Wait until it is over; its document then. `on_progress` is called with it. Straight on Redis it is carried
        on from here, as no master may be there. Raises NotFound when nobody knows it any more."""
        engine = await self.aengine()
        if isinstance(engine, StraightEngine):
            bulk = await engine.carry_on(bulk, f"jq:{secrets.token_hex(6)}", on_progress) or bulk
        while not bulk.get("ended_ms"):
            await pause(FOLLOW_EVERY_S)
            bulks = [document for document in await engine.bulks() if document["id"] == bulk["id"]]
            if not bulks:
                raise NotFound(f"no such bulk operation: {bulk['id']}")
            [bulk] = bulks
            if on_progress is not None:
                on_progress(bulk)
        return bulk

    # -- workers ----------------------------------------------------------------------------------

    async def aworkers(self, ids: Iterable[str] | None = None, *, others: bool = False) -> list[Document]:
        """The registered workers; or the `others`: those that pull and announce themselves, as this library's do,
        and for an hour those that died (`state` is `gone`); or those named, by id or, not registered, by name."""
        engine = await self.aengine()
        if ids is not None:
            return [document for worker in ids for document in await documents(engine.workers([worker]))]
        return await all_of(partial(engine.workers, others=others or None))

    async def akick_worker(self, worker_id: str, *, delay: Seconds | None = None) -> int:
        """Take all its jobs from a worker; how many. They wait again, and no retry is spent. Raises NotFound."""
        return await kick_all(partial((await self.aengine()).kick, worker=worker_id), delay)

    async def atell_worker(self, worker_id: str, request: Literal["quiet", "stop", "resume"]) -> None:
        """Ask a registered worker to finish what it has and take no more, to stop as if it got SIGTERM, or to
        take jobs again. Raises NotFound."""
        await (await self.aengine()).worker(worker_id, request)

    # -- marks: moments that somebody put a name to, such as a deploy ------------------------------

    async def amark(self, text: str, at: datetime | float | None = None) -> Document:
        """Put a name to a moment, default now: `{time_ms, text, actor}`. The same text again within a minute is
        the same mark. `text`: 1 to 200 bytes. Raises Invalid."""
        time_ms = None if at is None else round(options.unix(at) * 1000)
        return await (await self.aengine()).mark(text, time_ms=time_ms)

    async def amarks(self, since: datetime | float | None = None) -> list[Document]:
        """All marks that are kept, or those of a moment and later, newest first: `time_ms, text, actor`."""
        from_ms = None if since is None else round(options.unix(since) * 1000)
        return (await (await self.aengine()).marks(from_ms=from_ms, count=1000)).documents

    mark, marks = plain(amark), plain(amarks)
    repeat, schedules = plain(arepeat), plain(aschedules)
    run_schedule = plain(arun_schedule)
    begin_bulk, stop_bulk = plain(abegin_bulk), plain(astop_bulk)
    follow_bulk = plain(afollow_bulk)
    workers, tell_worker, kick_worker = plain(aworkers), plain(atell_worker), plain(akick_worker)
