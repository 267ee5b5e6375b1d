"""Where dispatch gets its jobs: of one namespace, or of the partitions of a system."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import redis.asyncio as redis_asyncio

from jqmaster.connection.wake import WINDOW_MS, Channel, end
from jqmaster.engine.calls import given, new_request
from jqmaster.engine.engine import Engine, pack
from jqmaster.engine.systems import Room
from jqmaster.master import delivery
from jqmaster.master.delivery import Assigned
from jqmaster.system.engine import SystemEngine
from jqmaster.system.picking import Places
from jqmaster.system.place import Place, Quiet, Reply
from jqmaster.system.record import partition_of
from jqmaster.system.slots import home_of

CHANNEL = "push"
# The next due moment may be known to one master alone. If that one is killed, another looks after this time.
LOOK_EVERY_S = 10.0
ROOMS_S = 2.0  # how often a master of a system asks who has room, as others see workers come and get room
MOST_ROOMS = 200
MOST_GUESTS = 200  # that `assign` takes

Pool = tuple[tuple[str, ...], frozenset[str]]
"""Queues, and names of jobs that were refused."""


class Desk:
    """What dispatch needs."""

    async def take(self, limit: int, without: Callable[[], Sequence[str]]) -> tuple[int, list[Assigned]]:
        """Jobs that were started on registered workers, and when there are more, as `assign` tells. `without`: whom to
        pass over, asked for with each look."""
        raise NotImplementedError

    async def sleep(self, next_ms: int) -> None:
        """Until there may be jobs, where `take` did not wait for them."""

    async def keep(self, job: Assigned) -> bool:
        """Whether its worker has a slot for it. Only then it may be delivered."""
        return True

    def refused(self, job: Assigned, why: str) -> None:
        """Its worker did not take it, which its partition has noted."""

    def poke(self) -> None:
        """Look, and do not sleep."""
        raise NotImplementedError

    def drain(self) -> None:
        """Have others look from now on."""
        raise NotImplementedError

    async def stop(self) -> None:
        """`drain`, and close what waiting needs."""
        raise NotImplementedError


class NamespaceDesk(Desk):
    """Of one namespace: each call starts what it gives, and counts it in the same step."""

    def __init__(self, engine: Engine, redis: redis_asyncio.Redis, master: str, secrets: Sequence[str]) -> None:
        self.channel = Channel(redis, f"{engine.namespace}:wake:{CHANNEL}")
        self._engine = engine
        self._master = master
        self._secrets = secrets
        self._request = new_request()

    async def take(self, limit: int, without: Callable[[], Sequence[str]]) -> tuple[int, list[Assigned]]:
        wait = {"on": CHANNEL, "ms": WINDOW_MS}
        spec = {"limit": limit, "master": self._master, "wait": wait, "request": self._request}
        if out := without():
            spec["without"] = out
        next_ms, *parts = await self._engine.call("assign", pack(spec))
        self._request = new_request()  # only now: what an answer brought that was lost comes again
        return next_ms, delivery.assigned(parts, self._secrets)

    async def sleep(self, next_ms: int) -> None:
        self.channel.look_in(next_ms)
        await self.channel.sleep(LOOK_EVERY_S)

    def poke(self) -> None:
        self.channel.wake_all()

    def drain(self) -> None:
        self.channel.hand_over()

    async def stop(self) -> None:
        await self.channel.stop()


class _PushPlace(Place):
    """A partition, as who pushes sees it: `assign` in the place of `pick`."""

    desk: SystemDesk
    offered: frozenset[tuple[bool, Pool]] = frozenset()  # with room, as was known when it was asked last
    request = ""

    def channel_of(self, wish: Mapping[str, Any]) -> str:
        return CHANNEL

    async def ask(self, asked: dict[str, Any]) -> Reply:
        self.request = self.request or new_request()
        wait = {"on": self.name, "ms": WINDOW_MS} if self.channel else None
        spec = {**given(wait=wait), **self.desk.wish(self.number), "settings": self.version, "request": self.request}
        self.offered = self.desk.pools(self.number)
        reply: Reply = await self.engine.call("assign", pack(spec))
        self.request = ""  # only now: what an answer brought that was lost comes again
        return reply

    def lost(self, asked: dict[str, Any]) -> None:
        """It is asked for again with the same request."""


class _Quiet(Quiet):
    """A partition that had nothing may have something for workers that had no room then."""

    def __init__(self, desk: SystemDesk) -> None:
        super().__init__()
        self._desk = desk
        self._offered: dict[int, frozenset[tuple[bool, Pool]]] = {}

    def until(self, place: Place) -> float:
        is_known = self._desk.pools(place.number) <= self._offered.get(place.number, frozenset())
        return super().until(place) if is_known else 0.0

    def note(self, place: Place, reply: Reply) -> None:
        super().note(place, reply)
        if isinstance(place, _PushPlace) and len(reply) == 1:
            self._offered[place.number] = place.offered


class SystemDesk(Desk):
    """Of a system: jobs come from any partition, and each has a slot of its worker, which the worker's partition
    counts. A partition gives its own workers jobs as a namespace does; those of others are its guests."""

    def __init__(self, engine: SystemEngine, master: str, secrets: Sequence[str]) -> None:
        self._engine = engine
        self._master = master
        self._secrets = secrets
        self._rooms = engine.rooms
        self._unknown: dict[str, set[str]] = defaultdict(set)  # names that workers do not know, by worker
        self._poked = asyncio.Event()
        self._places = Places(engine, master, {"queues": "*"}, self._place)
        self._quiet = _Quiet(self)
        self._limit = 1
        self._whom: Callable[[], Sequence[str]] = list  # is passed over
        self._without: frozenset[str] = frozenset()
        self._asking: asyncio.Task[None] | None = None
        self._pools: frozenset[tuple[int, Pool]] | None = None  # with room, by partition

    async def take(self, limit: int, without: Callable[[], Sequence[str]]) -> tuple[int, list[Assigned]]:
        if self._asking is None:
            self._rooms.limit, self._rooms.changed = MOST_ROOMS, self._changed
            self._asking = asyncio.create_task(self._ask_again(), name="who has room")
        self._poked.clear()
        self._limit, self._whom, self._pools = limit, without, None
        await self._places.take_in_new()
        reply = await self._places.pick(self._master, {}, LOOK_EVERY_S, self._quiet, self._poked)
        return reply[0], [job for job in map(self._whole, delivery.assigned(reply[1:], self._secrets)) if job]

    async def keep(self, job: Assigned) -> bool:
        home = home_of(job.worker)
        if home is None or home == partition_of(job.id):
            return True
        return bool(job.url) and await self._rooms.of(home).keep(
            (job.worker, job.id, job.token), round(job.timeout_s * 1000)
        )

    def refused(self, job: Assigned, why: str) -> None:
        if why == "unknown" and home_of(job.worker) != partition_of(job.id):
            self._unknown[job.worker].add(job.name)
            self._pools = None

    def poke(self) -> None:
        self._poked.set()
        for one in self._places.all:
            if one.channel is not None:
                one.channel.wake_all()

    def drain(self) -> None:
        self._poked.set()
        self._places.wake()

    async def stop(self) -> None:
        self.drain()
        await end((self._asking,))
        await self._places.stop()

    # -- for its places ---------------------------------------------------------------------------

    def pools(self, number: int) -> frozenset[tuple[bool, Pool]]:
        """Those that have a worker with room, and whether it is a partition's own, whose room is as that finds it."""
        if self._pools is None:
            self._pools = frozenset((home, self._pool(one)) for home, one in self._with_room())
        return frozenset((home == number, pool) for home, pool in self._pools)

    def wish(self, number: int) -> dict[str, Any]:
        """What to ask a partition for. Since the last one somebody may have been left out, or be so no more."""
        self._without, self._pools = frozenset(self._whom()), None
        guests: dict[Pool, list[Any]] = {}
        for home, one in self._with_room():
            if home != number:
                workers = guests.setdefault(self._pool(one), [])
                if len(workers) < MOST_GUESTS:
                    workers.append((one.worker, one.free, one.max_jobs))
        pools = [(queues, sorted(names), workers) for (queues, names), workers in guests.items()]
        spec = {"limit": self._limit, "master": self._master, "guests": pools[:MOST_GUESTS]}
        return spec | ({"without": sorted(self._without)} if self._without else {})

    # -- parts ------------------------------------------------------------------------------------

    def _place(self, *arguments: Any, **more: Any) -> Place:
        place = _PushPlace(*arguments, **more)
        place.desk = self
        return place

    def _homes(self) -> list[int]:
        return list(self._engine.record.live) if self._engine.record else []

    def _with_room(self) -> list[tuple[int, Room]]:
        rooms = [(home, one) for home in self._homes() for one in self._rooms.of(home).rooms.values()]
        return [(home, one) for home, one in rooms if one.free > 0 and one.worker not in self._without]

    def _pool(self, room: Room) -> Pool:
        return room.queues, frozenset((*room.refused, *self._unknown.get(room.worker, ())))

    def _whole(self, job: Assigned) -> Assigned:
        """With what its own partition told of a worker; it has one slot less from now on."""
        home = home_of(job.worker)
        room = self._rooms.of(home).rooms.get(job.worker) if home is not None else None
        if room is None:
            return job
        room.free -= 1
        self._pools = None
        if home == partition_of(job.id):
            return job
        return dataclasses.replace(job, url=room.url, secrets=room.secrets.split() or self._secrets, key=room.key)

    def _changed(self) -> None:
        before, self._pools = self._pools, None
        self.pools(0)
        if before is None or self._pools is None or not self._pools <= before:
            self.poke()

    async def _ask_again(self) -> None:
        while True:
            for number in self._homes():
                self._rooms.of(number).ask()
            known = {one.worker for _, one in self._with_room()}
            self._unknown = defaultdict(set, {one: names for one, names in self._unknown.items() if one in known})
            await asyncio.sleep(ROOMS_S)
