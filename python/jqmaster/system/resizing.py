"""Changing the record of a system, while everything runs: which partitions it has, which buckets they have, and routes.
docs/partitions.md, "Resizing", has the rules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from jqmaster.engine import scripts
from jqmaster.engine.engine import Engine
from jqmaster.errors import Conflict, Invalid, Unavailable
from jqmaster.system import bringing, calls, moving
from jqmaster.system.balance import SHARE_S
from jqmaster.system.engine import SystemEngine
from jqmaster.system.layout import lay_out, spread
from jqmaster.system.partitions import LOOK_S
from jqmaster.system.record import OVER, System, check_count
from jqmaster.system.routing import is_placed, segments_of

LEARNT_S = LOOK_S + 1.0
"""After which all processes know a record."""


async def add(url: str, root: str, count: int, *, form: scripts.Form = "auto") -> System:
    """Add ``count`` partitions, spread over the nodes such that each has as many as the next; the record.

    First the record names them, and all partitions learn of it: what is set in all is set in them from then on. Then
    they get what was set before. Then they are active, and take jobs. Who repeats a call that broke off completes it.
    Raises Invalid (count), Conflict (others are being added, or somebody changes the system at the same moment),
    NotFound, Version, Unavailable (a partition does not answer: all are needed), ValueError.
    """
    async with _changing(url, root, form) as change:
        system = change.system
        if not system.joining:
            check_count(len(system.partitions) + count)
            there = [one.namespace for one in system.partitions]
            owners = await calls.owners_of(change.engine)
            await change.to(system.joined_by(lay_out(root, len(there) + count, owners, there)[len(there) :]))
        elif len(system.joining) != count:
            raise Conflict(f"{len(system.joining)} partitions are being added: repeat that first")
        else:
            await calls.tell(url, system, form=form)
        async with change.whole() as whole:
            while any(await bringing.sync(whole)):  # what is set meanwhile may be undone by an older copy
                pass
        try:
            await change.to(change.system.activated())
        except Unavailable as problem:
            told = problem.message.replace(": repeat it", ": `system sync` tells them")
            raise Unavailable(f"they are added, but {told}") from problem
        return change.system


@dataclass
class Moved:
    """What came of moving buckets. ``buckets``, ``schedules``: how many moved now. ``busy``: buckets that stay for now
    since jobs of queues with routes lie by them, each with how many. ``keys``: how many unique keys partitions still
    have of buckets that they had, and ``settles_s``: for how long they may know request tokens of theirs."""

    system: System
    buckets: int = 0
    schedules: int = 0
    busy: dict[int, int] = field(default_factory=dict)
    keys: int = 0
    settles_s: float = 0.0

    @property
    def is_done(self) -> bool:
        """Whether no bucket has anything where it was before, nor stays although it is to move."""
        return not self.busy and not self.system.former


async def rebalance(url: str, root: str, *, form: scripts.Form = "auto") -> Moved:
    """Move buckets such that each partition that takes jobs has as many as the next. Safe to repeat, which completes
    what broke off, or had to wait.

    Raises Conflict (partitions are being added, or somebody changes the system at the same moment), NotFound, Version,
    Unavailable (a partition does not answer: all are needed), ValueError.
    """
    async with _changing(url, root, form) as change:
        return await change.move()


@dataclass
class Drained:
    """How far a partition is. ``unended``, ``ended``: its jobs; ``has_mail``: others are still to be told something."""

    moved: Moved
    state: str
    unended: int = 0
    ended: int = 0
    has_mail: bool = False


async def drain(url: str, root: str, number: int, *, discard: bool = False, form: scripts.Form = "auto") -> Drained:
    """Have a partition take nothing any more, move its buckets away, and when it has no jobs left, close it. Safe to
    repeat: each time does what can be done now.

    ``discard``: close it although records of jobs that have ended are kept. Raises Invalid (number), Conflict (it is
    partition 0, or the last one that takes jobs; partitions are being added, or somebody changes the system at the same
    moment), NotFound, Version, Unavailable, ValueError.
    """
    async with _changing(url, root, form) as change:
        check_goes(change.system, number)
        if change.system.partitions[number].state in OVER:
            return Drained(Moved(change.system), change.system.partitions[number].state)
        if change.system.partitions[number].state == "active":
            await change.to(change.system.in_state(number, "draining"))
        moved = await change.move()
        async with change.whole() as whole:
            engines = await whole.live()
            engine = engines[number]
            unended, ended = await moving.jobs_left(engine)
            found = Drained(moved, "draining", unended, ended, await moving.has_mail(number, engines))
            is_former = number in moved.system.former.values() or number in moved.system.buckets
            if not is_former and not unended and not found.has_mail and (discard or not ended):
                await change.to(change.system.in_state(number, "closed"))
                await asyncio.sleep(LEARNT_S)  # from here on nobody retries one of its jobs
                found.unended, _ = await moving.jobs_left(engine)
                if found.unended:
                    await change.to(change.system.in_state(number, "draining"))
            found.state, moved.system = change.system.partitions[number].state, change.system
        return found


async def forget(
    url: str, root: str, number: int, *, say: Callable[[str], None] = lambda _: None, form: scripts.Form = "auto"
) -> System:
    """Go on without a partition that never comes back: what it had is lost. The record.

    Its jobs count as failed for those that depend on them, its buckets go to others. Limits that partitions share are
    left as they are until its last share is over. Raises Invalid (number), Conflict (it answers, or it is partition 0),
    NotFound, Version, Unavailable (another one does not answer), ValueError.
    """
    async with _changing(url, root, form, without=number) as change:
        check_goes(change.system, number)
        one = change.system.partitions[number]
        if one.state == "closed":
            raise Conflict(f"partition {number} is closed, with all that it had")
        if one.state == "lost":
            await change.to_all()
            return change.system
        if await _answers(url, one.namespace):
            raise Conflict(f"partition {number} answers: `system drain {number}` loses nothing")
        if one.state == "active":
            await change.to(change.system.in_state(number, "draining"))
        if (await change.engine.constraints()).documents:
            say(f"waiting {SHARE_S:g} s until its share of limits is over")
            await asyncio.sleep(SHARE_S)
        system = change.system
        there = [index for index, place in enumerate(system.buckets) if place == number]
        moves = {index: place for index, place in spread(system.buckets, system.takers).items() if index in there}
        await change.to(system.forgotten(number, moves))
        return change.system


async def route(url: str, root: str, queue: str, path: str | None, *, form: scripts.Form = "auto") -> System:
    """Give a queue a route (module ``routing``), or with None take it away; the record. Safe to repeat.

    Jobs stay where they are, so the queue has to be without any that have not ended. Raises Invalid (path, queue),
    Conflict (it has jobs, a constraint needs the route that it has, or somebody changes the system at the same moment),
    NotFound, Version, Unavailable (a partition does not answer: all are needed), ValueError.
    """
    if path is not None:
        segments_of(path)
    async with _changing(url, root, form) as change:
        system = change.system
        if system.routes.get(queue) == path:
            await change.to_all()  # also those that did not hear of it last time
            return system
        async with change.whole() as whole:
            unended = sum(one[state] for one in (await whole.queues([queue])).documents for state in moving.OPEN)
            if unended:
                raise Conflict(f"{queue} has {unended} jobs that have not ended, and they stay where they are", "queue")
        routed = system.routed(queue, path)
        async for one in calls.documents_of(change.engine.constraints):
            if is_placed(one, system.routes) and not is_placed(one, routed.routes):
                raise Conflict(f"constraint {one['id']} needs the route that {queue} has", "path")
        await change.to(routed)
        return change.system


def check_goes(system: System, number: int) -> None:
    """Raise Invalid or Conflict for a partition that a system cannot do without."""
    if not 0 <= number < len(system.partitions):
        raise Invalid(f"expected the number of a partition, 0 to {len(system.partitions) - 1}, got {number}", "number")
    if number == 0:
        raise Conflict("partition 0 has the record of the system: it stays")
    if not any(one != number for one in system.takers):
        raise Conflict(f"partition {number} is the last one that takes jobs")


async def _answers(url: str, namespace: str) -> bool:
    try:
        async with calls.answering(namespace, calls.ANSWER_S), calls.at(url, namespace) as engine:
            await calls.read_at(engine)
    except Unavailable:
        return False
    return True


@asynccontextmanager
async def _changing(url: str, root: str, form: scripts.Form, *, without: int | None = None) -> AsyncIterator[_Change]:
    """Whoever changes a system begins with the latest record that a partition has, and partition 0 has it, too."""
    system = await calls.latest(url, root, without=without)
    async with calls.at(url, root, form=form) as engine:
        await calls.put(engine, system)
        yield _Change(url, system, engine, without)


class _Change:
    """One who changes a system: at partition 0 first, each time from the record that is there; then in all."""

    def __init__(self, url: str, system: System, engine: Engine, without: int | None) -> None:
        self.system = system
        self.engine = engine
        self._url, self._without = url, without

    async def to(self, system: System) -> None:
        """The next generation. Raises Conflict where another has come, Unavailable once it holds, but a partition was
        not told."""
        await calls.put(self.engine, system, after=self.system.generation)
        self.system = system
        await self.to_all()

    async def to_all(self) -> None:
        """Have all partitions know the record."""
        await calls.tell(self._url, self.system, form=self.engine.form, without=self._without)

    @asynccontextmanager
    async def whole(self) -> AsyncIterator[SystemEngine]:
        """All partitions as one, by the record that is there now."""
        engine = SystemEngine(self._url, self.system.root, form=self.engine.form)
        try:
            yield engine
        finally:
            await engine.close()

    async def move(self) -> Moved:
        """Move what can be moved now."""
        if self.system.joining:
            raise Conflict("partitions are being added: repeat `system add` first")
        if self.system.moving:  # whoever wanted to move them is gone
            await self.to(self.system.moved({}, 0))
        await self.to_all()
        async with self.whole() as whole:
            count = await moving.bring_schedules(whole)
            keys, settles_s = await self._settle(whole)
            moves, busy = await self._plan(whole)
        if moves or self.system.moving:
            await self.to(self.system.moved(moves, int(time.time() * 1000)))
            async with self.whole() as whole:
                count += await moving.bring_schedules(whole)
                keys, settles_s = await self._settle(whole)
        return Moved(self.system, len(moves), count, busy, keys, settles_s)

    async def _settle(self, whole: SystemEngine) -> tuple[int, float]:
        """Forget where buckets were that have nothing there any more. How many keys are left where others were, and
        how long request tokens may be."""
        engines = await whole.partitions()
        ttl_s = (await engines[0].config())["request_ttl"]
        settles_s = moving.settles_s(self.system, ttl_s) if self.system.former else 0.0
        keys = 0
        for number in sorted(set(self.system.former.values())):
            left = await moving.keys_left(engines[number], number, self.system)
            keys += left
            if not left and settles_s <= 0:
                await self.to(self.system.settled(number))
        return keys, max(settles_s, 0.0)

    async def _plan(self, whole: SystemEngine) -> tuple[dict[int, int], dict[int, int]]:
        """Which buckets move now, and which are to, but stay for the jobs of routes that they have."""
        live = await whole.live()
        system = self.system
        moves = spread(system.buckets, system.takers, system.former)
        if not moves or not system.routes:
            return moves, {}
        # Queues with routes take nothing by these now: so what is found there is all that there is.
        await self.to(system.about_to_move(moves))
        busy = await moving.busy_buckets(live, system)
        planned = spread(system.buckets, system.takers, {*system.former, *busy})
        moves = {bucket: to for bucket, to in planned.items() if bucket in self.system.moving}
        return moves, {bucket: count for bucket, count in busy.items() if bucket in self.system.moving}
