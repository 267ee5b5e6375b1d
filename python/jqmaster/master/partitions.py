"""What a master of a system has beside, or in place of, the parts that know one namespace alone."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from redis.asyncio import Redis

from jqmaster.connection.together import Shared
from jqmaster.connection.wake import end
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import JQError, NotFound, Unavailable
from jqmaster.master.events import EventFeed
from jqmaster.system import looking
from jqmaster.system.courier import again, tend
from jqmaster.system.engine import SystemEngine
from jqmaster.system.looking import Look

EVERY_S = 2.0
_ANSWER_S = 2.0  # of one partition
_MOST_LOOK_S = 6.0
_PATIENCE_S = 3.0  # of who has something older
_OLD_S = 30.0  # then it is no answer any more
_REST = 100  # times as long as it took to count jobs, and to compare settings
_MOST_REST_S = 60.0
_SETTINGS_S = 10.0  # how often they are compared, and how long a partition has to tell them
_MOST_SETTINGS_REST_S = 300.0
_FIRST_SETTINGS_S = 1.0
_STOP_S = 2.0
SWEEP_S = 5.0
"""How often a master does what is due in the partitions, which workers do whenever they look for jobs."""
_EACH_S = 0.5


Part = TypeVar("Part", Ended, EventFeed)


class OfEach(Generic[Part]):
    """What is made for each partition when it is first needed, and ends with all others."""

    def __init__(self, engine: SystemEngine, make: Callable[[Engine, Redis], Part]) -> None:
        self._engine = engine
        self._make: Callable[[Engine, Redis], Part] = make
        self._of: dict[Engine, Part] = {}
        self.is_draining = False

    def of(self, engine: Engine) -> Part:
        """That of a partition."""
        if engine not in self._of:
            self._of[engine] = self._make(engine, engine.redis)
            if self.is_draining:
                self._of[engine].drain()
        return self._of[engine]

    def drain(self) -> None:
        """Answer all that wait or follow, soon."""
        self.is_draining = True
        for one in self._of.values():
            one.drain()

    async def stop(self) -> None:
        """`drain`, and close the connections; bounded."""
        self.drain()
        await asyncio.gather(*(one.stop() for one in self._of.values()))


class SystemEnded(OfEach[Ended]):
    """Waits for jobs to end, each where it is."""

    def __init__(self, engine: SystemEngine) -> None:
        super().__init__(engine, Ended)

    async def wait(self, job_id: bytes, timeout_s: float) -> str | None:
        try:
            engine = await self._engine.of(job_id)
        except NotFound:
            return None
        return await self.of(engine).wait(job_id, timeout_s)


class Lookout:
    """Looks at the partitions for those who ask. Nothing to start. Settings are compared beside that, as it may take
    longer: what they were before is told meanwhile."""

    def __init__(self, engine: SystemEngine) -> None:
        self._engine = engine
        self._looking = Shared(self._look_now)
        self._found: Look | None = None
        self._found_at = self._jobs_at = 0.0
        self._behind: dict[int, list[str]] | None = None
        self._compare_at = 0.0
        self._comparing: asyncio.Task[None] | None = None

    async def look(self) -> Look:
        """As of two seconds ago, but for jobs, which are counted less often where that takes long. Raises Unavailable
        where no partition answers, within some seconds."""
        age_s = time.monotonic() - self._found_at
        if self._found is None or age_s >= EVERY_S:
            is_old = self._found is None or age_s >= _OLD_S
            try:
                await self._looking.get(_MOST_LOOK_S if is_old else _PATIENCE_S)
            except Unavailable:
                if is_old or self._looking.task is None or self._looking.task.done():
                    raise
        assert self._found is not None
        return self._found

    async def document(self) -> Document:
        """As `Look.document`. Raises as `look`."""
        found = await self.look()
        if self._behind is None and self._comparing is not None:
            await asyncio.wait({self._comparing}, timeout=_FIRST_SETTINGS_S)
        return found.document(self._behind or {})

    async def stop(self) -> None:
        """End what is under way; bounded."""
        await end((self._looking.task, self._comparing), _STOP_S)

    async def _look_now(self) -> None:
        known = self._found if time.monotonic() < self._jobs_at else None
        found = await looking.look(self._engine, within_s=_ANSWER_S, known=known)
        self._found, self._found_at = found, time.monotonic()
        if known is None:
            self._jobs_at = self._found_at + min(found.took_s * _REST, _MOST_REST_S)
        if time.monotonic() >= self._compare_at and (self._comparing is None or self._comparing.done()):
            self._comparing = asyncio.create_task(self._compare(found), name="settings of partitions")

    async def _compare(self, found: Look) -> None:
        began = time.monotonic()
        self._behind = await looking.compare(self._engine, found, within_s=_SETTINGS_S)
        ended = time.monotonic()
        self._compare_at = ended + max(_SETTINGS_S, min((ended - began) * _REST, _MOST_SETTINGS_REST_S))


class Upkeep:
    """Carries mail between partitions, balances limits, keeps settings the same, and does what is due while no worker
    comes by."""

    def __init__(self, engine: SystemEngine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for work in (tend(self._engine, self._name), again("what is due is not done", self._sweep)):
            self._tasks.append(asyncio.create_task(work, name="upkeep of partitions"))

    async def _sweep(self) -> None:
        while True:
            for engine in (await self._engine.live()).values():
                with suppress(JQError):
                    await engine.tick()
            most_s = max(SWEEP_S, len(self._engine.record.partitions) * _EACH_S) if self._engine.record else SWEEP_S
            await asyncio.sleep(most_s * random.uniform(0.8, 1.2))

    async def stop(self) -> None:
        await end(self._tasks)
