"""Looking for jobs in the partitions of a cluster, and sleeping until one of them has some."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jqmaster.cluster.names import home_of
from jqmaster.connection import plainly
from jqmaster.connection.wake import Channel, backoff_s
from jqmaster.engine.calling import new_request
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import AGAIN, NOTHING, Waiting, channel_of, note_s
from jqmaster.errors import Unavailable

log = logging.getLogger("jqmaster.cluster")

MOST_SLEPT_AT = 16  # partitions; each takes a connection
BLOCK_S = 120.0  # of each of these connections. There are so many of them that each has to call rarely
FAR_S = 4.0  # how often each of the others is looked at; by one that has work all where there was none
DUE_S = 1.0  # how often one that has work looks at each of the others where there was some
LOOK_S = 3.0  # how long a partition may take to answer before the next is asked
AWAY_S = 5.0  # at most so long a partition that did not answer is not asked
MOST_REMEMBERED = 10_000

Reply = list[Any]
"""Of `pick`, as the script gives it: `[next_ms, document, argument, …]`."""


class _Views:
    """What one worker with one wish knows of each partition."""

    def __init__(self, count: int) -> None:
        self.looked_at = [-math.inf] * count
        self.was_empty = [False] * count
        self.quiet_until = [-math.inf] * count

    def note(self, number: int, reply: Reply, quiet_s: float) -> None:
        """What a look there has found: jobs, and there may be more; or nothing for so long."""
        self.looked_at[number] = time.monotonic()
        self.was_empty[number] = len(reply) == 1 and reply[0] != 0
        self.quiet_until[number] = time.monotonic() + quiet_s if self.was_empty[number] else -math.inf


class _Wish:
    """All who want jobs of the same queues in the same way."""

    def __init__(self, engines: Sequence[Engine], name: str) -> None:
        self.name = name
        self.channels = [Channel(engine.redis, f"{engine.namespace}:wake:{name}", BLOCK_S) for engine in engines]
        self.views: OrderedDict[str, _Views] = OrderedDict()
        self.users = 0

    def view(self, worker: str) -> _Views:
        """Of this worker."""
        if worker not in self.views:
            self.views[worker] = _Views(len(self.channels))
            if len(self.views) > MOST_REMEMBERED:
                self.views.popitem(last=False)
        self.views.move_to_end(worker)
        return self.views[worker]


class ClusterWaiting:
    """As `engine.waiting.Waiting`, over all partitions: the one where a worker looked longest ago comes first."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = engines
        self._parts = [Waiting(engine, engine.redis) for engine in engines]
        self._wishes: dict[str, _Wish] = {}
        self._away_until = [-math.inf] * len(engines)
        self._failures = [0] * len(engines)
        self._answered: OrderedDict[str, int] = OrderedDict()  # request of a pick -> the partition that gave jobs
        self._stopping = asyncio.Event()

    async def pick(self, spec: Mapping[str, Any], timeout_s: float, first: int | None = None) -> Reply:
        """See `Waiting.pick`; `first`: where to look first. Raises Unavailable when no partition answers."""
        deadline, is_own = time.monotonic() + timeout_s, "request" not in spec
        with self._using(spec) as wish:
            return await self._pick(wish, {"request": new_request(), **spec}, deadline, first, is_own=is_own)

    def due(self, spec: Mapping[str, Any], home: int) -> int | None:
        """The partition where a worker looked longest ago, if that is too long to go on in `home`; or the one that has
        answered this request already."""
        if (before := self._answered.get(str(spec.get("request")))) is not None:
            return before if before != home else None
        with self._using(spec) as wish:
            view = wish.view(str(spec.get("worker")))
            at = [
                max(looked_at + (FAR_S if was_empty else DUE_S), away_until)
                for looked_at, was_empty, away_until in zip(
                    view.looked_at, view.was_empty, self._away_until, strict=True
                )
            ]
            number = min(range(len(at)), key=lambda one: (one == home, at[one]))
            return number if number != home and at[number] <= time.monotonic() else None

    def note(self, spec: Mapping[str, Any], number: int, reply: Reply) -> None:
        """What a pick has found that went along with a report."""
        with self._using(spec) as wish:
            wish.view(str(spec.get("worker"))).note(number, reply, 0.0)
        self._remember(spec, number, reply)

    async def take_back(self, spec: Mapping[str, Any]) -> None:
        """See `Waiting.take_back`. What was lost on the way is taken back where it was asked for."""
        number = self._answered.get(str(spec.get("request")))
        if number is not None:
            await self._parts[number].take_back(spec)

    def look_again(self, worker: str) -> None:
        """Have this worker's long polls look at once: what it was refused may be its now."""
        for wish in self._wishes.values():
            if worker in wish.views:
                wish.views[worker] = _Views(len(self._engines))
            for channel in wish.channels:
                channel.wake_same(worker)

    def drain(self) -> None:
        """Answer all open long polls at once, and every later one."""
        self._stopping.set()
        for wish in self._wishes.values():
            for channel in wish.channels:
                channel.hand_over()

    async def stop(self) -> None:
        """`drain`, and close all connections; bounded."""
        self.drain()
        channels = [channel for wish in self._wishes.values() for channel in wish.channels]
        await plainly.gather(*(channel.stop() for channel in channels), *(part.stop() for part in self._parts))

    # -- parts ------------------------------------------------------------------------------------

    async def _pick(
        self, wish: _Wish, spec: dict[str, Any], deadline: float, first: int | None, *, is_own: bool
    ) -> Reply:
        worker = str(spec.get("worker"))
        view, called = wish.view(worker), set[int]() if first is None else {first}
        try:
            while not self._stopping.is_set():
                moments, sleeps = [], time.monotonic() < deadline
                for number in self._in_order(view, called, self._answered.get(spec["request"])):
                    called.discard(number)
                    reply = await self._look(wish, number, spec, sleeps=sleeps)
                    if len(reply) > 1:
                        wish.channels[number].wake_same(worker)
                        return [0, *reply[1:]]  # others may have more
                    moments.append(reply[0])
                if min(self._failures):
                    raise Unavailable("no partition of the cluster answers")
                is_again = any(next_ms in AGAIN for next_ms in moments)
                if is_again and is_own:
                    spec["request"] = new_request()
                elif is_again or not sleeps:  # again: none of the jobs of this request runs any more, also later
                    return [min((next_ms for next_ms in moments if next_ms >= 0), default=-1)]
                else:
                    await self._sleep(wish, view, worker, deadline, called)
            return list(NOTHING)
        finally:
            for number in called:  # where there may be jobs, and nobody looks now
                wish.channels[number].pass_on()

    def _in_order(self, view: _Views, called: set[int], before: int | None) -> Iterator[int]:
        """The partitions that may have jobs: where this request was answered before, where there was a call, and where
        the last look was longest ago."""
        order = sorted(
            range(len(self._engines)), key=lambda one: (one != before, one not in called, view.looked_at[one])
        )
        for number in order:
            if time.monotonic() >= max(view.quiet_until[number], self._away_until[number]) or number in called:
                yield number

    async def _look(self, wish: _Wish, number: int, spec: Mapping[str, Any], *, sleeps: bool) -> Reply:
        worker, part = str(spec.get("worker")), self._parts[number]
        sleeps = sleeps and number in self._slept_at(worker)
        try:
            async with asyncio.timeout(LOOK_S):  # what comes later is given back
                reply = await part.look(spec, wish.name if sleeps else None)
        except (Unavailable, TimeoutError) as problem:
            if isinstance(problem, Unavailable):
                part.abandon(spec)
            self._failed(number, problem)
            return list(NOTHING)
        self._failures[number] = 0
        quiet_s = note_s(reply[0]) if sleeps else FAR_S if number not in self._slept_at(worker) else 0.0
        wish.view(worker).note(number, reply, quiet_s)
        if sleeps and len(reply) == 1:
            wish.channels[number].look_in(reply[0])
        self._remember(spec, number, reply)
        return reply

    def _remember(self, spec: Mapping[str, Any], number: int, reply: Reply) -> None:
        if len(reply) > 1:
            self._answered[str(spec.get("request"))] = number
            if len(self._answered) > MOST_REMEMBERED:
                self._answered.popitem(last=False)

    def _failed(self, number: int, problem: Exception) -> None:
        level = logging.DEBUG if self._failures[number] else logging.WARNING
        log.log(level, "%s does not answer, going on without it: %s", self._engines[number].namespace, problem)
        self._away_until[number] = time.monotonic() + min(AWAY_S, 4 * backoff_s(self._failures[number]))
        self._failures[number] += 1

    def _slept_at(self, worker: str) -> Sequence[int]:
        """The partitions at which a worker sleeps: all, or as many as it may from one on that its name says."""
        count = len(self._engines)
        first = home_of(worker, count) if count > MOST_SLEPT_AT else 0
        return [(first + step) % count for step in range(min(count, MOST_SLEPT_AT))]

    async def _sleep(self, wish: _Wish, view: _Views, worker: str, deadline: float, called: set[int]) -> None:
        """Until a partition may have something, but at most so long."""
        now = time.monotonic()
        wakes = [max(*pair) for pair in zip(view.quiet_until, self._away_until, strict=True)]
        sleep_s = max(0.001, min(deadline, *wakes) - now) * random.uniform(0.98, 1.0)
        sleeping = {
            asyncio.create_task(wish.channels[number].sleep(sleep_s, worker)): number
            for number in self._slept_at(worker)
        }
        # Who wakes all that sleep finds nobody while these have not begun to.
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([*sleeping, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*sleeping, stopping):
                task.cancel()
            await asyncio.wait([*sleeping, stopping])
            called.update(number for task, number in sleeping.items() if not task.cancelled() and task.result())

    @contextlib.contextmanager
    def _using(self, spec: Mapping[str, Any]) -> Iterator[_Wish]:
        """What all share who have this wish. Those that nobody uses any more go."""
        name = channel_of(spec.get("queues"), spec.get("without"))
        if name not in self._wishes:
            self._wishes[name] = _Wish(self._engines, name)
        wish = self._wishes[name]
        wish.users += 1
        try:
            yield wish
        finally:
            wish.users -= 1
            if not wish.users and len(self._wishes) > 1:
                for idle in [one for one in self._wishes.values() if one is not wish and not one.users]:
                    if not any(channel.connected for channel in idle.channels):
                        del self._wishes[idle.name]
