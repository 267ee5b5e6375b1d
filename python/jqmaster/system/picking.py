"""Picking over the partitions of a system. docs/partitions.md, "Workers", tells which job is next."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import given, new_request
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import channel_of
from jqmaster.errors import Unavailable
from jqmaster.system.partitions import Partitions, rendezvous
from jqmaster.system.place import Place, Quiet, Reply
from jqmaster.system.record import DIGITS

PLACES = 8  # partitions at which who waits sleeps in any case: a blocked connection to each
MOST_PLACES = 24  # and at most, where nobody else sleeps there
COVER_S = 60.0  # how often that is looked at
NET_S = 5.0  # how often one that sleeps looks at each of the others, of which there are few
LOOKS_S = 0.2  # with many it looks at one of them so often
SLACK_MS = 2  # a partition is not left for one whose head is older by less
MISLED_S = 1.0  # how long a partition is left alone whose head promised a job that a pick did not find


class Places:
    """The partitions of a system, for all of a process who wish for jobs of the same queues."""

    def __init__(
        self, system: Partitions, name: str, wish: Mapping[str, Any], make: Callable[..., Place] = Place
    ) -> None:
        """`name`: of who waits; it says where."""
        self._make = make
        self._system = system
        self._name = name
        self._wish = wish
        self._opening = asyncio.Lock()
        self.all: list[Place] = []
        self._over: set[int] = set()  # numbers of those that are no more
        self._covers_at = time.monotonic() + NET_S  # who begins at the same time is asleep by then

    async def open(self) -> list[Place]:
        """Raises what reading the record raises."""
        async with self._opening:
            if not self.all:
                await self._take_in()
        return self.all

    async def _take_in(self) -> None:
        """Know of all partitions, and which are no more. Who waits sleeps at those that are nearest, and goes on so
        where others are now."""
        engines, live = await self._system.partitions(), await self._system.live()
        nearest = rendezvous(self._name, live.values())[:PLACES]
        quiet_s = max(NET_S, LOOKS_S * (len(live) - len(nearest))) * random.uniform(0.75, 1.25)
        self.all += [
            self._make(number, one, self._wish, self._system.settled, is_near=one in nearest, quiet_s=quiet_s)
            for number, one in enumerate(engines)
            if number >= len(self.all)
        ]
        self._over |= (over := set(range(len(engines))) - live.keys() - self._over)
        for number in over:
            await self.all[number].close()

    async def widen(self) -> None:
        """Take partitions in that are added, until it is cancelled."""
        while True:
            await self.take_in_new()
            _, record = await self._system.known()
            await self._system.changed(record.generation)

    async def take_in_new(self) -> None:
        """Know of partitions that the system has learnt of, and of those that are no more."""
        engines, live = await self._system.partitions(), await self._system.live()
        if await self.open() and (len(engines) > len(self.all) or len(live) + len(self._over) < len(self.all)):
            known = list(self.all)
            await self._take_in()
            for one in known:
                if one.channel is not None:
                    one.channel.wake_all()  # who sleeps knows nothing of the others

    async def pick(
        self,
        worker: Any,
        wish: Mapping[str, Any],
        wait_s: float,
        quiet: Quiet,
        stopping: asyncio.Event | None = None,
    ) -> Reply:
        """Jobs of one partition, waited for; or when some become ready. Raises Unavailable when none answers. Whoever
        repeats a `request` asks the partitions in the same order."""
        places = await self.open()
        deadline = time.monotonic() + wait_s
        try:
            while True:
                is_more = False
                for one in _worth_a_look(places, quiet, wish.get("request")):
                    asked = wish if "request" in wish else {**wish, "request": new_request()}
                    reply = await one.look(worker, asked)
                    quiet.note(one, reply)
                    is_more = is_more or not reply[0]
                    if len(reply) > 1:
                        return [0, *reply[1:]]  # others may have more
                    if reply[0] == 0 and "request" in wish:
                        return reply  # none of its jobs runs any more, which it says for ever
                if all(one.is_away for one in places):
                    raise Unavailable(f"no partition of {self._system.root} answers")
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    return [0 if is_more else quiet.next_ms()]
                if not await self._cover(quiet):
                    await self._sleep(left_s, str(worker), quiet, stopping)
                if stopping is not None and stopping.is_set():
                    return [quiet.next_ms()]
        finally:
            for one in places:
                if one.is_called and one.channel is not None:  # and it is not looked at now
                    one.is_called = False
                    one.channel.pass_on()

    async def another(self, home: Place, request: str = "") -> tuple[Place | None, str | None]:
        """Another partition where a job waits, chosen by chance, or by the request, and the place that one at home must
        come before."""
        now = time.monotonic()
        others = [one for one in self.all if one is not home and max(one.away_until, one.led_until) <= now]
        chance = random.Random(str(request)) if request else random
        other = chance.choice(others) if others else None
        head = await other.head() if other else None
        if head is None:
            return None, None
        priority, job_id = head
        return other, f"{priority + 2**31:08x}{int(job_id[:DIGITS], 16) + SLACK_MS * 1024:0{DIGITS}x}"

    def wake(self) -> None:
        """Have all who wait look again, or leave."""
        for one in self.all:
            if one.channel is not None:
                one.channel.hand_over()

    async def stop(self) -> None:
        """Wait no more."""
        await asyncio.gather(*(one.stop() for one in self.all))

    async def _cover(self, quiet: Quiet) -> bool:
        """Now and then: sleep also where nobody does, and leave what others have taken, too. Whether there is somewhere
        to look before sleeping."""
        now = time.monotonic()
        if now < self._covers_at:
            return False
        self._covers_at = now + COVER_S * random.uniform(0.75, 1.25)
        far = [one for one in self.all if not one.is_near and not one.is_away]
        room, is_more = MOST_PLACES - sum(one.channel is not None for one in self.all), False
        for one, is_covered in zip(far, await asyncio.gather(*(one.is_covered() for one in far)), strict=True):
            if one.channel is None and is_covered is False and room > 0:
                one.settle()
                quiet.over(one)
                room, is_more = room - 1, True
            elif one.channel is not None and is_covered and random.random() < 0.5:
                await one.leave()
        return is_more

    async def _sleep(self, left_s: float, worker: str, quiet: Quiet, stopping: asyncio.Event | None) -> None:
        """Until a partition may have something, or it is to stop, but at most so long."""
        now = time.monotonic()
        ends = min([now + left_s, *(max(quiet.until(one), one.away_until) for one in self.all)])
        sleep_s = max(0.001, ends - now)
        sleeping = {
            asyncio.create_task(one.channel.sleep(sleep_s, worker)): one for one in self.all if one.channel is not None
        }
        # Who wakes all that sleep finds nobody while these have not begun to.
        ending = [] if stopping is None else [asyncio.create_task(stopping.wait())]
        try:
            await asyncio.wait([*sleeping, *ending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*sleeping, *ending):
                task.cancel()
            await asyncio.wait([*sleeping, *ending])
            for task, one in sleeping.items():
                if not task.cancelled() and task.result():
                    one.is_called = True
                    quiet.over(one)


class Picking:
    """`pick`, and `finish` with it, as a system's engine has them: each wish has its `Places`, while it is used."""

    def __init__(self, system: Partitions, name: str) -> None:
        self._system = system
        self._name = name
        self._places: dict[str, Places] = {}
        self._users: dict[str, int] = {}
        self._stopping = asyncio.Event()

    async def pick(self, spec: Mapping[str, Any], wait_s: float = 0.0) -> Reply:
        """`spec` is that of the script, without `wait`."""
        if self._stopping.is_set():
            return [-1]
        with self.places(spec) as places:
            await places.take_in_new()
            wish = {field: value for field, value in spec.items() if field != "worker"}
            return await places.pick(spec.get("worker"), wish, wait_s, Quiet(), self._stopping)

    async def with_report(
        self,
        worker: str,
        engine: Engine,
        pick: Mapping[str, Any],
        finish: Callable[[Mapping[str, Any]], Awaitable[list[Any]]],
    ) -> tuple[list[Any], Reply]:
        """Have outcomes reported at a partition, with a pick there, unless another has what comes before. `finish`
        takes the pick and gives answers and the pick's reply."""
        with self.places(pick) as places:
            await places.take_in_new()
            home = next(one for one in places.all if one.engine is engine)
            request = pick["request"] if "request" in pick else new_request()
            other, before = (None, None) if "before" in pick else await places.another(home, request)
            wish = {field: value for field, value in pick.items() if field != "request"}
            asked = {"settings": home.version, **wish, **given(before=before), "request": request}
            answers, picked = await finish(asked)
            if (version := replies.stale(picked)) is not None:
                home.told(version)
                picked = [-1]
            if len(picked) == 1 and other is not None:
                picked = await other.look(worker, {**wish, "request": request})
                if len(picked) == 1:
                    other.led_until = time.monotonic() + MISLED_S
            if len(picked) == 1 and len(places.all) <= PLACES:  # nothing was known of another, or it did not hold
                picked = await places.pick(worker, {**wish, "request": request}, 0.0, Quiet())
            return answers, picked

    @contextlib.contextmanager
    def places(self, spec: Mapping[str, Any]) -> Iterator[Places]:
        """Of a wish. Those that nobody uses any more go."""
        wish = {field: spec[field] for field in ("queues", "order") if field in spec}
        name = channel_of(wish.get("queues"), wish.get("order"))
        if name not in self._places:
            self._places[name] = Places(self._system, self._name, {"queues": "", **wish})
        self._users[name] = self._users.get(name, 0) + 1
        try:
            yield self._places[name]
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                for idle in [one for one in self._places if one not in self._users]:
                    if not any(one.channel and one.channel.connected for one in self._places[idle].all):
                        del self._places[idle]

    def look_again(self, worker: str) -> None:
        """Have a worker's picks that wait look at once."""
        for places in self._places.values():
            for one in places.all:
                if one.channel is not None:
                    one.channel.wake_same(worker)

    def drain(self) -> None:
        """Answer all that wait, and who comes later, at once."""
        self._stopping.set()
        for places in self._places.values():
            places.wake()

    async def stop(self) -> None:
        """`drain`, and close what waiting needs."""
        self.drain()
        await asyncio.gather(*(places.stop() for places in self._places.values()))
        self._places.clear()


def _worth_a_look(places: Sequence[Place], quiet: Quiet, request: Any = None) -> Iterator[Place]:
    """Those that may have something, as it is known when each is asked for: first those that called, last those that
    did not answer."""
    chance = random.Random(str(request)) if request else random
    drawn = {one.number: chance.random() for one in places}
    order = sorted(places, key=lambda one: (not one.is_called, one.is_away, drawn[one.number]))
    return (one for one in order if one.is_worth_a_look(quiet))
