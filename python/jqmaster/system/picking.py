"""Picking over the partitions of a system. docs/partitions.md, "Workers", tells which job is next."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from jqmaster.connection.wake import Channel, backoff_s
from jqmaster.engine.calls import given, new_request
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import Waiting, channel_of
from jqmaster.errors import JQError, Unavailable
from jqmaster.system.quiet import Quiet, Reply
from jqmaster.system.record import DIGITS, System

log = logging.getLogger("jqmaster.system")

PLACES = 8  # partitions at which who waits sleeps: a blocked connection to each
NET_S = 5.0  # how often one that sleeps looks at each of the others, of which there are few
LOOKS_S = 0.2  # with many it looks at one of them so often
LOOK_S = 1.0  # how long a partition may take to answer before the next is asked
HEAD_S = 0.1  # how long its head is waited for, while an outcome is to be reported
SLACK_MS = 2  # a partition is not left for one whose head is older by less
MISLED_S = 1.0  # how long a partition is left alone whose head promised a job that a pick did not find
AWAY_S = 5.0  # at most so long a partition that did not answer is not asked


class Partitions(Protocol):
    """What picking needs of `SystemEngine`."""

    root: str
    record: System | None

    async def partitions(self) -> Sequence[Engine]: ...

    async def live(self) -> dict[int, Engine]: ...

    async def changed(self, generation: int) -> None: ...


class Place:
    """A partition, as those see it who wish for jobs of the same queues."""

    def __init__(self, number: int, engine: Engine, wish: Mapping[str, Any], *, quiet_s: float | None) -> None:
        """`wish`: `{queues, order}`. `quiet_s`: how long a look that finds nothing lasts where nobody sleeps; None
        where they do."""
        self.number = number
        self.engine = engine
        self.waiting = Waiting(engine, engine.redis)
        self.name = self.channel_of(wish)
        self.channel = Channel(engine.redis, f"{engine.namespace}:wake:{self.name}") if quiet_s is None else None
        self.quiet_s = quiet_s
        self.is_called = False  # it has work, and somebody has to look
        self.away_until = 0.0
        self.led_until = 0.0  # its head is not followed until then
        self._failures = 0
        self._wish = wish

    def channel_of(self, wish: Mapping[str, Any]) -> str:
        """On which those sleep who have this wish."""
        return channel_of(wish["queues"], wish.get("order"))

    @property
    def is_away(self) -> bool:
        """Whether it did not answer when it was asked last."""
        return self._failures > 0

    def is_worth_a_look(self, quiet: Quiet) -> bool:
        """Whether it may have something, as far as is known. Who does not listen there may have missed a call."""
        now = time.monotonic()
        is_quiet = now < quiet.until(self) and (self.channel is None or self.channel.connected)
        return not is_quiet and self.away_until <= now

    def wish(self, count: int) -> dict[str, Any]:
        """For up to `count` jobs."""
        return {**self._wish, "count": count, "request": new_request()}

    async def look(self, worker: Any, wish: Mapping[str, Any]) -> Reply:
        """Jobs, if there are any that can start. A partition that does not answer has none, and is not asked for a
        while. Raises what Redis refuses."""
        self.is_called = False
        asked = {**wish, "worker": worker}
        try:
            async with asyncio.timeout(LOOK_S):  # what comes later is given back
                reply = await self.ask(asked)
        except TimeoutError:
            self.failed()
            return [-1]
        except Unavailable as problem:
            self.lost(asked)
            self.failed(problem)
            return [-1]
        self._failures = 0
        if len(reply) == 1 and reply[0] and self.channel is not None:
            self.channel.look_in(reply[0])
        return reply

    async def ask(self, asked: dict[str, Any]) -> Reply:
        """Of `look`: the call."""
        return await self.waiting.look(asked, self.name if self.channel else None)

    def lost(self, asked: dict[str, Any]) -> None:
        """Its answer does not come."""
        self.waiting.abandon(asked)

    def failed(self, problem: Exception | None = None) -> None:
        """It did not answer."""
        self.away_until = time.monotonic() + min(AWAY_S, backoff_s(self._failures) * 4)
        level = logging.DEBUG if self._failures else logging.INFO
        log.log(level, "%s is left out: %s", self.engine.namespace, problem or "no answer in time")
        self._failures += 1

    async def head(self) -> tuple[int, str] | None:
        """Where its best job stands, if there is one and it says so soon."""
        asking = asyncio.create_task(self.engine.head(self._wish["queues"]))
        await asyncio.wait({asking}, timeout=HEAD_S)
        if not asking.done():
            asking.add_done_callback(lambda task: task.cancelled() or task.exception())
            self.failed()
            return None
        try:
            found = asking.result()
        except JQError as problem:
            self.failed(problem)
            return None
        self._failures = 0
        return found

    async def close(self) -> None:
        """The partition is no more: nobody looks there from now on."""
        self.away_until = float("inf")
        self._failures += 1
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.wake_all()
            await channel.stop()

    async def stop(self) -> None:
        """Have others look where somebody slept, and give back what late answers bring."""
        if self.channel is not None:
            await self.channel.stop()
        await self.waiting.stop()


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
        nearest = _nearest(self._name, live.values())
        quiet_s = max(NET_S, LOOKS_S * (len(live) - len(nearest))) * random.uniform(0.75, 1.25)
        self.all += [
            self._make(number, one, self._wish, quiet_s=None if one in nearest else quiet_s)
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
            assert self._system.record is not None
            await self._system.changed(self._system.record.generation)

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
                    if not one.is_away:
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
            answers, picked = await finish({**wish, **given(before=before), "request": request})
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


def _nearest(name: str, engines: Iterable[Engine]) -> list[Engine]:
    """By rendezvous hashing: with enough of those who wait each partition has some."""
    return sorted(engines, key=lambda one: hashlib.sha1(f"{name} {one.namespace}".encode()).digest())[:PLACES]
