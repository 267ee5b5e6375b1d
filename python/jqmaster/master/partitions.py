"""What a master of a system has in place of the parts that know one namespace alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from redis.asyncio import Redis

from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine
from jqmaster.errors import JQError, NotFound
from jqmaster.master.events import EventFeed
from jqmaster.system.balance import balance
from jqmaster.system.courier import Courier
from jqmaster.system.engine import SystemEngine
from jqmaster.system.keeping import keep_in_line

_AGAIN_S = 5.0
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


class Upkeep:
    """Carries mail between partitions, balances limits, keeps settings the same, and does what is due while no worker
    comes by."""

    def __init__(self, engine: SystemEngine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        courier = Courier(self._engine, self._name)
        for run in (courier.run, lambda: balance(self._engine), self._sweep):
            self._tasks.append(asyncio.create_task(_again(run), name="mail and limits"))
        self._tasks.append(asyncio.create_task(keep_in_line(self._engine), name="settings"))

    async def _sweep(self) -> None:
        while True:
            for engine in (await self._engine.live()).values():
                with suppress(JQError):
                    await engine.tick()
            most_s = max(SWEEP_S, len(self._engine.record.partitions) * _EACH_S) if self._engine.record else SWEEP_S
            await asyncio.sleep(most_s * random.uniform(0.8, 1.2))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _again(run: Any) -> None:
    while True:
        with suppress(JQError):  # which the doctor tells of as well
            await run()
        await asyncio.sleep(_AGAIN_S)
