"""The partitions of a system: their engines, and who of them is asked for what."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

from redis.asyncio import Redis

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, connect, pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.scripts import Form, check_namespace
from jqmaster.errors import Invalid, JQError, NotFound, Outdated, PartitionsAway, Unavailable, Vanished
from jqmaster.system import calls
from jqmaster.system.calls import all_of
from jqmaster.system.record import OVER, System, partition_of
from jqmaster.system.routing import part_of, unpacked
from jqmaster.system.settled import Settled

LOOK_S = 2.0
"""How often a process that makes calls looks whether the record is another."""
COUNT = 100  # of a page, unless told
_LISTING_S = 2.0  # how long a partition is waited for, where others may do
_SILENT_S = 5.0  # how long one is not asked then

log = logging.getLogger("jqmaster.system")

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """An operation with its arguments, as it is to go over partitions."""

    operation: str
    arguments: Sequence[Argument]

    @cached_property
    def spec(self) -> dict[str, Any]:
        """Of a call that begins with one."""
        return unpacked(self.arguments[0]) if self.arguments else {}

    def changed(self, **fields: Any) -> Call:
        """With some fields of the spec otherwise."""
        return Call(self.operation, [pack({**self.spec, **fields}), *self.arguments[1:]])

    async def at(self, engine: Engine, /, **fields: Any) -> Any:
        """What a partition says to it, with some fields of the spec otherwise."""
        return await engine.call(self.operation, *(self.changed(**fields) if fields else self).arguments)


class Partitions:
    """Of one system, as far as this process knows. The record is read, and connections are made, with the first
    call."""

    def __init__(self, url: str, root: str, *, form: Form, actor: str | None, partial: bool) -> None:
        """With ``partial`` listings and sums leave out partitions that do not answer, and ``missing`` names them; else
        they raise Unavailable."""
        self.url = url
        self.root = check_namespace(root)
        self.form = form
        self.actor = actor
        self.is_partial = partial
        self.record: System | None = None
        self.settled = Settled()
        self._clients: list[Redis] = []
        self._engines: list[Engine] = []
        self._opening = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._looked = 0.0
        self._silent: dict[int, float] = {}  # partitions that did not answer, and until when no listing asks them

    async def partitions(self) -> Sequence[Engine]:
        """The engine of each. Raises NotFound where there is no system, Version, Unavailable.

        Where the record was not looked at for `LOOK_S` that is done meanwhile: who asks then may hear of all.
        """
        if not self._engines:
            async with self._opening:
                if not self._engines:
                    self._adopt(await calls.read(self.url, self.root))
                    self._looked = time.monotonic()
        elif time.monotonic() - self._looked > LOOK_S and (self._looking is None or self._looking.done()):
            self._looked = time.monotonic()
            self._looking = asyncio.create_task(self._look_aside(), name=f"record of {self.root}")
        return self._engines

    async def known(self) -> tuple[Sequence[Engine], System]:
        """The engine of each, and the record."""
        engines = await self.partitions()
        assert self.record is not None
        return engines, self.record

    async def live(self) -> dict[int, Engine]:
        """The engines of those that are not closed or lost, by number, in order."""
        engines, record = await self.known()
        return {number: engines[number] for number in record.live}

    async def home(self, value: object) -> Engine:
        """The engine of the partition that has the bucket of a text."""
        engines, record = await self.known()
        return engines[record.home(str(value))]

    @property
    def namespace(self) -> str:
        """Its name, which is partition 0's."""
        return self.root

    async def close(self) -> None:
        """Close the connections."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        for client in self._clients:
            await client.aclose()
        self._clients, self._engines, self.record = [], [], None

    # -- the record ---------------------------------------------------------------------------------------

    def _adopt(self, record: System) -> bool:
        """Whether it is a later one. Partitions are never fewer, nor have they other numbers."""
        if self.record is not None and record.generation <= self.record.generation:
            return False
        engines = list(self._engines)  # another list: who goes through the old one is not disturbed
        for one in record.partitions[len(engines) :]:
            self._clients.append(connect(self.url))
            engines.append(Engine(self._clients[-1], one.namespace, form=self.form, actor=self.actor))
        self._engines = engines
        if self.record is not None:
            log.info("system %s has %d partitions, generation %d", self.root, len(record.partitions), record.generation)
        self.record = record
        return True

    async def look(self, number: int = 0) -> bool:
        """Read the record as a partition has it, and of which version its settings are; whether the record is later
        than what was known. Raises Unavailable, Version, NotFound."""
        engine = (await self.partitions())[number]
        self._looked = time.monotonic()
        async with calls.answering(engine.namespace):
            found, version = await calls.look_at(engine)
        if self.settled.heard(version) or version != self.settled.version:
            self.settled.bring()
        return found is not None and self._adopt(found)

    async def _look_aside(self) -> None:
        with suppress(JQError):  # what is known goes on holding
            await self.look()

    async def changed(self, generation: int) -> None:
        """Return when there is a later record than of this generation."""
        while self.record is None or self.record.generation <= generation:
            await asyncio.sleep(LOOK_S * random.uniform(0.8, 1.2))
            if self.record is None or time.monotonic() - self._looked > LOOK_S / 2:
                await self._look_aside()

    async def catch_up(self, engine: Engine, problem: Outdated) -> None:
        """A partition knows of a later record: partition 0 has it, or if that lost it, this one. Raises the problem
        where neither has."""
        engines, known = await self.known()
        for number in (0, list(engines).index(engine)):
            if self.record is not known:
                return
            await self.look(number)
        if self.record is known:
            raise problem

    async def come_since(self, engines: Sequence[Engine]) -> list[Engine]:
        """The partitions that joined while all these were asked. Who adds some has them known before it copies what is
        set in all: so either it copies what was set, or they are found here."""
        await self.look()
        return [one for one in (await self.live()).values() if one not in engines]

    # -- asking some --------------------------------------------------------------------------------------

    async def of(self, job_id: Argument, path: str = "id") -> Engine:
        """The engine of the partition that gave a job's id. Raises NotFound when the system has none of the number."""
        engines, record = await self.known()
        number = partition_of(job_id)
        if number >= len(engines) and await self.look():
            engines, record = await self.known()
        if number >= len(engines):
            shown = replies.text(job_id)
            raise NotFound(f"no such job: {shown}, the system {self.root} has no partition {number}", path)
        if (state := record.partitions[number].state) in OVER:
            raise NotFound(f"no such job: {replies.text(job_id)}, partition {number} is {state}", path)
        return engines[number]

    async def grouped(
        self, ids: Sequence[Argument], ask: Callable[[Engine, list[int]], Awaitable[Any]], path: str
    ) -> list[Any]:
        """An answer for each job, in order, ``ask``ed by its place of the partition that has it."""
        groups: dict[Engine, list[int]] = {}
        for index, job_id in enumerate(ids):
            groups.setdefault(await self.of(job_id, f"{path}[{index}]"), []).append(index)

        async def told(engine: Engine, indexes: list[int]) -> Any:
            with part_of(path, indexes):
                return await ask(engine, indexes)

        answers = await all_of(told(engine, indexes) for engine, indexes in groups.items())
        found: list[Any] = [None] * len(ids)
        for indexes, answer in zip(groups.values(), answers, strict=True):
            for index, one in zip(indexes, answer, strict=True):
                found[index] = one
        return found

    # -- asking all, of which some may be away ------------------------------------------------------------

    async def each(self, call: Call) -> list[Any]:
        """The answers of all. Raises the first problem once all are through."""
        return await all_of(map(call.at, (await self.live()).values()))

    def heard(self, number: int, *, answers: bool) -> None:
        """Whether a partition answered."""
        if answers:
            self._silent.pop(number, None)
        else:
            self._silent[number] = time.monotonic() + _SILENT_S

    @property
    def missing(self) -> list[int]:
        """The numbers of the partitions that did not answer the last listing."""
        return sorted(self._silent)

    async def everywhere(self, ask: Callable[[Engine], Awaitable[T]], *, within_s: float = _LISTING_S) -> list[T]:
        """The answers of all partitions. Raises the first problem once all are through, of which Unavailable only where
        none answers, if listings may be partial."""
        engines = await self.live()
        if not self.is_partial:
            return await all_of(map(ask, engines.values()))
        self._silent = {number: until for number, until in self._silent.items() if number in engines}
        asked = [number for number in engines if not self._is_left_out(number)]
        if not asked:
            raise PartitionsAway(f"no partition of {self.root} answers")
        return await all_of((self.patiently(number, ask, within_s) for number in asked), but=Unavailable)

    async def perhaps(self, number: int, ask: Callable[[Engine], Awaitable[T]]) -> T | None:
        """What one partition says; None where it does not answer, if listings may be partial."""
        if not self.is_partial:
            return await ask((await self.partitions())[number])
        if self._is_left_out(number):
            return None
        with suppress(Unavailable):
            return await self.patiently(number, ask)
        return None

    def _is_left_out(self, number: int) -> bool:
        """Whether a partition was silent just before. Of those who find that this is over one asks it, and the others
        go on without it until that is answered."""
        until = self._silent.get(number)
        if until is None:
            return False
        now = time.monotonic()
        if until <= now:
            self._silent[number] = now + _LISTING_S
        return until > now

    async def root_or_another(self, ask: Callable[[Engine], Awaitable[T]]) -> T:
        """What partition 0 says; if listings may be partial, the first one that answers."""
        engines = await self.live()
        *others, last = engines
        for number in others if self.is_partial else ():
            with suppress(Unavailable):
                return await self.patiently(number, ask)
        return await ask(engines[last if self.is_partial else 0])

    async def form_in_use(self) -> Literal["functions", "scripts"]:
        """How the operations are called that have both forms."""
        return await self.root_or_another(lambda engine: engine.form_in_use())

    async def patiently(self, number: int, ask: Callable[[Engine], Awaitable[T]], within_s: float = _LISTING_S) -> T:
        """What a partition says within so long; whether it does is noted. Raises PartitionsAway."""
        engine = (await self.partitions())[number]
        try:
            async with asyncio.timeout(within_s):
                answer = await ask(engine)
        except TimeoutError as problem:
            self.heard(number, answers=False)
            message = f"partition {number}, {engine.namespace}, did not answer within {within_s:g} s"
            raise PartitionsAway(message) from problem
        except Vanished:
            self.heard(number, answers=False)
            raise
        except Unavailable as problem:
            self.heard(number, answers=False)
            raise PartitionsAway(f"partition {number}, {engine.namespace}, does not answer", problem.cause) from problem
        self.heard(number, answers=True)
        return answer


