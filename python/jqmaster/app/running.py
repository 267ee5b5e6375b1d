"""What `JQ` has for what makes jobs again and again, schedules, and for those who run them, workers."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, Unpack

from jqmaster.app.handle import unpacked
from jqmaster.app.link import plain
from jqmaster.app.listing import BATCH, PAGE, all_of, batched, conditions, documents, in_seconds
from jqmaster.app.made import MadeMethods
from jqmaster.app.task import Call, When
from jqmaster.engine import options
from jqmaster.engine.engine import Engine as StraightEngine
from jqmaster.engine.options import Seconds, Where
from jqmaster.engine.replies import Document
from jqmaster.errors import NotFound

FOLLOW_EVERY_S = 0.3
PAGE_OF_PLANS = 20  # schedules with their moments to come


class RunningMethods(MadeMethods):
    """Schedules and workers, for operators and programs."""

    # -- schedules --------------------------------------------------------------------------------

    async def arepeat(self, schedule_id: str, call: Call[Any], **when: Unpack[When]) -> Document:
        """Make a call again and again: `jq.repeat("acme-report", report.job("acme"), cron="0 8 * * mon")`.
        Creates or replaces the schedule of this id; its document, with `next_ms`. Raises Invalid."""
        fields = options.when_of(when)
        found = await (await self.aengine()).schedule(schedule_id, call.spec(), call.argument, **fields)
        return unpacked(found, self.link.serializer)

    async def aschedules(
        self, ids: Iterable[str] | None = None, *, next: int | None = None, runs: int | None = None
    ) -> list[Document]:
        """All schedules in order of id, or those named that are there; `next`: with so many moments to come;
        `runs`: with so many (up to 20) of the jobs it made last."""
        engine = await self.aengine()
        ask = partial(engine.schedules, next=next, runs=runs)
        if ids is not None:
            found = await batched(lambda some: documents(ask(some)), ids)
        else:
            found = await all_of(ask, PAGE_OF_PLANS if next or runs else PAGE)
        return [unpacked(one, self.link.serializer) for one in found]

    async def arun_schedule(self, schedule_id: str) -> str:
        """Make the job of a schedule at once, beside those of its moments; its id, or that of the job that has
        its unique key; "" where another partition of a system makes it, a moment later. Raises NotFound, Full."""
        job_id, _ = await (await self.aengine()).run_schedule(schedule_id)
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
        return await (await self.aengine()).begin_bulk(
            what, conditions(where), total=total, queue=queue, force=force, dependents=dependents
        )

    async def astop_bulk(self, bulk_id: str) -> Document:
        """Stop one; its document. Raises NotFound."""
        return await (await self.aengine()).stop_bulk(bulk_id)

    async def afollow_bulk(self, bulk: Document, said: Callable[[Document], object] | None = None) -> Document:
        """Wait until it is over; its document then. `said` is told how far it is. Straight on Redis it is carried on
        from here, as no master may be there. Raises NotFound when nobody knows it any more."""
        engine = await self.aengine()
        if isinstance(engine, StraightEngine):
            bulk = await engine.carry_on(bulk, f"jq:{secrets.token_hex(6)}", said) or bulk
        while not bulk.get("ended_ms"):
            await asyncio.sleep(FOLLOW_EVERY_S)
            found = [one for one in await engine.bulks() if one["id"] == bulk["id"]]
            if not found:
                raise NotFound(f"no such bulk operation: {bulk['id']}")
            [bulk] = found
            if said is not None:
                said(bulk)
        return bulk

    # -- workers ----------------------------------------------------------------------------------

    async def aworkers(self, ids: Iterable[str] | None = None, *, others: bool = False) -> list[Document]:
        """The registered workers; or the `others`: those that pull and announce themselves, as this library's do,
        and for an hour those that died (`state` is `gone`); or those named, by id or, not registered, by name."""
        engine = await self.aengine()
        if ids is not None:
            return [one for worker in ids for one in await documents(engine.workers([worker]))]
        return await all_of(partial(engine.workers, others=others or None))

    async def akick_worker(self, worker_id: str, *, delay: Seconds | None = None) -> int:
        """Take all its jobs from a worker; how many. They wait again, and no retry is spent. Raises NotFound."""
        engine, total, more = await self.aengine(), 0, True
        while more:
            kicked, more = await engine.kick_worker(worker_id, count=BATCH, delay=in_seconds(delay))
            total += kicked
        return total

    async def atell_worker(self, worker_id: str, request: Literal["quiet", "stop", "resume"]) -> None:
        """Ask a registered worker to finish what it has and take no more, to stop as if it got SIGTERM, or to
        take jobs again. Raises NotFound."""
        await (await self.aengine()).worker(worker_id, request)

    repeat, schedules = plain(arepeat), plain(aschedules)
    run_schedule = plain(arun_schedule)
    begin_bulk, stop_bulk = plain(abegin_bulk), plain(astop_bulk)
    follow_bulk = plain(afollow_bulk)
    workers, tell_worker, kick_worker = plain(aworkers), plain(atell_worker), plain(akick_worker)
