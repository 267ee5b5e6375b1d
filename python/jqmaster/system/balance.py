"""Limits that the partitions of a system share: one process at a time moves shares between partitions.

Each partition has a share of each such constraint, and starts nothing beyond it (jqlua/limits/share.lua). Let C(i) be
what partition i is *counted* as in the table at partition 0. Always true: what runs in i, or started there within the
period, is at most C(i), and the sum of all C(i) is at most the limit. For:

1. A share is raised only after the table has it: one write, all or nothing, refused if another balancer has come since.
2. C(i) falls only to the greater of share and use that i itself told, in answer to the last that was sent to it. From
   then on use grows only by starts below the share. (A start within a period counts until it has left the window.)
3. What was sent before, and comes late, is refused: it has an older epoch, or an older turn of the same.
4. A new balancer has a greater epoch, and looks at a partition before it tells it a share: from then on nobody with an
   older epoch can. One that does not answer stays counted as in the table: the balancer before wrote that first (1).
5. A server that takes over i may have lost the last share. It is another server, so its shares are void until it is
   told new ones, and it tells so. It is counted as in the table until whoever still talks to the old one can have
   started nothing for a while: a share holds for SHARE_S from when i's clock was read, before the writer asked
   partition 0, who had refused it since. Then it counts as what it tells.
6. Of a constraint that is new, or was changed, the table says nothing: nothing is raised before all partitions have
   told what they have of the same definition; and a share of another definition is none.
7. A server that takes over partition 0 may have lost the table. It is another server, so the table is void: who does
   not answer may have the whole limit then, so that nothing is raised before all have answered.

8. A partition that was added is not in older tables: nobody told it a share, as who does has noted that first (1). Who
   does not know of it is refused at partition 0 from when the record names it (the fence of its generation).
9. One that is no more counts as nothing. A closed one had no jobs left, and takes none. One that was given up
   (`forget`) is left alone for SHARE_S before: then its last share is over.

Not so while partition 0, or i, has two primaries that both take writes: then for as long.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgpack

from jqmaster.engine import replies
from jqmaster.engine.engine import Operations
from jqmaster.engine.systems import Shares
from jqmaster.errors import Conflict, JQError, Outdated
from jqmaster.system.partitions import Partitions
from jqmaster.system.shares import Memory, Place, divide, grant

SHARE_S = 20.0
"""How long a share holds when nobody balances. So long nothing new starts in a partition that failed over."""
BUSY_S = 0.1
MOST_IDLE_S = 8.0
_HURRY = 0.2  # of that, where units are on their way from one partition to another
_LATE = 3  # of that; a turn waits no longer for those that do not answer
_ANSWER_S = 5.0
_PER_IDLE_S = 8  # partitions that are looked at in a second when nothing happens

LIMITS = ("concurrency", "rate")
_USES = {"concurrency": "running", "rate": "starts"}
Counts = list[int | None]  # what each partition is counted as; None where nothing is known
Table = dict[str, tuple[str, Counts, Counts]]  # by constraint: which definition, and counts under each of its limits

log = logging.getLogger(__name__)


@dataclass
class _Seen:
    """What a partition last told."""

    now_ms: int
    moved: bool
    settled: bool
    before_ms: int  # its clock at the look before
    constraints: dict[str, replies.Document]


class _Reign:
    """What a balancer knows while it is the one."""

    def __init__(self, epoch: str, table: Table | None, count: int) -> None:
        self.epoch = epoch
        self.turn = 0
        self.table = table  # None while nothing is known of it
        self.seen: list[_Seen | None] = [None] * count  # None unless the last that was sent was answered
        self.last_ms = [0] * count
        self.moved_at: dict[int, float] = {}
        self.memories: dict[tuple[str, str], Memory] = {}
        self.asked: dict[int, asyncio.Task[Shares]] = {}


class Balancer:
    """Shares constraints out over ``partitions``, the first of them partition 0. Any number may run: one at a time
    does something, the others ask every few seconds whether it still does.

    ``generation``: of the record by which these are all partitions. Partition 0 refuses who knows an earlier one.
    ``numbers``: theirs, where some are no more.

    ``share_s``: for how long a share holds. It must be the same for all balancers of a system.
    """

    def __init__(
        self,
        partitions: Sequence[Operations],
        *,
        generation: int | None = None,
        numbers: Sequence[int] | None = None,
        share_s: float = SHARE_S,
        busy_s: float = BUSY_S,
    ) -> None:
        self.partitions = partitions
        self._numbers = range(len(partitions)) if numbers is None else numbers
        self.generation = generation
        self.share_s = share_s
        self.busy_s = busy_s
        self.idle_s = min(MOST_IDLE_S, share_s / 3, max(10 * busy_s, len(partitions) / _PER_IDLE_S))
        self._reign: _Reign | None = None

    async def run(self) -> None:
        """Until it is cancelled."""
        is_well = True
        try:
            while True:
                try:
                    pause_s = await self.turn()
                    is_well = True
                except Outdated as problem:
                    log.info("there are more partitions: %s", problem)
                    pause_s = self.idle_s  # whoever runs this reads the record meanwhile
                except JQError as problem:
                    if is_well:
                        log.warning("limits are not balanced now: %s", problem)
                    is_well, pause_s = False, self.idle_s
                await asyncio.sleep(pause_s)
        finally:
            await self.leave()

    async def leave(self) -> None:
        """Let another one go on at once."""
        if reign := self._reign:
            self._end(reign)
            with suppress(JQError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._note(reign, reign.table, 1)

    async def turn(self) -> float:
        """One turn; the seconds until the next. Raises JQError when partition 0 does not answer."""
        if self._reign is None:
            epoch, left_s = await self._begin()
            if epoch is None:
                return left_s
        reign = self._reign
        assert reign is not None
        reign.turn += 1
        try:
            return await self._go_on(reign)
        except Conflict as problem:
            log.info("another one balances limits: %s", problem)
            self._end(reign)
            return self.busy_s

    # -- the table at partition 0 ----------------------------------------------------------------------

    @property
    def _lease_s(self) -> float:
        return 2 * self.idle_s + 10 * self.busy_s

    async def _begin(self) -> tuple[str | None, float]:
        left_ms, epoch, noted = await self.partitions[0].balance(int(self._lease_s * 1000), generation=self.generation)
        if epoch is not None:
            table: Table | None = msgpack.unpackb(noted) if noted else None
            self._reign = _Reign(epoch, _of_numbers(table, self._numbers), len(self.partitions))
        return epoch, min(left_ms / 1000 + 0.01, self._lease_s)

    def _end(self, reign: _Reign) -> None:
        for task in reign.asked.values():
            task.cancel()
        if self._reign is reign:
            self._reign = None

    async def _note(self, reign: _Reign, table: Table | None, lease_ms: int) -> None:
        noted = b"" if table is None else msgpack.packb(_by_number(table, self._numbers))
        await self.partitions[0].balance(lease_ms, reign.epoch, reign.turn, noted, generation=self.generation)

    # -- one turn --------------------------------------------------------------------------------------

    async def _go_on(self, reign: _Reign) -> float:
        if reign.turn > 1 and self._has_nothing(reign):
            await self._note(reign, reign.table, int(self._lease_s * 1000))
            await self._tell(reign, {0: None})
            return self.idle_s
        table, plans, is_moving = self._plan(reign)
        if reign.table is None and None in reign.seen:
            table = None  # there may be more than was seen
        await self._note(reign, table, int(self._lease_s * 1000))
        reign.table = table
        await self._tell(reign, {index: plans.get(index) for index in range(len(self.partitions))})
        if is_moving:
            return _HURRY * self.busy_s
        return self.busy_s if self._is_busy(reign) else self.idle_s

    def _has_nothing(self, reign: _Reign) -> bool:
        """Whether there are no such constraints, as far as partition 0 knows, which hears of them first."""
        first = reign.seen[0]
        return first is not None and not first.constraints and reign.table == {}

    def _is_busy(self, reign: _Reign) -> bool:
        if reign.turn == 1 or any(one and not one.settled for one in reign.seen):
            return True
        documents = [one for seen in reign.seen if seen for one in seen.constraints.values()]
        return any(one["running"] or one["waiting"] or one["starts"] for one in documents)

    async def _tell(self, reign: _Reign, plans: dict[int, Any]) -> None:
        """Tell partitions their shares, or only look at them. Those that do not answer are not waited for."""
        for index, plan in plans.items():
            if index in reign.asked:
                continue
            seen, told = reign.seen[index], {}
            if plan is not None and seen is not None:
                told = {"until_ms": seen.now_ms + int(self.share_s * 1000), "shares": plan}
            reign.seen[index] = None
            call = asyncio.wait_for(self.partitions[index].share(reign.epoch, reign.turn, **told), _ANSWER_S)
            reign.asked[index] = asyncio.ensure_future(call)
        done, _ = await asyncio.wait(reign.asked.values(), timeout=_LATE * self.busy_s)
        conflict: Conflict | None = None
        for index in [index for index, task in reign.asked.items() if task in done]:
            try:
                self._hear(reign, index, reign.asked.pop(index).result())
            except Conflict as problem:
                # It is on another server, or another balancer was there: the next look tells.
                conflict = problem if plans.get(index) is None else conflict
            except (JQError, TimeoutError) as problem:
                log.debug("partition %d does not tell its shares: %s", index, problem)
        if conflict:
            raise conflict

    def _hear(self, reign: _Reign, index: int, told: Shares) -> None:
        constraints = {one["id"]: one for one in told.constraints}
        reign.seen[index] = _Seen(told.now_ms, told.moved, told.settled, reign.last_ms[index], constraints)
        reign.last_ms[index] = told.now_ms
        if not told.moved:
            reign.moved_at.pop(index, None)
        else:
            reign.moved_at.setdefault(index, time.monotonic())

    # -- what to tell ----------------------------------------------------------------------------------

    def _plan(self, reign: _Reign) -> tuple[Table | None, dict[int, Any], bool]:
        """The table to be, the shares to tell by partition, and whether units are on their way."""
        is_open = [self._is_open(reign, index) for index in range(len(self.partitions))]
        plans: dict[int, dict[str, list[Any]]] = {index: {} for index, one in enumerate(is_open) if one}
        ids = {id for seen in reign.seen if seen for id in seen.constraints} | set(reign.table or ())
        table: Table = {}
        is_moving = False
        for id in sorted(ids):
            own = {index: seen.constraints.get(id) for index, seen in enumerate(reign.seen) if seen}
            definitions = {one["definition"] if one else "" for one in own.values()}
            definition = definitions.pop() if len(definitions) == 1 else ""
            divided = [self._divide(reign, id, kind, definition, own, is_open) for kind in LIMITS]
            is_moving = is_moving or any(moving for _, _, moving in divided)
            for index, plan in plans.items():
                if told := own[index]:
                    plan[id] = [told["definition"], *(shares[index] for shares, _, _ in divided)]
            if reign.table and id in reign.table and not any(own.values()):
                definition = reign.table[id][0]
            if any(own.values()) or any(count != 0 for _, counts, _ in divided for count in counts):
                table[id] = (definition, divided[0][1], divided[1][1])
        return table, plans, is_moving

    def _divide(
        self, reign: _Reign, id: str, kind: str, definition: str, own: dict[int, Any], is_open: Sequence[bool]
    ) -> tuple[list[int], Counts, bool]:
        """The shares under one limit, what each partition is counted as with them, whether units are on their way."""
        memory = reign.memories.setdefault((id, kind), Memory())
        noted = self._noted(reign, id, kind, definition)
        limit, places = 0, []
        for index, seen in enumerate(reign.seen):
            one = own.get(index)
            if seen is None or not is_open[index]:
                used = one[_USES[kind]] if one and one[kind] else 0
                count = noted[index] if seen is None or seen.settled else None
                places.append(Place(None if count is None else max(count, used)))
            elif one is None:
                places.append(Place(0 if not any(own.values()) else None))
            else:
                limit = one[kind]
                share, used = (one["share"][kind], one[_USES[kind]]) if limit else (0, 0)
                demand = memory.demand(index, used, one["waiting"], one["full_ms"] >= seen.before_ms)
                places.append(Place(max(share, used) if definition else None, share, demand, True))
        targets = divide(limit, places, memory, reign.turn)
        shares = grant(limit, places, targets, memory, reign.turn)
        counts: Counts = [
            None if one.counted is None else max(one.counted, share) for one, share in zip(places, shares, strict=True)
        ]
        return shares, counts, self._are_moving(places, targets, shares)

    def _are_moving(self, places: Sequence[Place], targets: Sequence[int], shares: Sequence[int]) -> bool:
        """Whether some who have to give do so now, and others wait for it."""
        lowered = any(share < one.share and one.counted == one.share for one, share in zip(places, shares, strict=True))
        wanting = any(
            share < min(target, one.demand) for one, share, target in zip(places, shares, targets, strict=True)
        )
        return lowered and wanting

    def _is_open(self, reign: _Reign, index: int) -> bool:
        """Whether a partition is known, and can be told shares."""
        seen = reign.seen[index]
        if seen is None or not seen.settled:
            return False
        return not seen.moved or self._is_past(reign, index)

    def _is_past(self, reign: _Reign, index: int) -> bool:
        """Whether a share that the server before was told is over."""
        if reign.table is not None and not any(
            counts[index] != 0 for _, *both in reign.table.values() for counts in both
        ):
            return True
        return time.monotonic() - reign.moved_at[index] >= self.share_s

    def _noted(self, reign: _Reign, id: str, kind: str, definition: str) -> Counts:
        count = len(self.partitions)
        if reign.table is None:
            return [None] * count
        if id not in reign.table:
            return [None if definition else 0] * count
        noted, *counts = reign.table[id]
        return counts[LIMITS.index(kind)] if definition in ("", noted) else [None] * count


def _of_numbers(table: Table | None, numbers: Sequence[int]) -> Table | None:
    """Of a table as it was noted what concerns these partitions; some may have been added since."""
    if table is None:
        return None

    def those(counts: Counts) -> Counts:
        return [counts[number] if number < len(counts) else 0 for number in numbers]

    return {id: (definition, those(one), those(other)) for id, (definition, one, other) in table.items()}


def _by_number(table: Table, numbers: Sequence[int]) -> Table:
    """As it is noted: counts by the numbers of partitions, 0 for those that are no more."""

    def all_of(counts: Counts) -> Counts:
        found: Counts = [0] * (max(numbers) + 1)
        for number, count in zip(numbers, counts, strict=True):
            found[number] = count
        return found

    return {id: (definition, all_of(one), all_of(other)) for id, (definition, one, other) in table.items()}


async def balance(system: Partitions) -> None:
    """Share limits out over all partitions of a system, also those that come, until it is cancelled."""
    while True:
        live = await system.live()
        _, record = await system.known()
        balancer = Balancer(list(live.values()), generation=record.generation, numbers=list(live))
        balancing = asyncio.ensure_future(balancer.run())
        try:
            await system.changed(record.generation)
        finally:
            balancing.cancel()
            await asyncio.wait({balancing})