def rendezvous(name: str, engines: Iterable[Engine]) -> list[Engine]:
    """The order in which somebody of this name chooses: with enough of those who choose each partition has some."""
    return sorted(engines, key=lambda one: hashlib.sha1(f"{name} {one.namespace}".encode()).digest())


Way = Callable[[Partitions, Call], Awaitable[Any]]
"""How an operation goes over partitions."""


def not_yet(what: str) -> Invalid:
    """What is refused, by name."""
    return Invalid(f"{what} is not possible over the partitions of a system yet: ask one of them by its namespace")


def place_of(cursor: Any, live: Mapping[int, Engine]) -> tuple[int, str]:
    """The number of a partition, and the cursor within it. Raises Invalid. One that is no more since is passed over."""
    number, _, rest = ("0:" if cursor is None or cursor == "" else replies.text(cursor)).partition(":")
    if not number.isascii() or not number.isdigit() or int(number) > max(live):
        raise Invalid("expected a cursor as the last reply gave it, or empty text", "cursor")
    at = int(number)
    return (at, rest) if at in live else (next_of(at, live) or max(live), "")


def next_of(number: int, live: Mapping[int, Engine]) -> int | None:
    """The number of the partition behind another; None behind the last."""
    return min((one for one in live if one > number), default=None)
